"""A table's signatures on the device, as lists: which concepts each holds, and each pair of them.

Lists are filled up to a few sizes, so that tables of about one size share compiled programs. A
warm-up fills up its small table to the sizes of the real one.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, UInt32

from optexp_jax.bounds.tight.counts.pair_index import NOWHERE, pair_index
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import LANES, device_table
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.table_cache import per_table
from optexp_jax.internal.padding import round_up_in_eighths
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.transfers import put, run


@dataclass(frozen=True)
class Sizes:
    """How long the lists are, filled up."""

    n_words: int
    """Words of a set of signatures, 32 to a word."""
    n_entries: int
    """Concepts of all signatures."""
    n_groups: int
    """Groups of signatures that hold a pair of concepts."""

    @classmethod
    def of(cls, table: ConceptTable) -> "Sizes":
        return cls(
            device_table(table).n_words,
            round_up_in_eighths(int(table.signatures.lengths.sum()), 256),
            round_up_in_eighths(pair_index(table).n_groups, 256),
        )


@pytree
class SparseTable:
    """What no neuron changes."""

    sizes: Int64[Array, " signatures"]
    """Locations of each signature."""
    indptr: Int64[Array, " signatures_plus_one"]
    concepts: Int32[Array, " entries"]
    """Those of signature s: `concepts[indptr[s]:indptr[s + 1]]`. Padded signatures have none."""
    pair: Int32[Array, " groups"]
    """The pair of each group, as `PairIndex` numbers it, ascending; past the last for padding."""
    holder: Int32[Array, "groups members"]
    """Signatures that hold the pair; those of one pair stand together, padding after them."""


@pytree
class NeuronLists:
    """A neuron's counts, signature by signature."""

    table: SparseTable
    inside: Int64[Array, " signatures"]
    outside: Int64[Array, " signatures"]


@per_table
def sparse_table(table: ConceptTable, sizes: Sizes) -> SparseTable:
    """The lists of a table; the same arrays for as long as the table lives."""
    signatures, pairs = table.signatures, pair_index(table).by_pair
    indptr = np.full(sizes.n_words * LANES + 1, signatures.indptr[-1], np.int64)
    indptr[: len(signatures.indptr)] = signatures.indptr
    arrays = (
        _filled(table.sizes, sizes.n_words * LANES, 0),
        indptr,
        _filled(signatures.indices.astype(np.int32), sizes.n_entries, 0),
        _filled(pairs.cell, sizes.n_groups, NOWHERE),
        _filled(pairs.holder, sizes.n_groups, NOWHERE),
    )
    with jax.enable_x64(True):
        return SparseTable(*put(*arrays))


@per_table
def membership(table: ConceptTable, sizes: Sizes) -> UInt32[Array, "concepts words"]:
    """Which signatures hold each concept, 32 to a word, on one device."""
    device = device_table(table)
    if sizes.n_words == device.n_words:
        # What batches are split over all devices by is there already.
        return device.membership.addressable_data(0)
    words = np.zeros((table.n_concepts, sizes.n_words), np.uint32)
    words[:, : device.n_words] = device.host_membership
    return put(words)[0]


def count_on(table: ConceptTable, neuron: NeuronCounts, sizes: Sizes) -> NeuronLists:
    """A neuron's counts next to the lists of its table."""
    inside = _filled(neuron.inside, sizes.n_words * LANES, 0)
    with jax.enable_x64(True):
        return run(_count, sparse_table(table, sizes), inside)


@jax.jit
def _count(table: SparseTable, inside: Int64[Array | np.ndarray, " signatures"]) -> NeuronLists:
    there = jnp.asarray(inside)
    return NeuronLists(table, there, table.sizes - there)


def pack_region(
    region: Bool[np.ndarray, " signatures"], sizes: Sizes
) -> UInt32[np.ndarray, " words"]:
    """A set of signatures, 32 to a word."""
    packed = np.zeros(sizes.n_words * 4, np.uint8)
    bits = np.packbits(region, bitorder="little")
    packed[: len(bits)] = bits
    return packed.view("<u4").astype(np.uint32, copy=False)


def _filled(array: np.ndarray, size: int, value: int) -> np.ndarray:
    filled = np.full((size, *array.shape[1:]), value, array.dtype)
    filled[: len(array)] = array
    return filled
