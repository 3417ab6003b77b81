"""The order of concepts, and which of them are heavy."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32


@dataclass(frozen=True, eq=False)
class Ranking:
    """Concepts ordered by what they are worth, once for the whole search.

    The order settles which of several equal ways to write a formula is searched. The few concepts
    that a formula can mostly consist of, those of the highest rank, are heavy (see `two_steps`).
    """

    rank: Int32[np.ndarray, " concepts"]
    n_heavy: int

    @classmethod
    def by_worth(cls, worth: Float64[np.ndarray, " concepts"], most_heavy: int) -> "Ranking":
        """The highest first; heavy are up to so many that have a positive worth of their own."""
        rank = np.empty(len(worth), np.int32)
        rank[np.argsort(worth, kind="stable")] = np.arange(len(worth))
        return cls(rank, min(int((worth > 0).sum()), most_heavy))

    def light(self, allowed: Bool[np.ndarray, " concepts"]) -> Bool[np.ndarray, " concepts"]:
        """All concepts but the heavy ones among those allowed."""
        light = np.ones(len(self.rank), bool)
        ranked = np.flatnonzero(allowed)[np.argsort(-self.rank[allowed])]
        light[ranked[: self.n_heavy]] = False
        return light
