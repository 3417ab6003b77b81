"""Which concepts share signatures: the sparse side of Gram matrices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.concepts.signatures import Signatures, ranges
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.table_cache import per_table
from optexp_jax.internal.memory import TooLargeError, require_memory

MOST_CONCEPTS = 46_340
"""Pairs are numbered in 32 bits."""
GROUP = 8
"""Signatures to a group."""
NOWHERE = np.iinfo(np.int32).max
"""A signature that there is not."""
BYTES_PER_PAIR = 64
"""Of a search at its highest, measured: the Gram matrices, and what they are made of."""


@dataclass(frozen=True, eq=False)
class RowLists:
    """Lists of signatures one after another: list k is `rows[indptr[k]:indptr[k + 1]]`."""

    indptr: Int64[np.ndarray, " lists_plus_one"]
    rows: Int32[np.ndarray, " entries"]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def within(self, region: Bool[np.ndarray, " signatures"]) -> "RowLists":
        """What of each list lies in a region."""
        kept = region[self.rows]
        before = np.concatenate([[0], np.cumsum(kept)])
        return RowLists(before[self.indptr], self.rows[kept])


@dataclass(frozen=True, eq=False)
class GroupedPairs:
    """The signatures that hold each pair, cell by cell, in groups of one cell each.

    A device adds up each group before it adds the sums up by cell, which is the slow part.
    """

    cell: Int32[np.ndarray, " groups"]
    """Ascending."""
    holder: Int32[np.ndarray, "groups members"]
    """`NOWHERE` after the last signature of a cell."""


@dataclass(frozen=True, eq=False)
class PairLists:
    """For some pairs of concepts, a part each of `GroupedPairs.holder`, read row by row."""

    start: Int64[np.ndarray, " pairs"]
    count: Int64[np.ndarray, " pairs"]


@dataclass(frozen=True, eq=False)
class _Found:
    """Pairs looked up: the number of their cell, and how many signatures hold them."""

    cell: Int64[np.ndarray, " pairs"]
    count: Int64[np.ndarray, " pairs"]


class PairIndex:
    """All pairs a <= b of concepts that share a signature, signature by signature."""

    def __init__(self, signatures: Signatures):
        _check_size(signatures.n_concepts)
        self.n_concepts = signatures.n_concepts
        lengths = signatures.lengths
        counts = lengths * (lengths + 1) // 2
        self.indptr = np.concatenate([[0], np.cumsum(counts)])
        cell = np.empty(self.indptr[-1], np.int32)
        for length in np.unique(lengths[lengths > 0]):
            rows = np.flatnonzero(lengths == length)
            concepts = signatures.indices[signatures.indptr[rows][:, None] + np.arange(length)]
            first, second = np.triu_indices(length)
            cells = concepts[:, first].astype(np.int64) * self.n_concepts + concepts[:, second]
            cell[self.indptr[rows][:, None] + np.arange(len(first))] = cells
        self.cell: Int32[np.ndarray, " pairs"] = cell
        self.owner: Int32[np.ndarray, " pairs"] = np.repeat(
            np.arange(len(signatures), dtype=np.int32), counts
        )

    def signatures_of(
        self, a: Int32[np.ndarray, " pairs"], b: Int32[np.ndarray, " pairs"]
    ) -> RowLists:
        """The signatures that hold both concepts of each pair."""
        found = self._find(a, b)
        starts = self._matrix.indptr[found.cell].astype(np.int64)
        rows = self._matrix.indices[ranges(starts, found.count)].astype(np.int32, copy=False)
        return RowLists(np.concatenate([[0], np.cumsum(found.count)]), rows)

    @property
    def by_pair(self) -> GroupedPairs:
        """The signatures that hold each pair."""
        counts, edges = np.diff(self._matrix.indptr), self._group_edges
        position = np.repeat(edges[:-1] * GROUP - self._matrix.indptr[:-1], counts)
        holder = np.full(int(edges[-1]) * GROUP, NOWHERE, np.int32)
        holder[position + np.arange(len(position))] = self._matrix.indices
        return GroupedPairs(np.repeat(self._cells, np.diff(edges)), holder.reshape(-1, GROUP))

    @property
    def n_groups(self) -> int:
        return int(self._group_edges[-1])

    @cached_property
    def _group_edges(self) -> Int64[np.ndarray, " cells_plus_one"]:
        """Which groups of `by_pair` each cell has."""
        groups = -(-np.diff(self._matrix.indptr).astype(np.int64) // GROUP)
        return np.concatenate([[0], np.cumsum(groups)])

    def lists_of(self, a: Int32[np.ndarray, " pairs"], b: Int32[np.ndarray, " pairs"]) -> PairLists:
        """Where the signatures that hold both concepts of each pair stand in `by_pair`."""
        found = self._find(a, b)
        return PairLists(self._group_edges[found.cell] * GROUP, found.count)

    def _find(self, a: Int32[np.ndarray, " pairs"], b: Int32[np.ndarray, " pairs"]) -> _Found:
        if not len(self._cells):
            return _Found(np.zeros(len(a), np.int64), np.zeros(len(a), np.int64))
        cell = np.minimum(a, b).astype(np.int64) * self.n_concepts + np.maximum(a, b)
        at = np.minimum(np.searchsorted(self._cells, cell), len(self._cells) - 1)
        counts = (self._matrix.indptr[at + 1] - self._matrix.indptr[at]).astype(np.int64)
        return _Found(at, np.where(self._cells[at] == cell, counts, 0))

    @cached_property
    def _cells(self) -> Int32[np.ndarray, " cells"]:
        """The cells that any signature has a pair in."""
        return np.unique(self.cell)

    @cached_property
    def _matrix(self) -> scipy.sparse.csr_matrix:
        """Which signatures have a pair in each of those cells."""
        rows = np.searchsorted(self._cells, self.cell)
        ones = np.ones(len(self.cell))
        shape = len(self._cells), len(self.indptr) - 1
        return scipy.sparse.csr_matrix((ones, (rows, self.owner)), shape)

    def sum_on_host(
        self, weights: Int64[np.ndarray, "sets signatures"]
    ) -> Float64[np.ndarray, "sets n n"]:
        """Weights of signatures summed by pair, upper triangle only.

        The weights are integers below 2**53 in sum, so adding them as float64 is exact.
        """
        if len(weights) > 2:  # neurons, each with other signatures that weigh nothing
            return np.concatenate([self.sum_on_host(part[None]) for part in weights])
        sums = np.zeros((len(weights), self.n_concepts**2))
        rows = np.flatnonzero(weights.any(0))
        if len(rows) * 4 > weights.shape[1]:  # One sparse product; else no look at the others.
            sums[:, self._cells] = (self._matrix @ np.ascontiguousarray(weights.T, np.float64)).T
        else:
            starts = self.indptr[rows]
            counts = self.indptr[rows + 1] - starts
            cell = self.cell[ranges(starts, counts)]
            for total, part in zip(sums, weights[:, rows], strict=True):
                total += np.bincount(cell, np.repeat(part, counts), len(total))
        return sums.reshape(-1, self.n_concepts, self.n_concepts)


def _check_size(n_concepts: int) -> None:
    """Refuse tables of whose pairs a search could not hold the counts."""
    what = f"A search with proof over {n_concepts} concepts, of all pairs of them,"
    instead = "Choose fewer concepts with table.select(...), or use Beam() or NetDissect()."
    if n_concepts > MOST_CONCEPTS:
        raise TooLargeError(f"{what} is for at most {MOST_CONCEPTS}. {instead}")
    require_memory(BYTES_PER_PAIR * n_concepts**2, what, instead)


@per_table
def pair_index(table: ConceptTable) -> PairIndex:
    """The pair index of a table; the same object for as long as the table lives."""
    return PairIndex(table.signatures)
