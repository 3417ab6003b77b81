"""What pieces of an overlap can be worth: pieces that the other concepts of a set can cut out.

A piece of the overlap of some concepts Y is a union of cells of Q inside it, for a set Q of n
concepts that contains Y. `gain` bounds W of every piece, `loss` bounds −W (Proposition 21).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.bounds.tight.shares.occurring import OccurringLevels

Sums = Float64[np.ndarray, "counts rows"]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Bounds on pieces inside occurring sets of one size: the highest W, and the highest −W."""

    gain: Float64[np.ndarray, " sets"]
    loss: Float64[np.ndarray, " sets"]


@dataclass(frozen=True, eq=False)
class ThirdConcepts:
    """For every occurring pair, the sums of the k highest bounds over third concepts.

    They bound what k further concepts can cut out of the pair's overlap. Row k of each; infinite
    where triples are not listed.
    """

    gain: Float64[np.ndarray, "counts pairs"]
    loss: Float64[np.ndarray, "counts pairs"]


def third_concepts(
    occurring: OccurringLevels, inside: Int64[np.ndarray, " signatures"], v: float, n: int
) -> ThirdConcepts:
    """The bounds for sets of n concepts at v."""
    n_pairs = len(occurring.pairs)
    if n < 3 or (occurring.deepest < 3 and occurring.longest > 2):
        unknown = np.full((max(n - 1, 1), n_pairs), np.inf)
        unknown[0] = 0.0
        return ThirdConcepts(unknown, unknown)
    if occurring.deepest < 3:  # no three concepts meet
        nothing = np.zeros((n - 1, n_pairs))
        return ThirdConcepts(nothing, nothing)
    triples = _pieces(occurring, inside, v, n)
    link = occurring.links[0]
    return ThirdConcepts(
        *(
            sums_of_highest(part[link.larger], link.smaller, n_pairs, n - 2)
            for part in (triples.gain, triples.loss)
        )
    )


def _pieces(
    occurring: OccurringLevels, inside: Int64[np.ndarray, " signatures"], v: float, n: int
) -> Pieces:
    """Bounds on pieces of triples: from the largest sets that are listed down (Proposition 21)."""
    deepest = min(occurring.deepest, n)
    found: Pieces | None = None
    for k in range(deepest, 2, -1):
        level = occurring.levels[k - 2]
        gained = level.sum(inside)
        paid = v * (level.total - gained)
        w = gained - paid
        if found is None:
            if k == n or occurring.longest <= k:  # one cell of Q
                found = Pieces(np.maximum(w, 0.0), np.maximum(-w, 0.0))
            else:
                found = Pieces(gained, paid)
            continue
        link = occurring.links[k - 2]
        gain, loss = (
            sums_of_highest(part[link.larger], link.smaller, len(level), n - k)[n - k]
            for part in (found.gain, found.loss)
        )
        found = Pieces(
            np.clip(np.maximum(w + loss, gain), 0.0, gained),
            np.clip(np.maximum(gain - w, loss), 0.0, paid),
        )
    assert found is not None, "triples are listed"
    return found


def sums_of_highest(
    values: Float64[np.ndarray, " entries"],
    row: Int32[np.ndarray, " entries"] | Int64[np.ndarray, " entries"],
    n_rows: int,
    k: int,
) -> Sums:
    """The sums of the 0, 1, …, k highest positive values of each row; rows ascend."""
    positive = values > 0
    values, row = values[positive], row[positive]
    sums = np.zeros((k + 1, n_rows))
    for count in range(1, k + 1):
        sums[count] = sums[count - 1]
        if not len(row):
            continue
        start = np.flatnonzero(np.diff(row, prepend=-1))
        highest = np.maximum.reduceat(values, start)
        sums[count, row[start]] += highest
        if count == k:
            break
        among = np.flatnonzero(values == np.repeat(highest, np.diff(start, append=len(row))))
        once = among[np.diff(row[among], prepend=-1) != 0]  # one of equals, not all of them
        left = np.ones(len(row), bool)
        left[once] = False
        values, row = values[left], row[left]
    return sums
