"""Exact quantities of concepts and beam members, summed up on the host.

On a CPU, where the device is the same cores, skipping what is zero beats streaming over it, and
small tables are spared the calls of compiled programs. All quantities are stacked in the order of
the fields of `Quantities` and `NeuronQuantities`.
"""

from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Int32, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import held_on_host
from optexp_jax.counts.table_cache import per_table
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.beam.guides.base import Members
from optexp_jax.methods.beam.guides.pairs import table_pairs

BLOCK = 2**19
"""About how many members times patches are looked at at once, so that they stay in the cache."""


class _TableSums:
    """What sums over the patches of one table need; get it with `_table_sums`."""

    def __init__(self, table: ConceptTable):
        pairs, patches = table_pairs(table), table.patches
        lengths = table.signatures.lengths[patches.signature]
        self.unique: Bool[np.ndarray, " patches"] = lengths == 1
        """Patches of the paper's unique elements."""
        self.common: Bool[np.ndarray, " patches"] = lengths > 1
        self.sample = patches.sample
        self.cells = pairs.concept * table.n_samples + pairs.sample
        """Where each pair lies on the grid of concepts and samples."""
        rows = np.concatenate([pairs.entry_pair, len(pairs) + self.sample])
        columns = np.concatenate([pairs.entry_patch, np.arange(len(patches))])
        shape = len(pairs) + table.n_samples, len(patches)
        # By columns: products then read counts in their order, and add them up in the cache.
        self.patches_of: scipy.sparse.csc_matrix = scipy.sparse.csc_matrix(
            (np.ones(len(rows), np.int64), (rows, columns)), shape
        )
        """The patches of each pair, and then of each sample."""


@per_table
def _table_sums(table: ConceptTable) -> _TableSums:
    return _TableSums(table)


class HostQuantities:
    """Quantities of one neuron; `DeviceQuantities` are the same integers."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts):
        neuron.require_table(table)
        self._table = table
        self._pairs = table_pairs(table)
        self._sums = sums = _table_sums(table)
        self._inside = inside = neuron.patch_inside(table)
        self._outside = outside = table.patches.size - inside
        columns = np.empty((len(inside), 5), np.int64)
        parts = ((inside, sums.unique), (inside, sums.common))
        parts += ((outside, sums.unique), (outside, sums.common))
        for k, (counts, chosen) in enumerate(parts):
            np.multiply(counts, chosen, out=columns[:, k])
        columns[:, 4] = inside
        found = (sums.patches_of @ columns).T
        self.of_pairs: Int64[np.ndarray, "4 pairs"] = found[:4, : len(self._pairs)]
        """Of each pair (concept, sample) of the table."""
        self.neuron: Int64[np.ndarray, "5 samples"] = found[[4, 0, 1, 2, 3], len(self._pairs) :]
        """What there is to cover in each sample."""

    @cached_property
    def grid(self) -> Int64[np.ndarray, "4 concepts samples"]:
        """Of each concept in each sample."""
        grid = np.zeros((4, self._table.n_concepts, self._table.n_samples), np.int64)
        grid.reshape(4, -1)[:, self._sums.cells] = self.of_pairs
        return grid

    @cached_property
    def of_padded_pairs(self) -> Int64[np.ndarray, "4 padded_pairs"]:
        """Of each pair, filled up to `TablePairs.n_padded`."""
        padded = np.zeros((4, self._pairs.n_padded), np.int64)
        padded[:, : len(self._pairs)] = self.of_pairs
        return padded

    def of_concepts(
        self, concepts: Int32[np.ndarray, " rows"]
    ) -> Int64[np.ndarray, "4 rows samples"]:
        """Of some concepts in each sample."""
        if self._pairs.fill_the_grid:
            return self.grid[:, concepts]
        rows = np.zeros((4, len(concepts), self._table.n_samples), np.int64)
        starts = np.searchsorted(self._pairs.concept, concepts)
        stops = np.searchsorted(self._pairs.concept, concepts, side="right")
        for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            rows[:, row, self._pairs.sample[start:stop]] = self.of_pairs[:, start:stop]
        return rows

    def of_members(
        self, members: Members, operators: tuple[Operator, ...]
    ) -> Int64[np.ndarray, "4 members samples"]:
        """Of each member as a whole."""
        if members.size == 1:
            return self.of_concepts(members.last_concepts[: members.count])
        batch = members.batch(members.count, operators)
        step = max(1, BLOCK // len(self._inside))
        blocks = [
            self._of_formulas(batch.part(start, start + step))
            for start in range(0, len(batch), step)
        ]
        return np.concatenate(blocks, axis=1)

    def _of_formulas(self, batch: FormulaBatch) -> Int64[np.ndarray, "4 formulas samples"]:
        n_patches, n_samples = len(self._inside), self._table.n_samples
        held = held_on_host(self._table, batch)[:, self._table.patches.signature]
        # One dimension: numpy finds what is not zero in matrices several times slower.
        formula, patch = np.divmod(np.flatnonzero(held.reshape(-1)), n_patches)
        # What a formula holds has a concept, so it is unique or common.
        kind = formula * 2 + self._sums.common[patch]
        cell = kind * n_samples + self._sums.sample[patch]
        sums = [
            np.bincount(cell, counts[patch], len(batch) * 2 * n_samples)
            for counts in (self._inside, self._outside)
        ]
        # Counts add up to less than 2**53, so that their sums as float64 are exact.
        by_kind = np.stack(sums).astype(np.int64).reshape(2, len(batch), 2, n_samples)
        return by_kind.transpose(0, 2, 1, 3).reshape(4, len(batch), n_samples)
