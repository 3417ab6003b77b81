"""The last two concepts: what any function of T and two more reaches, for all pairs at once."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.shares.cell_counts import CellCounts
from optexp_jax.bounds.tight.shares.occurring import OccurringSets


@dataclass(frozen=True, eq=False)
class PairFunctions:
    """U of T with each pair of some concepts."""

    ids: Int64[np.ndarray, " some"]
    """Those of which some pair may reach what is needed."""
    u: Float64[np.ndarray, "some some"]
    """Up to rounding."""


def functions_of_pairs(
    counts: CellCounts,
    kept: Bool[np.ndarray, " concepts"],
    pairs: OccurringSets,
    v: float,
    needed: float,
) -> PairFunctions:
    """U of T with each pair of the kept concepts (Proposition 25), where it may reach `needed`.

    What does not meet in a cell adds up there, but for the rest of the cell; that is looked at only
    for concepts that the cell has.
    """
    first, second = pairs.concepts.T
    met = np.flatnonzero(kept[first] & kept[second])
    first, second = first[met], second[met]
    meeting = np.zeros(len(met))
    single = counts.single[:, 0] - v * counts.single[:, 1]
    whole = counts.whole[:, 0] - v * counts.whole[:, 1]
    own = np.maximum(single, 0.0).sum(0)
    own += (np.maximum(whole[1:, None] - single[1:], 0.0) - np.maximum(whole[1:, None], 0.0)).sum(0)
    for cell in range(len(counts.whole)):
        inside, outside = counts.pair[cell, 0][met], counts.pair[cell, 1][met]
        here = np.flatnonzero(inside + outside)
        both = inside[here] - v * outside[here]
        a, b = single[cell][first[here]], single[cell][second[here]]
        change = np.maximum(both, 0.0) + np.maximum(a - both, 0.0) - np.maximum(a, 0.0)
        change += np.maximum(b - both, 0.0) - np.maximum(b, 0.0)
        if cell:
            rest = whole[cell] - a - b
            change += np.maximum(rest + both, 0.0) - np.maximum(rest, 0.0)
        meeting[here] += change
    base = float(np.maximum(whole[1:], 0.0).sum())
    most = own + _most_of_rest(single[1:], kept)
    for end in (first, second):
        np.maximum.at(most, end, (own + _most_of_rest(single[1:], kept))[end] + meeting)
    ids = np.flatnonzero(kept)
    ids = ids[base + most[ids] + own[ids].max(initial=0.0) >= needed]
    return PairFunctions(ids, _all_pairs(ids, base, own, single, whole, first, second, meeting))


def _most_of_rest(
    single: Float64[np.ndarray, "cells concepts"], kept: Bool[np.ndarray, " concepts"]
) -> Float64[np.ndarray, " concepts"]:
    """What the rest of cells can be worth without a concept and another, beyond each: at most.

    `max(0, W − a − b)` grows by at most |a| where a is taken away, whatever b is.
    """
    size = np.abs(single)
    limit = np.where(kept, size, 0.0).max(1, initial=0.0)
    return np.minimum(size, limit[:, None]).sum(0)


def _all_pairs(
    ids: Int64[np.ndarray, " some"],
    base: float,
    own: Float64[np.ndarray, " concepts"],
    single: Float64[np.ndarray, "cells concepts"],
    whole: Float64[np.ndarray, " cells"],
    first: Int32[np.ndarray, " pairs"],
    second: Int32[np.ndarray, " pairs"],
    meeting: Float64[np.ndarray, " pairs"],
) -> Float64[np.ndarray, "some some"]:
    found = (base + own[ids])[:, None] + own[ids][None, :]
    for cell in range(1, len(whole)):
        w = single[cell][ids]
        there = np.flatnonzero(w)
        rest = _rest(w[there], float(whole[cell]))
        if len(there) == len(ids):
            found += rest
        elif len(there):
            found[np.ix_(there, there)] += rest
    number = np.full(len(own), -1)
    number[ids] = np.arange(len(ids))
    first, second = number[first], number[second]
    both = np.flatnonzero((first >= 0) & (second >= 0))
    first, second, meeting = first[both], second[both], meeting[both]
    found[first, second] += meeting
    found[second, first] += meeting
    return found


def _rest(w: Float64[np.ndarray, " some"], whole: float) -> Float64[np.ndarray, "some some"]:
    """What the rest of a cell is worth without both, beyond what it is without each."""
    each = np.maximum(whole - w, 0.0)
    both = np.maximum((whole - w)[:, None] - w[None, :], 0.0)
    both -= each[:, None]
    both -= each[None, :]
    both += max(whole, 0.0)
    return both


@dataclass(frozen=True, eq=False)
class PairNumbers:
    """Where each pair of concepts stands in the list of those that occur."""

    keys: Int64[np.ndarray, " pairs"]
    n_concepts: int

    def find(
        self, a: Int64[np.ndarray, " n"], b: Int64[np.ndarray, " n"]
    ) -> Int64[np.ndarray, " n"]:
        """-1 for pairs that do not occur."""
        key = np.minimum(a, b) * self.n_concepts + np.maximum(a, b)
        if not len(self.keys):
            return np.full(len(key), -1)
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[at] == key, at, -1)


def cells_with_pairs(
    counts: CellCounts,
    numbers: PairNumbers,
    a: Int64[np.ndarray, " sets"],
    b: Int64[np.ndarray, " sets"],
) -> Cells:
    """The cells of T with each of these pairs; a and b are the last two concepts of their sets."""
    at = numbers.find(a, b)
    n_cells = len(counts.whole)
    both = np.zeros((n_cells, 2, len(at)))
    both[:, :, at >= 0] = counts.pair[:, :, at[at >= 0]]
    of_a, of_b = counts.single[:, :, a] - both, counts.single[:, :, b] - both
    neither = counts.whole[:, :, None] - of_a - of_b - both
    neither[0] = 0.0
    found = np.stack([neither, of_a, of_b, both]).reshape(4 * n_cells, 2, len(a))
    exact = np.rint(found).astype(np.int64)
    return Cells(exact[:, 0], exact[:, 1])
