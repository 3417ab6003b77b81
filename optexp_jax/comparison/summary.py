"""Means of IoUs over some units, as the paper's tables have them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from optexp_jax.comparison.category import Category


@dataclass(frozen=True)
class IoUSummary:
    """Means and population standard deviations (of all n, not n - 1) of some units' IoUs.

    They are None where there are no units.
    """

    n: int
    mean_a: float | None = None
    std_a: float | None = None
    mean_b: float | None = None
    std_b: float | None = None
    mean_gain: float | None = None
    """How much higher the IoU of `b` is."""

    @classmethod
    def of(cls, a: Sequence[float], b: Sequence[float], gains: Sequence[float]) -> "IoUSummary":
        """Of the IoUs of both runs, and of what they differ by, unit by unit."""
        if not gains:
            return cls(0)
        return cls(
            len(gains),
            statistics.fmean(a),
            statistics.pstdev(a),
            statistics.fmean(b),
            statistics.pstdev(b),
            statistics.fmean(gains),
        )


@dataclass(frozen=True)
class CategorySummary:
    """One category of a comparison: a row of the paper's Tables 3 and 4."""

    category: Category
    share: float
    """Of the units whose formulas differ."""
    ious: IoUSummary
    same_locations: int
    """How many of its units have formulas that hold at the same locations, as far as is known."""

    @property
    def n(self) -> int:
        """How many units are in it."""
        return self.ious.n
