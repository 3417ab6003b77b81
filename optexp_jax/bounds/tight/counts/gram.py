"""Gram matrices: exact overlaps of all pairs of concepts over a region.

A region is a set of signatures. Two kernels give the same integers: one touches only the signatures
of the region, on the host; one streams over all entries with the others weighted 0, on the device.
There a region arrives as one bit a signature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Int32, Int64, Num, UInt32

from optexp_jax.bounds.tight.counts.device_lists import (
    NeuronLists,
    Sizes,
    SparseTable,
    count_on,
    pack_region,
    sparse_table,
)
from optexp_jax.bounds.tight.counts.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.counts.pair_index import pair_index
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import LANES
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.table_cache import per_table
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.padding import round_up_to_power_of_two
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch_all, put, run


@pytree
class Gram:
    """`inside[r, a, b] = |a ∩ b ∩ N|` and `outside[r, a, b] = |a ∩ b \\ N|` over regions r."""

    inside: Int64[Array, "regions concepts concepts"]
    outside: Int64[Array, "regions concepts concepts"]


@dataclass(frozen=True, eq=False)
class HostGram:
    """Gram matrices of one region, on the host."""

    inside: Int64[np.ndarray, "concepts concepts"]
    outside: Int64[np.ndarray, "concepts concepts"]

    @classmethod
    def of(cls, gram: Gram) -> "HostGram":
        inside, outside = fetch_all(gram.inside, gram.outside)
        return cls(inside[0], outside[0])


@dataclass(frozen=True, eq=False)
class ConceptCounts:
    """Counts of each concept by itself, over a region."""

    inside: Int64[np.ndarray, " concepts"]
    outside: Int64[np.ndarray, " concepts"]


@partial(jax.jit, static_argnames="n_concepts")
def _sum_on_device(
    table: SparseTable, weights: Int64[Array | np.ndarray, "sets signatures"], *, n_concepts: int
) -> Int64[Array, "sets n n"]:
    """Weights of signatures summed by pair of concepts, upper triangle only."""
    note_trace("sums")
    of_groups = jnp.asarray(weights).at[:, table.holder].get(mode="fill", fill_value=0).sum(2)
    # One sum over wide rows is faster than one a set of weights.
    sums = jnp.zeros((n_concepts**2, len(weights)), jnp.int64)
    sums = sums.at[table.pair].add(of_groups.T, indices_are_sorted=True, mode="drop")
    return sums.T.reshape(-1, n_concepts, n_concepts)


@partial(jax.jit, static_argnames="n_concepts")
def _sum_within(
    counted: NeuronLists, region: UInt32[Array, " words"], *, n_concepts: int
) -> Int64[Array, "two n n"]:
    """The neuron's counts, and those outside of it, summed over a region."""
    lanes = jnp.arange(LANES, dtype=jnp.uint32)
    here = ((region[:, None] >> lanes[None, :]) & jnp.uint32(1) != 0).reshape(1, -1)
    weights = jnp.where(here, jnp.stack([counted.inside, counted.outside]), 0)
    return _sum_on_device(counted.table, weights, n_concepts=n_concepts)


def count_several(
    table: ConceptTable,
    neurons: Sequence[NeuronCounts],
    on_host: bool | None = None,
    filled: int | None = None,
) -> Num[Array | np.ndarray, "neurons n n"]:
    """Active locations that pairs of concepts share, upper triangles only.

    After them come as many empty ones as make `filled`.
    """
    on_host = prefers_host_kernels() if on_host is None else on_host
    if filled is None:
        filled = len(neurons) if on_host else round_up_to_power_of_two(len(neurons))
    n = len(table.signatures) if on_host else Sizes.of(table).n_words * LANES
    weights = np.zeros((filled, n), np.int64)
    for row, neuron in zip(weights, neurons, strict=False):
        row[: len(neuron.inside)] = neuron.inside
    if on_host:
        return pair_index(table).sum_on_host(weights)
    with jax.enable_x64(True):
        lists = sparse_table(table, Sizes.of(table))
        return run(_sum_on_device, lists, weights, n_concepts=table.n_concepts)


def one_of_several(
    several: Num[Array | np.ndarray, "neurons n n"], k: int
) -> Num[Array | np.ndarray, "one n n"]:
    """What `count_several` counted of one neuron."""
    if isinstance(several, np.ndarray):
        return several[k : k + 1]
    with jax.enable_x64(True):
        return run(_one, several, np.int32(k))


@dataclass(frozen=True, eq=False)
class Counted:
    """What is known of a neuron's overlaps before its search begins."""

    active: Num[Array | np.ndarray, "one n n"] | None = None
    """Active locations that pairs share, upper triangle only."""
    gram: Gram | None = None
    """The Gram matrices of the whole table."""


class Overlaps:
    """Overlaps of one neuron's concepts, over any region of its table."""

    def __init__(
        self,
        table: ConceptTable,
        neuron: NeuronCounts,
        on_host: bool | None = None,
        sizes: Sizes | None = None,
        counted: Counted | None = None,
    ):
        """`sizes` fills up lists on the device to those of another table."""
        self.table = table
        self.neuron = neuron
        self.on_host = prefers_host_kernels() if on_host is None else on_host
        self._sizes = sizes
        self._known = Counted() if counted is None else counted

    @cached_property
    def sizes(self) -> Sizes:
        """How long lists on the device are."""
        return Sizes.of(self.table) if self._sizes is None else self._sizes

    @cached_property
    def on_device(self) -> NeuronLists:
        """The neuron's counts on the device."""
        return count_on(self.table, self.neuron, self.sizes)

    @cached_property
    def everywhere(self) -> Gram:
        """The Gram matrices of the whole table."""
        if self._known.gram is not None:
            return self._known.gram
        with jax.enable_x64(True):
            return run(_complement, self.total, self.active)

    @property
    def active(self) -> Num[Array | np.ndarray, "one n n"]:
        """Active locations that pairs share, upper triangle only: what `complement` takes."""
        if self._known.active is not None:
            return self._known.active
        if self.on_host:
            return pair_index(self.table).sum_on_host(self.neuron.inside[None])
        with jax.enable_x64(True):
            return _only_inside(self.on_device, n_concepts=self.table.n_concepts)

    @property
    def total(self) -> Int64[Array, "one n n"]:
        """What all neurons of the table share, computed once."""
        return total_gram(self.table, None if self.on_host else self.sizes)

    @cached_property
    def everywhere_on_host(self) -> HostGram:
        return HostGram.of(self.everywhere)

    @cached_property
    def own(self) -> ConceptCounts:
        """Counts of each concept over the whole table."""
        if self.on_host:
            whole = self.everywhere_on_host
            return ConceptCounts(whole.inside.diagonal(), whole.outside.diagonal())
        with jax.enable_x64(True):
            return ConceptCounts(*fetch_all(*_own(self.everywhere)))

    def all_pairs(self, region: Bool[np.ndarray, " signatures"]) -> Gram:
        """The Gram matrices of a region; from its complement where that is smaller."""
        with jax.enable_x64(True):
            if not self.on_host:
                (words,) = put(pack_region(region, self.sizes))
                sums = _sum_within(self.on_device, words, n_concepts=self.table.n_concepts)
                return run(_of_region, self.everywhere, sums, np.bool_(True))
            directly = region.sum() * 2 <= len(region)
            kept = region if directly else ~region
            weights = np.stack([self.neuron.inside * kept, self.neuron.outside * kept])
            sums = pair_index(self.table).sum_on_host(weights)
            return run(_of_region, self.everywhere, sums, directly)


@per_table
def total_gram(table: ConceptTable, sizes: Sizes | None) -> Int64[Array, "one n n"]:
    """All locations that pairs of concepts share; summed on the host unless there are `sizes`."""
    with jax.enable_x64(True):
        if sizes is None:
            return run(_mirrored, pair_index(table).sum_on_host(table.sizes[None]))
        return _all_locations(sparse_table(table, sizes), n_concepts=table.n_concepts)


@partial(jax.jit, static_argnames="n_concepts")
def _only_inside(counted: NeuronLists, *, n_concepts: int) -> Int64[Array, "one n n"]:
    return _sum_on_device(counted.table, counted.inside[None], n_concepts=n_concepts)


@partial(jax.jit, static_argnames="n_concepts")
def _all_locations(table: SparseTable, *, n_concepts: int) -> Int64[Array, "one n n"]:
    return _mirror(_sum_on_device(table, table.sizes[None], n_concepts=n_concepts))


class RegionCounts:
    """Overlaps over one region, of each concept and of pairs of some of them."""

    def __init__(self, overlaps: Overlaps, region: Bool[np.ndarray, " signatures"]):
        self._overlaps = overlaps
        self._region = region
        # What a region lacks of the whole table is often less than what it holds.
        self._directly = int(region.sum()) * 2 <= len(region)

    @cached_property
    def _rows(self) -> Int64[np.ndarray, " signatures"]:
        return np.flatnonzero(self._region if self._directly else ~self._region)

    @cached_property
    def _held(self) -> scipy.sparse.csr_array:
        """Which concepts those signatures hold."""
        return self._overlaps.table.signatures.incidence[self._rows]

    @property
    def _weights(self) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        neuron = self._overlaps.neuron
        return neuron.inside[self._rows], neuron.outside[self._rows]

    @cached_property
    def own(self) -> ConceptCounts:
        """Counts of all concepts of the table."""
        inside, outside = (self._held.T @ part for part in self._weights)
        if self._directly:
            return ConceptCounts(inside, outside)
        whole = self._overlaps.own
        return ConceptCounts(whole.inside - inside, whole.outside - outside)

    def gram(self, concepts: LocalConcepts) -> Gram:
        """The Gram matrices of some concepts."""
        if concepts.is_everything:
            return self._overlaps.all_pairs(self._region)
        if not self._overlaps.on_host:
            padded = np.zeros(concepts.size, np.int32)
            padded[: len(concepts.ids)] = concepts.ids
            real = np.arange(concepts.size) < len(concepts.ids)
            with jax.enable_x64(True):
                return run(_pick, self._overlaps.all_pairs(self._region), padded, real)
        held = self._held[:, concepts.ids]
        whole = self._overlaps.everywhere_on_host

        def sums(
            weights: Int64[np.ndarray, " rows"], everywhere: Int64[np.ndarray, "n n"]
        ) -> Int64[np.ndarray, "one m m"]:
            weighted = scipy.sparse.diags_array(weights, dtype=np.int64) @ held
            found = (held.T @ weighted).toarray()
            if not self._directly:
                found = everywhere[np.ix_(concepts.ids, concepts.ids)] - found
            padded = np.zeros((1, concepts.size, concepts.size), np.int64)
            padded[0, : len(found), : len(found)] = found
            return padded

        inside, outside = self._weights
        with jax.enable_x64(True):
            return Gram(*put(sums(inside, whole.inside), sums(outside, whole.outside)))


def _mirror(upper: Num[Array | np.ndarray, "sets n n"]) -> Int64[Array, "sets n n"]:
    exact = jnp.asarray(upper).astype(jnp.int64)
    return exact + jnp.swapaxes(jnp.triu(exact, 1), 1, 2)


@jax.jit
def _mirrored(upper: Num[Array | np.ndarray, "one n n"]) -> Int64[Array, "one n n"]:
    return _mirror(upper)


@jax.jit
def _one(several: Int64[Array, "neurons n n"], k: Int32[Array, ""]) -> Int64[Array, "one n n"]:
    return jax.lax.dynamic_slice_in_dim(several, k, 1)


@jax.jit
def _own(gram: Gram) -> tuple[Int64[Array, " n"], Int64[Array, " n"]]:
    return jnp.diagonal(gram.inside[0]), jnp.diagonal(gram.outside[0])


def complement(
    total: Int64[Array, "one n n"], inside: Num[Array | np.ndarray, "regions n n"]
) -> Gram:
    """The Gram matrices, from those of all locations and the upper triangle of the active ones."""
    mirrored = _mirror(inside)
    return Gram(mirrored, total - mirrored)


@jax.jit
def _complement(total: Int64[Array, "one n n"], inside: Num[Array | np.ndarray, "one n n"]) -> Gram:
    note_trace("complement")
    return complement(total, inside)


@jax.jit
def _of_region(
    whole: Gram, sums: Num[Array | np.ndarray, "two n n"], directly: Bool[Array | np.ndarray, ""]
) -> Gram:
    """From sums over the region, or over what it lacks of the whole table."""
    note_trace("of_region")
    mirrored = _mirror(sums)
    held = Gram(mirrored[:1], mirrored[1:])
    return jax.lax.cond(directly, lambda: held, lambda: jax.tree.map(jnp.subtract, whole, held))


@jax.jit
def _pick(whole: Gram, ids: Int32[Array, " m"], real: Bool[Array, " m"]) -> Gram:
    """The matrices of some concepts, and empty ones."""
    note_trace("pick")

    def pick(values: Int64[Array, "one n n"]) -> Int64[Array, "one m m"]:
        kept = real[:, None] & real[None, :]
        return jnp.where(kept[None], values[:, ids[:, None], ids[None, :]], 0)

    return Gram(pick(whole.inside), pick(whole.outside))


@jax.jit
def cells_of(
    gram: Gram, a: Int32[Array | np.ndarray, " pairs"], b: Int32[Array | np.ndarray, " pairs"]
) -> Int64[Array, "two pairs"]:
    """What both concepts of some pairs hold, inside and outside, over the only region."""
    note_trace("cells_of")
    return jnp.stack([gram.inside[0, a, b], gram.outside[0, a, b]])


@jax.jit
def stack_grams(grams: Sequence[Gram]) -> Gram:
    """The matrices of several regions together."""
    note_trace("stack_grams")
    return Gram(
        jnp.concatenate([gram.inside for gram in grams]),
        jnp.concatenate([gram.outside for gram in grams]),
    )
