"""The queue of a beam search: the best formulas so far, a fixed number of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from optexp_jax.counts.scores import BatchScores, Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.incumbent import Candidate


@dataclass(frozen=True)
class Words:
    """What the indices of chains stand for."""

    names: tuple[str, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Member:
    """A formula of the beam, as the chain of indices that it was grown as."""

    words: Words
    concepts: tuple[int, ...]
    operators: tuple[int, ...]
    """Operators of the steps, one fewer than concepts."""
    score: Score
    parent: int = 0
    """Which of the members that were extended it grew from."""

    def __len__(self) -> int:
        return len(self.concepts)

    @cached_property
    def candidate(self) -> Candidate:
        """The formula by name: made when it is asked for, because most members leave again."""
        return Candidate(
            Formula(
                tuple(self.words.names[c] for c in self.concepts),
                tuple(self.words.operators[o] for o in self.operators),
            ),
            self.score,
        )

    def beats(self, other: "Member") -> bool:
        """A higher IoU; among equal ones, the shorter formula, then the smaller canonical form."""
        ahead = _ahead(self.score, other.score)
        if ahead or len(self) != len(other):
            return ahead > 0 or (ahead == 0 and len(self) < len(other))
        return self.candidate.formula < other.candidate.formula


class BeamQueue:
    """At most `size` members, best first, by IoU, then length, then canonical form."""

    def __init__(self, size: int, members: list[Member]):
        self.size = size
        self.members = members[:size]
        self.floor = self._find_floor()
        """What is below it cannot enter: a lower bound on the worst IoU once the queue is full."""

    def _find_floor(self) -> float:
        if len(self.members) < self.size:
            return -math.inf
        # The quotient is rounded to nearest: a step down makes it a lower bound for sure.
        return math.nextafter(self.members[-1].score.iou, -math.inf)

    def reach(self, estimates: Float64[np.ndarray, " candidates"]) -> int:
        """How many candidates come before the first below the floor; estimates descend."""
        return int((-estimates).searchsorted(-self.floor, side="right"))

    def visit(
        self,
        estimates: Float64[np.ndarray, " candidates"],
        scores: BatchScores,
        length: int,
        make: Callable[[int, Score], Member],
    ) -> int:
        """Take in candidates of one length in their order, until one's estimate is below the floor.

        Returns how many were visited. `make` is called for those that may enter only.
        """
        ious = scores.iou
        rows = np.flatnonzero(ious >= self.floor)
        entered = -1
        for row, iou, estimate in zip(
            rows.tolist(), ious[rows].tolist(), estimates[rows].tolist(), strict=True
        ):
            if estimate < self.floor:
                break
            if iou >= self.floor and self._offer(scores[row], length, row, make):
                entered = row
        return max(self.reach(estimates), entered + 1)

    def _offer(
        self, score: Score, length: int, row: int, make: Callable[[int, Score], Member]
    ) -> bool:
        if len(self.members) == self.size:
            worst = self.members[-1]
            ahead = _ahead(score, worst.score)
            if ahead < 0 or (ahead == 0 and len(worst) < length):
                return False
        member = make(row, score)
        place = len(self.members)
        while place and member.beats(self.members[place - 1]):
            place -= 1
        if place == self.size:
            return False
        self.members.insert(place, member)
        del self.members[self.size :]
        self.floor = self._find_floor()
        return True


def _ahead(score: Score, other: Score) -> int:
    """The sign tells which IoU is higher, without rounding."""
    return score.intersection * other.union - other.intersection * score.union
