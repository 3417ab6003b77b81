"""Shares: what each further concept can add at most to any Boolean function of a set.

The concepts T are in, t more are to come. In each cell of T, a function of the whole set keeps or
drops what none of the others holds; what it does otherwise inside of them is shared out among them
(Propositions 22, 23 and 24).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.bounds.tight.shares.cell_counts import CellCounts
from optexp_jax.bounds.tight.shares.occurring import DirectedPairs
from optexp_jax.bounds.tight.shares.pieces import ThirdConcepts, sums_of_highest


@dataclass(frozen=True, eq=False)
class Shares:
    """Bounds on what concepts add to `base`, by concept of the table."""

    base: float
    """What functions of T alone reach."""
    alone: Float64[np.ndarray, " concepts"]
    """The share of each, whatever the others are (Proposition 22)."""
    apart: Float64[np.ndarray, " concepts"]
    """The share where one of the others does not meet it in any cell."""
    pairs: DirectedPairs
    change: Float64[np.ndarray, " entries"]
    """What that becomes where `second` is one of the others: `apart` plus this."""

    def together(self, ids: Int64[np.ndarray, " some"]) -> Float64[np.ndarray, "some some"]:
        """For pairs of some concepts: both shares, each with the other one in (Proposition 23)."""
        number = np.full(len(self.alone), -1)
        number[ids] = np.arange(len(ids))
        apart = self.apart[ids]
        both = apart[:, None] + apart[None, :]
        first, second = number[self.pairs.first], number[self.pairs.second]
        both[first, second] += self.change
        both[second, first] += self.change
        np.fill_diagonal(both, 0.0)
        return both


@dataclass(frozen=True, eq=False)
class _Part:
    """Shares in one cell, of one of its two cases."""

    alone: Float64[np.ndarray, " concepts"]
    apart: Float64[np.ndarray, " concepts"]
    met: Float64[np.ndarray, " entries"]


def shares(
    counts: CellCounts, pairs: DirectedPairs, third: ThirdConcepts, v: float, t: int
) -> Shares:
    """The shares of concepts of which t are to come; `pairs` are among those that may."""
    n_concepts = counts.single.shape[2]
    base, alone, apart = 0.0, np.zeros(n_concepts), np.zeros(n_concepts)
    change = np.zeros(len(pairs.first))
    gain, loss = third.gain[t - 2], third.loss[t - 2]
    for cell in range(len(counts.whole)):
        here = np.flatnonzero(counts.pair[cell].any(0)[pairs.pair])
        met = DirectedPairs(pairs.first[here], pairs.second[here], pairs.pair[here])
        case = _Case.of(counts, cell, met, gain, loss, v)
        dropped = _shared(case, met, t)
        if cell == 0:
            added = dropped
        else:
            whole = float(counts.whole[cell, 0] - v * counts.whole[cell, 1])
            kept = _shared(case.negative(), met, t)
            added = _either(dropped, kept, whole / t)
            base += max(0.0, whole)
        alone += added.alone
        apart += added.apart
        change[here] += added.met - added.apart[met.first]
    return Shares(base, alone, apart, pairs, change)


@dataclass(frozen=True, eq=False)
class _Case:
    """What a cell holds: W of concepts and pairs, and limits of pieces of pairs.

    `negative` is the same for −W: the cell is kept, and pieces are taken away.
    """

    w: Float64[np.ndarray, " concepts"]
    most: Float64[np.ndarray, " concepts"]
    """W of any part of a concept is at most this."""
    rest: Float64[np.ndarray, " entries"]
    """−W of a pair's overlap less pieces of it, at most: it may be below 0."""
    loss: Float64[np.ndarray, " entries"]
    """−W of any piece of the overlap, at most."""
    gain: Float64[np.ndarray, " entries"]
    """W of any piece of the overlap, at most."""
    opposite: tuple[np.ndarray, np.ndarray]
    """`most` and `rest` of the negative."""

    @classmethod
    def of(
        cls,
        counts: CellCounts,
        cell: int,
        met: DirectedPairs,
        gain: Float64[np.ndarray, " pairs"],
        loss: Float64[np.ndarray, " pairs"],
        v: float,
    ) -> "_Case":
        inside, paid = counts.pair[cell, 0], v * counts.pair[cell, 1]
        w = inside - paid
        lost, gained = np.minimum(gain - w, paid), np.minimum(w + loss, inside)
        any_loss = np.maximum(np.maximum(lost, np.minimum(loss, paid)), 0.0)
        any_gain = np.maximum(np.maximum(gained, np.minimum(gain, inside)), 0.0)
        own_inside, own_paid = counts.single[cell, 0], v * counts.single[cell, 1]
        e = met.pair
        return cls(
            own_inside - own_paid,
            own_inside,
            lost[e],
            any_loss[e],
            any_gain[e],
            (own_paid, gained[e]),
        )

    def negative(self) -> "_Case":
        most, rest = self.opposite
        return _Case(-self.w, most, rest, self.gain, self.loss, (self.most, self.rest))


def _shared(case: _Case, met: DirectedPairs, t: int) -> _Part:
    """Bounds on W of what falls to each concept (Proposition 22).

    A location falls to the first concept that holds it, those of a higher W first.
    """
    w, n_concepts = case.w, len(case.w)
    x, y = met.first, met.second
    before = (w[y] > w[x]) | ((w[y] == w[x]) & (y < x))
    # With what x alone holds: x less pieces. All that it shares with one before it is not its own.
    without = np.where(before, case.rest, case.loss)
    # Without it: pieces that it shares with those after it.
    pieces = np.where(before, 0.0, case.gain)
    taken, held = (sums_of_highest(each, x, n_concepts, t - 1) for each in (without, pieces))

    def limited(
        less: Float64[np.ndarray, " n"],
        parts: Float64[np.ndarray, " n"],
        of: Int32[np.ndarray, " n"] | slice,
    ) -> Float64[np.ndarray, " n"]:
        return np.minimum(np.maximum(np.maximum(w[of] + less, parts), 0.0), case.most[of])

    every = slice(None)
    return _Part(
        limited(taken[t - 1], held[t - 1], every),
        limited(taken[t - 2], held[t - 2], every),
        limited(
            np.minimum(without + taken[t - 2][x], taken[t - 1][x]),
            np.minimum(pieces + held[t - 2][x], held[t - 1][x]),
            x,
        ),
    )


def _either(dropped: _Part, kept: _Part, spread: float) -> _Part:
    """Whether the rest of the cell is kept or dropped: the choice is spread over t concepts."""
    if spread > 0:
        return _Part(
            np.maximum(kept.alone, dropped.alone - spread),
            np.maximum(kept.apart, dropped.apart - spread),
            np.maximum(kept.met, dropped.met - spread),
        )
    return _Part(
        np.maximum(kept.alone + spread, dropped.alone),
        np.maximum(kept.apart + spread, dropped.apart),
        np.maximum(kept.met + spread, dropped.met),
    )
