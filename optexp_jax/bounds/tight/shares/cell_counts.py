"""Counts over the cells of the concepts that are in: of each concept, and of each pair that meets.

The concepts T that are in cut the locations into 2**|T| cells, numbered by their bits; cell 0 is
what none of them holds. Two concepts that share no signature share nothing in any cell, so only
the pairs that occur are counted.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.bounds.tight.shares.occurring import OccurringSets
from optexp_jax.concepts.signatures import ranges
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Active locations (row 0) and others (row 1) of each cell: whole numbers, exact in float64."""

    whole: Float64[np.ndarray, "cells two"]
    """Of the cell. That of cell 0 leaves out what no concept of the table holds."""
    single: Float64[np.ndarray, "cells two concepts"]
    pair: Float64[np.ndarray, "cells two pairs"]
    """Of the pairs that occur."""


class CellCounter:
    """Counts the cells of any few concepts of one neuron's table."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts, pairs: OccurringSets):
        self._table = table
        self._pairs = pairs
        signatures = table.signatures
        entries = pairs.by_signature
        self._pair_of_entry = entries.pair
        self._pair_starts = np.full(len(signatures) + 1, len(entries.pair))
        self._pair_starts[: len(entries.indptr)] = entries.indptr
        both = np.stack([neuron.inside, neuron.outside])
        both[:, signatures.lengths == 0] = 0
        self._counts = both
        self._cell = np.zeros(len(signatures), np.uint8)  # of each signature; 0 between two counts
        self._whole = both.sum(1).astype(np.float64)
        self._single = np.stack([signatures.incidence.T @ each for each in both]).astype(np.float64)
        active = pairs.sum(neuron.inside)
        self._pair = np.stack([active, pairs.total - active])

    def count(self, chosen: Int32[np.ndarray, " chosen"]) -> CellCounts:
        """Over the cells of the chosen concepts."""
        table, pairs = self._table, self._pairs
        n_cells, n_pairs = 1 << len(chosen), len(pairs)
        holders, cell = table.signatures.holders, self._cell
        touched: list[np.ndarray] = [np.empty(0, np.int64)]
        for j, c in enumerate(chosen.tolist()):
            held = holders.indices[holders.indptr[c] : holders.indptr[c + 1]]
            touched.append(held[cell[held] == 0])
            cell[held] |= 1 << j
        rows = np.concatenate(touched)
        numbers, counts = cell[rows].astype(np.int64), self._counts[:, rows].astype(np.float64)
        cell[rows] = 0
        whole = np.stack([np.bincount(numbers, each, n_cells) for each in counts], 1).astype(float)
        single = self._summed(
            numbers,
            counts,
            table.signatures.indptr,
            table.signatures.indices,
            rows,
            n_cells,
            table.n_concepts,
        )
        pair = self._summed(
            numbers, counts, self._pair_starts, self._pair_of_entry, rows, n_cells, n_pairs
        )
        whole[0] = self._whole - whole[1:].sum(0)
        single[0] = self._single - single[1:].sum(0)
        pair[0] = self._pair - pair[1:].sum(0)
        return CellCounts(whole, single, pair)

    def _summed(
        self,
        numbers: Int64[np.ndarray, " rows"],
        counts: Float64[np.ndarray, "two rows"],
        indptr: Int64[np.ndarray, " signatures_plus_one"],
        entries: Int32[np.ndarray, " entries"],
        rows: Int64[np.ndarray, " rows"],
        n_cells: int,
        width: int,
    ) -> Float64[np.ndarray, "cells two width"]:
        """Counts of signatures summed up by cell and entry."""
        starts = indptr[rows]
        repeats = indptr[rows + 1] - starts
        place = entries[ranges(starts, repeats)] + np.repeat(numbers * width, repeats)
        sums = np.empty((n_cells, 2, width))
        for k, each in enumerate(counts):
            sums[:, k] = np.bincount(place, np.repeat(each, repeats), n_cells * width).reshape(
                n_cells, width
            )
        return sums
