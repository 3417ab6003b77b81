"""The incumbent: the best formula found so far, and what it rules out."""

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula


@dataclass(frozen=True)
class Candidate:
    """A formula with its exact score."""

    formula: Formula
    score: Score


@dataclass(frozen=True)
class PoolCriteria:
    """Which formulas a search is to find besides the best one: none, unless told."""

    top_k: int = 1
    """The k best that differ as sets of locations."""
    within: float | None = None
    """All whose IoU is at most this share below the best one's, instead of the k best."""
    max_within: int = 1000
    """At most so many of those."""

    @property
    def only_best(self) -> bool:
        return self.top_k == 1 and self.within is None

    @property
    def most(self) -> int:
        """How many sets are listed at most."""
        return self.top_k if self.within is None else self.max_within

    @property
    def pool_size(self) -> int:
        """How many sets have to be known before lower ones are ruled out.

        One more than are listed of those within a share: it tells whether there are more.
        """
        return self.top_k if self.within is None else self.max_within + 1


MOST_EQUIVALENTS = 20

Order = Callable[[Formula], Any]
"""The key that sorts formulas of equal IoU, the one that is wanted first."""


@dataclass(frozen=True)
class PoolEntry:
    """One of the best sets of locations: its shortest formula, and others of the same length."""

    candidate: Candidate
    identity: bytes
    equivalents: tuple[Formula, ...] = ()

    def with_form(self, other: Candidate, order: "Order") -> "PoolEntry":
        """The same set, once another formula for it is known."""
        mine = self.candidate.formula
        if other.formula == mine or len(other.formula) > len(mine):
            return self
        if len(other.formula) < len(mine):
            return PoolEntry(other, self.identity)
        first, *rest = sorted({mine, other.formula, *self.equivalents}, key=order)
        return PoolEntry(
            Candidate(first, other.score), self.identity, tuple(rest[:MOST_EQUIVALENTS])
        )


@dataclass(frozen=True)
class SolutionPool:
    """The sets of locations that may be wanted, best first, and from which IoU on one is."""

    leaders: tuple[PoolEntry, ...] = ()
    wanted: Fraction = Fraction(0)
    threshold: float = 0.0
    """`wanted`, rounded to nearest."""

    @classmethod
    def of(cls, leaders: list[PoolEntry], keep: PoolCriteria) -> "SolutionPool":
        """Of all that are known, those that may be wanted."""
        wanted = Fraction(0)
        if keep.within is not None:
            # The share as it is written, 0.3 for three tenths, not the binary number next to it.
            wanted = leaders[0].candidate.score.ratio * (1 - Fraction(repr(keep.within)))
        if len(leaders) >= keep.pool_size:
            wanted = max(wanted, leaders[keep.pool_size - 1].candidate.score.ratio)
        # Sets level with the last one stay, too: a smaller formula may yet bring one of them
        # forward, and the formulas that are known for it do not come up again.
        kept = tuple(leader for leader in leaders if leader.candidate.score.ratio >= wanted)
        return cls(kept, wanted, float(wanted))


def just_below(iou: float) -> float:
    """One step down. A quotient is rounded to nearest: this is below the exact one for sure."""
    return float(np.nextafter(iou, 0.0))


class Incumbent:
    """The best candidates so far, and MinIoU: nothing below it can be one of those wanted.

    What is called IoU here is the value of the scores, `I / (base + E)` where a problem has a base.
    When only the best is wanted, MinIoU also rises with lower estimates of formulas that nobody
    has looked at yet. What is offered takes effect at once or, if an exception comes in between,
    not at all: `pool` is replaced as a whole.
    """

    def __init__(
        self,
        keep: PoolCriteria | None = None,
        identify: Callable[[Formula], bytes] | None = None,
        order: Order | None = None,
    ) -> None:
        """`identify` tells sets of locations apart, `order` sorts formulas that are level."""
        self.keep = PoolCriteria() if keep is None else keep
        self._identify = identify
        self._order: Order = (lambda formula: formula) if order is None else order
        self._pool = SolutionPool()
        self.min_iou = 0.0

    @property
    def leaders(self) -> tuple[PoolEntry, ...]:
        """The best candidates, as many as are wanted."""
        return self._pool.leaders[: self.keep.most]

    @property
    def within_truncated(self) -> bool:
        """Whether more formulas are within the wanted share than may be kept."""
        return self.keep.within is not None and len(self._pool.leaders) > self.keep.max_within

    @property
    def best(self) -> Candidate | None:
        leaders = self._pool.leaders
        return leaders[0].candidate if leaders else None

    @property
    def iou(self) -> float:
        return 0.0 if self.best is None else self.best.score.value

    @property
    def threshold(self) -> float:
        """The IoU that a formula has to reach to be wanted."""
        return self._pool.threshold

    @property
    def v(self) -> float:
        """An IoU just below the threshold, for sure: what reaches the threshold is above it."""
        return just_below(self.threshold)

    def offer(self, candidate: Candidate) -> None:
        """Take the candidate if it is wanted; ones that overlap nothing never are."""
        # Rounding never puts a higher ratio below a lower one.
        if not candidate.score.intersection or candidate.score.value < self.threshold:
            return
        if self.keep.only_best:
            if self._improves(candidate):
                self._pool = SolutionPool.of([PoolEntry(candidate, b"")], self.keep)
        elif candidate.score.ratio >= self._pool.wanted:
            self._pool = SolutionPool.of(self._leaders_with(candidate), self.keep)
        self.min_iou = max(self.min_iou, self.v)

    def _improves(self, candidate: Candidate) -> bool:
        """A higher IoU than the best one's; or the same, and first in order."""
        best = self.best
        if best is None or candidate.formula is best.formula:  # A canonical form takes long.
            return best is None
        ahead = candidate.score.ahead_of(best.score)
        if ahead or len(candidate.formula) > len(best.formula):  # The order begins with length.
            return ahead > 0
        return self._order(candidate.formula) < self._order(best.formula)

    def _rank(self, leader: PoolEntry) -> tuple[Fraction, Any]:
        """Sorts the better one first."""
        return -leader.candidate.score.ratio, self._order(leader.candidate.formula)

    def _leaders_with(self, candidate: Candidate) -> list[PoolEntry]:
        assert self._identify is not None, "several formulas are wanted, but sets have no identity"
        identity = self._identify(candidate.formula)
        others = [leader for leader in self._pool.leaders if leader.identity != identity]
        same = [leader for leader in self._pool.leaders if leader.identity == identity]
        leader = (
            same[0].with_form(candidate, self._order) if same else PoolEntry(candidate, identity)
        )
        bisect.insort(others, leader, key=self._rank)
        return others

    def raise_min_iou(self, lower: float) -> None:
        """Make use of a lower bound on the optimum's IoU."""
        if self.keep.only_best:
            self.min_iou = max(self.min_iou, lower)

    def may_improve(self, upper: np.ndarray, shortest: np.ndarray) -> np.ndarray:
        """Which nodes can still hold the optimum, by bound and length of their shortest formula.

        A bound equal to MinIoU is kept, for the optimum itself may have set it. A tie with the
        last that is kept goes to the shorter formula, so nodes whose formulas are all longer are
        done.
        A formula that overlaps nothing is no explanation.
        """
        kept = (upper >= self.min_iou) & (upper > 0)
        if len(self._pool.leaders) >= self.keep.pool_size:
            last = self._pool.leaders[self.keep.pool_size - 1].candidate
            # Bounds are rounded up, so only a perfect score is sure to be level with them.
            perfect = last.score.intersection == last.score.union
            surely_reached = np.inf if perfect else just_below(last.score.value)
            beats_all = upper <= surely_reached
            kept &= ~beats_all | (shortest <= len(last.formula))
        return kept
