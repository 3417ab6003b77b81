"""The last two concepts: what any function of T and two more reaches, for all pairs at once."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.shares.cell_counts import CellCounts
from optexp_jax.bounds.tight.shares.shares import DirectedPairs


def functions_of_pairs(
    counts: CellCounts, ids: Int64[np.ndarray, " some"], pairs: DirectedPairs, v: float
) -> Float64[np.ndarray, "some some"]:
    """U of T with each pair of these concepts, up to rounding (Proposition 28).

    `pairs` are those of them that meet. What does not meet in a cell adds up there, but for the
    rest of the cell; that is looked at only for concepts that the cell has.
    """
    n_concepts = counts.single.shape[2]
    number = np.full(n_concepts, -1)
    number[ids] = np.arange(len(ids))
    forth = pairs.first < pairs.second
    first, second, pair = number[pairs.first[forth]], number[pairs.second[forth]], pairs.pair[forth]
    own = np.zeros(len(ids))
    meeting = np.zeros(len(first))
    blocks: list[tuple[np.ndarray, np.ndarray]] = []
    base = 0.0
    for cell in range(len(counts.whole)):
        w = counts.single[cell, 0][ids] - v * counts.single[cell, 1][ids]
        whole = float(counts.whole[cell, 0] - v * counts.whole[cell, 1])
        own += np.maximum(w, 0.0)
        if cell:
            base += max(whole, 0.0)
            own += np.maximum(whole - w, 0.0) - max(whole, 0.0)
            there = np.flatnonzero(w)
            blocks.append((there, _rest(w[there], whole)))
        met = np.flatnonzero(counts.pair[cell].any(0)[pair])
        both = counts.pair[cell, 0][pair[met]] - v * counts.pair[cell, 1][pair[met]]
        a, b = w[first[met]], w[second[met]]
        change = np.maximum(both, 0.0) + np.maximum(a - both, 0.0) - np.maximum(a, 0.0)
        change += np.maximum(b - both, 0.0) - np.maximum(b, 0.0)
        if cell:
            change += np.maximum(whole - a - b + both, 0.0) - np.maximum(whole - a - b, 0.0)
        meeting[met] += change
    found = base + own[:, None] + own[None, :]
    for there, rest in blocks:
        found[np.ix_(there, there)] += rest
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
