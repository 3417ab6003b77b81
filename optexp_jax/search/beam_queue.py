"""The queue of a beam search: the best formulas so far, a fixed number of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from optexp_jax.scores import BatchScores, Score
from optexp_jax.search.incumbent import Candidate


@dataclass(frozen=True)
class Member:
    """A formula of the beam, by name and as the chain of indices that it was grown as."""

    candidate: Candidate
    concepts: tuple[int, ...]
    operators: tuple[int, ...]
    """Operators of the steps, one fewer than concepts."""
    parent: int = 0
    """Which of the members that were extended it grew from."""

    def __len__(self) -> int:
        return len(self.concepts)


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
        return math.nextafter(self.members[-1].candidate.score.iou, -math.inf)

    def reach(self, estimates: Float64[np.ndarray, " candidates"]) -> int:
        """How many candidates come before the first below the floor; estimates descend."""
        return int(np.searchsorted(-estimates, -self.floor, side="right"))

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
        ious, stop = scores.iou, self.reach(estimates)
        for row in np.flatnonzero(ious[:stop] >= self.floor).tolist():
            if row >= stop:
                break
            if ious[row] >= self.floor and self._offer(scores[row], length, row, make):
                stop = max(self.reach(estimates), row + 1)
        return stop

    def _offer(
        self, score: Score, length: int, row: int, make: Callable[[int, Score], Member]
    ) -> bool:
        if len(self.members) == self.size:
            worst = self.members[-1]
            other = worst.candidate.score
            ahead = score.intersection * other.union - other.intersection * score.union
            if ahead < 0 or (ahead == 0 and len(worst) < length):
                return False
        member = make(row, score)
        place = len(self.members)
        while place and member.candidate.beats(self.members[place - 1].candidate):
            place -= 1
        if place == self.size:
            return False
        self.members.insert(place, member)
        del self.members[self.size :]
        self.floor = self._find_floor()
        return True
