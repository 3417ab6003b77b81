"""Arrays of tables and neurons on the device, each moved there once, when first asked for."""

import weakref
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int64, Shaped, UInt32

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.table_cache import per_neuron, per_table
from optexp_jax.internal.mesh import on_every_device
from optexp_jax.internal.padding import round_up_in_eighths
from optexp_jax.internal.transfers import put

LANES = 32
"""Signatures to a word of the packed membership matrix."""


class DeviceTable:
    """Device arrays of one table; get it with `device_table`.

    Axes over signatures, patches and entries are padded to a few sizes, so that tables of about
    the same size share compiled programs. Padding is harmless: padded patches have no locations.
    """

    def __init__(self, table: ConceptTable):
        self._table = weakref.proxy(table)
        self._lengths = table.signatures.lengths[table.patches.signature]
        self.n_words = round_up_in_eighths(-(-len(table.signatures) // LANES), 4)
        self.n_patches = round_up_in_eighths(len(table.patches), 64)
        self.n_entries = round_up_in_eighths(int(self._lengths.sum()), 256)

    @cached_property
    def membership(self) -> UInt32[Array, "concepts words"]:
        """Which signatures hold each concept, 32 to a word."""
        return on_every_device(put(self.host_membership)[0])

    @cached_property
    def host_membership(self) -> UInt32[np.ndarray, "concepts words"]:
        """The same on the host."""
        signatures = self._table.signatures
        words = np.zeros((self._table.n_concepts, self.n_words), np.uint32)
        word, lane = np.divmod(signatures.owners, LANES)
        bits = np.left_shift(np.uint32(1), lane.astype(np.uint32))
        np.bitwise_or.at(words, (signatures.indices, word), bits)
        return words

    @cached_property
    def patch_signature(self) -> Int64[Array, " padded"]:
        """The signature of each patch."""
        return _as_int64(_pad(self._table.patches.signature, self.n_patches))

    @cached_property
    def patch_sample(self) -> Int64[Array, " padded"]:
        """The sample of each patch, ascending."""
        last = self._table.n_samples - 1
        return _as_int64(_pad(self._table.patches.sample, self.n_patches, last))

    @cached_property
    def patch_is_unique(self) -> Bool[Array, " padded"]:
        """Patches of the paper's unique elements (exactly one concept)."""
        return jnp.asarray(_pad(self._lengths == 1, self.n_patches))

    @cached_property
    def patch_is_common(self) -> Bool[Array, " padded"]:
        """Patches of the paper's common elements (several concepts)."""
        return jnp.asarray(_pad(self._lengths > 1, self.n_patches))

    @cached_property
    def entry_patch(self) -> Int64[Array, " entries"]:
        """The patch of each (patch, concept of its signature) entry, patch by patch.

        Padded entries point past the last patch, where reads give nothing.
        """
        owners = np.repeat(np.arange(len(self._table.patches)), self._lengths)
        return _as_int64(_pad(owners, self.n_entries, self.n_patches))

    @cached_property
    def entry_concept(self) -> Int64[Array, " entries"]:
        """The concept of each such entry."""
        signatures, patches = self._table.signatures, self._table.patches
        starts = np.cumsum(self._lengths) - self._lengths
        within = np.arange(self._lengths.sum()) - np.repeat(starts, self._lengths)
        first = np.repeat(signatures.indptr[patches.signature], self._lengths)
        return _as_int64(_pad(signatures.indices[first + within], self.n_entries))


class DeviceNeuron:
    """Device arrays of one neuron's counts; get it with `device_neuron`."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts):
        neuron.require_table(table)
        device = device_table(table)
        inside = neuron.patch_inside(table)
        by_patch = [
            _pad(counts, device.n_patches) for counts in (inside, table.patches.size - inside)
        ]
        # Laid out like the words of `DeviceTable.membership`.
        by_signature = [
            _pad(counts, device.n_words * LANES).reshape(-1, LANES)
            for counts in (neuron.inside, neuron.outside)
        ]
        with jax.enable_x64(True):
            moved = put(*by_patch, *by_signature)
        self.patch_inside: Int64[Array, " padded"] = moved[0]
        self.patch_outside: Int64[Array, " padded"] = moved[1]
        self.inside: Int64[Array, "words lanes"] = on_every_device(moved[2])
        self.outside: Int64[Array, "words lanes"] = on_every_device(moved[3])


@per_table
def device_table(table: ConceptTable) -> DeviceTable:
    """The device side of a table; the same object for as long as the table lives."""
    return DeviceTable(table)


@per_neuron
def device_neuron(table: ConceptTable, neuron: NeuronCounts) -> DeviceNeuron:
    """The device side of a neuron's counts; the same object for as long as the counts live."""
    return DeviceNeuron(table, neuron)


def _pad(array: Shaped[np.ndarray, " n"], size: int, value: int = 0) -> Shaped[np.ndarray, " size"]:
    padded = np.full(size, value, array.dtype)  # np.pad takes ten times as long on small arrays.
    padded[: len(array)] = array
    return padded


def _as_int64(array: Shaped[np.ndarray, "..."]) -> Int64[Array, "..."]:
    with jax.enable_x64(True):
        return jnp.asarray(array, jnp.int64)
