"""The incumbent: the best formula found so far, and what it rules out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from optexp_jax.formula import Formula
from optexp_jax.scores import Score


@dataclass(frozen=True)
class Candidate:
    """A formula with its exact score."""

    formula: Formula
    score: Score

    @property
    def rank(self) -> tuple[Fraction, Formula]:
        """Sorts the better candidate first."""
        return -self.score.ratio, self.formula

    def beats(self, other: "Candidate | None") -> bool:
        """A higher IoU; among equal ones, the shorter formula, then the smaller canonical form."""
        if other is None or other is self:  # A canonical form takes long to find.
            return other is None
        ahead = (
            self.score.intersection * other.score.union
            - other.score.intersection * self.score.union
        )
        return ahead > 0 or (ahead == 0 and self.formula < other.formula)


@dataclass(frozen=True)
class Keep:
    """Which formulas a search is to find besides the best one: none, unless told."""

    top_k: int = 1
    """The k best that differ as sets of locations."""
    within: float | None = None
    """All whose IoU is at most this share below the best one's, instead of the k best."""
    limit: int = 1000
    """At most so many of those."""

    @property
    def only_best(self) -> bool:
        return self.top_k == 1 and self.within is None

    @property
    def most(self) -> int:
        return self.top_k if self.within is None else self.limit


MOST_EQUIVALENTS = 20


@dataclass
class Leader:
    """One of the best sets of locations: its shortest formula, and others of the same length."""

    candidate: Candidate
    identity: bytes
    equivalents: list[Formula] = field(default_factory=list)

    def absorb(self, other: Candidate) -> None:
        """Take note of another formula for the same set."""
        mine = self.candidate.formula
        if other.formula == mine or len(other.formula) > len(mine):
            return
        if len(other.formula) < len(mine):
            self.candidate, self.equivalents = other, []
            return
        known = {mine, other.formula, *self.equivalents}
        first, *rest = sorted(known)
        self.candidate = Candidate(first, other.score)
        self.equivalents = rest[:MOST_EQUIVALENTS]


class Incumbent:
    """The best candidates so far, and MinIoU: nothing below it can be one of those wanted.

    When only the best is wanted, MinIoU also rises with lower estimates of formulas that nobody
    has looked at yet.
    """

    def __init__(
        self, keep: Keep | None = None, identify: Callable[[Formula], bytes] | None = None
    ) -> None:
        self.keep = Keep() if keep is None else keep
        self._identify = identify
        self.leaders: list[Leader] = []
        self.limit_hit = False
        """Whether more formulas were within the wanted share than may be kept."""
        self.min_iou = 0.0

    @property
    def best(self) -> Candidate | None:
        return self.leaders[0].candidate if self.leaders else None

    @property
    def iou(self) -> float:
        return 0.0 if self.best is None else self.best.score.iou

    @property
    def threshold(self) -> float:
        """The IoU that a formula has to reach to be wanted."""
        if self.keep.within is not None and not self._full:
            return self.iou * (1 - self.keep.within)
        return self.leaders[-1].candidate.score.iou if self._full else 0.0

    @property
    def _full(self) -> bool:
        return len(self.leaders) >= self.keep.most

    def offer(self, candidate: Candidate) -> None:
        """Take the candidate if it is wanted; ones that overlap nothing never are."""
        if not candidate.score.intersection or candidate.score.iou < self.threshold:
            return
        if self.keep.only_best:
            if candidate.beats(self.best):
                self.leaders = [Leader(candidate, b"")]
        else:
            self._insert(candidate)
        # The quotient is rounded to nearest: a step down makes it a lower bound for sure.
        self.min_iou = max(self.min_iou, float(np.nextafter(self.threshold, 0.0)))

    def _insert(self, candidate: Candidate) -> None:
        assert self._identify is not None, "several formulas are wanted, but sets have no identity"
        identity = self._identify(candidate.formula)
        same = [leader for leader in self.leaders if leader.identity == identity]
        if same:
            same[0].absorb(candidate)
        else:
            self.leaders.append(Leader(candidate, identity))
        self.leaders.sort(key=lambda leader: leader.candidate.rank)
        self.limit_hit |= self.keep.within is not None and len(self.leaders) > self.keep.most
        del self.leaders[self.keep.most :]
        if self.keep.within is not None:
            wanted = self.threshold
            self.leaders = [x for x in self.leaders if x.candidate.score.iou >= wanted]

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
        if self._full:
            last = self.leaders[-1].candidate
            # Bounds are rounded up, so only a perfect score is sure to be level with them.
            perfect = last.score.intersection == last.score.union
            surely_reached = 1.0 if perfect else float(np.nextafter(last.score.iou, 0.0))
            beats_all = np.minimum(upper, 1.0) <= surely_reached
            kept &= ~beats_all | (shortest <= len(last.formula))
        return kept
