"""Pairs (concept, sample) in which the concept occurs: all that estimates have to go over.

Most concepts are in few samples. Where c is absent, `P∘c` is P or nothing, as the operator says, so
a sum over samples is known from P alone, up to the samples that hold c:

    sum_x f(P, c)_x  =  p · sum_x P_x  +  sum over pairs (c, x) of  f(P, c)_x − p · P_x.

A level of a beam then costs members times pairs, not members times concepts times samples.
"""

import math
from functools import cached_property, partial
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, Shaped

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import device_neuron, device_table
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.quantities import Quantities
from optexp_jax.counts.table_cache import per_table
from optexp_jax.internal.padding import round_up_in_eighths
from optexp_jax.internal.tracing import note_trace

Tree = TypeVar("Tree")


class Pairs(eqx.Module):
    """Concept and sample of each pair, ascending. Padding has no concept, so it is dropped."""

    concept: Int64[Array, " pairs"]
    sample: Int64[Array, " pairs"]
    n_concepts: int = eqx.field(static=True)
    n_samples: int = eqx.field(static=True)


class TablePairs:
    """The pairs of one table; get them with `table_pairs`."""

    def __init__(self, table: ConceptTable):
        self._shape = table.n_concepts, table.n_samples
        device = device_table(table)
        patch, concept = np.asarray(device.entry_patch), np.asarray(device.entry_concept)
        real = patch < len(table.patches)
        self.entry_patch: Int64[np.ndarray, " entries"] = patch[real]
        """The patch of each (patch, concept of its signature) entry."""
        cells = concept[real] * table.n_samples + table.patches.sample[self.entry_patch]
        pairs, entry_pair = np.unique(cells, return_inverse=True)
        self.entry_pair: Int64[np.ndarray, " entries"] = entry_pair.astype(np.int64)
        """The pair of each entry."""
        self.concept, self.sample = np.divmod(pairs, table.n_samples)
        self.size = np.zeros(len(pairs), np.int64)
        """Locations of each pair."""
        np.add.at(self.size, self.entry_pair, table.patches.size[self.entry_patch])
        self._present, self._starts = np.unique(self.concept, return_index=True)
        self.n_padded = round_up_in_eighths(len(pairs), 64)
        self._n_entries = len(patch)

    def __len__(self) -> int:
        return len(self.concept)

    @property
    def fill_the_grid(self) -> bool:
        """Whether concepts are in most samples, so that it does not pay to skip the others."""
        return math.prod(self._shape) <= 2 * len(self)

    def by_concept(
        self, values: Int64[np.ndarray, "*rows pairs"]
    ) -> Int64[np.ndarray, "*rows concepts"]:
        """Values of pairs, summed up for each concept."""
        sums = np.add.reduceat(values, self._starts, axis=-1)
        if len(self._present) == self._shape[0]:
            return sums
        spread = np.zeros((*values.shape[:-1], self._shape[0]), np.int64)
        spread[..., self._present] = sums
        return spread

    @cached_property
    def device(self) -> Pairs:
        """The pairs on the device."""
        n_concepts, n_samples = self._shape
        with jax.enable_x64(True):
            return Pairs(
                self.pad(self.concept, n_concepts), self.pad(self.sample), n_concepts, n_samples
            )

    @cached_property
    def device_entry_pair(self) -> Int64[Array, " padded_entries"]:
        """The pair of each entry of `DeviceTable.entry_patch`; padding goes past the last pair."""
        with jax.enable_x64(True):
            missing = self._n_entries - len(self.entry_pair)
            return jnp.asarray(np.pad(self.entry_pair, (0, missing), constant_values=self.n_padded))

    def pad(
        self, values: Shaped[np.ndarray, " pairs"], filler: int = 0
    ) -> Shaped[Array, " padded_pairs"]:
        """Values of pairs on the device."""
        with jax.enable_x64(True):
            missing = self.n_padded - len(values)
            return jnp.asarray(np.pad(values, (0, missing), constant_values=filler))


@per_table
def table_pairs(table: ConceptTable) -> TablePairs:
    """The pairs of a table; the same object for as long as the table lives."""
    return TablePairs(table)


def pair_quantities(table: ConceptTable, neuron: NeuronCounts) -> Quantities:
    """Exact quantities of each concept in each sample it occurs in, `[pair]`, on the device."""
    pairs, device, counts = table_pairs(table), device_table(table), device_neuron(table, neuron)
    with jax.enable_x64(True):
        return _sum_pairs(
            counts.patch_inside,
            counts.patch_outside,
            device.patch_is_unique,
            device.entry_patch,
            pairs.device_entry_pair,
            pairs.n_padded,
        )


@partial(jax.jit, static_argnums=5)
def _sum_pairs(
    inside: Int64[Array, " patches"],
    outside: Int64[Array, " patches"],
    unique: Bool[Array, " patches"],
    entry_patch: Int64[Array, " entries"],
    entry_pair: Int64[Array, " entries"],
    n_pairs: int,
) -> Quantities:
    note_trace("pair_quantities")
    counts = jnp.stack([inside, outside], axis=1)
    nothing = jnp.zeros_like(counts)
    split = [
        jnp.where(unique[:, None], counts, nothing),
        jnp.where(unique[:, None], nothing, counts),
    ]
    columns = jnp.concatenate(split, axis=1).at[entry_patch].get(mode="fill", fill_value=0)
    iu, eu, ic, ec = jax.ops.segment_sum(columns, entry_pair, n_pairs).T
    return Quantities(iu=iu, ic=ic, eu=eu, ec=ec)


@jax.jit
def by_sample(pairs: Pairs, values: Tree, concepts: Int32[Array, " rows"]) -> Tree:
    """Values `[..., pair]` as rows `[..., row, sample]` of some concepts; 0 where one is absent."""
    note_trace("by_sample")
    # Pairs are sorted by concept and sample, padding last.
    cells = pairs.concept * pairs.n_samples + pairs.sample
    samples = jnp.arange(pairs.n_samples, dtype=jnp.int64)
    wanted = (concepts.astype(jnp.int64) * pairs.n_samples)[:, None] + samples[None, :]
    place = jnp.minimum(jnp.searchsorted(cells, wanted), len(cells) - 1)
    present = cells[place] == wanted

    def spread(part: Shaped[Array, "*parts pairs"]) -> Shaped[Array, "*parts rows samples"]:
        return jnp.where(present, part[..., place], jnp.zeros((), part.dtype))

    return jax.tree.map(spread, values)
