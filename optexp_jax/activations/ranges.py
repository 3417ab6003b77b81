"""Activation ranges: which values of a unit count as active.

A range is open on both sides: a location is active if `low < value < high` after up-sampling. The
ends come from the raw cells of the unit over all samples, before up-sampling.
"""

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from optexp_jax.activations.kmeans import cluster_numbers


@dataclass(frozen=True)
class ActivationRange:
    """Values strictly between `low` and `high`; a skipped unit has none and says why."""

    low: float
    high: float
    skipped: str | None = None

    @classmethod
    def skip(cls, reason: str) -> "ActivationRange":
        """A range that nothing lies in."""
        return cls(math.inf, -math.inf, reason)


class AbstractRangeRule(abc.ABC):
    """How the range of a unit follows from its raw values. Rules are compared by their `repr`."""

    @abc.abstractmethod
    def range_of(self, unit: int, values: Float32[np.ndarray, " cells"]) -> ActivationRange:
        """The range of a unit with these raw values, those of all cells of all samples."""


@dataclass(frozen=True)
class TopQuantile(AbstractRangeRule):
    """The highest share of all raw cells, zeros included: from the exact quantile upwards.

    The quantile is interpolated linearly between the two cells around it.
    """

    share: float = 0.005

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"The share of a quantile lies between 0 and 1; got {self.share}.")

    def range_of(self, unit: int, values: Float32[np.ndarray, " cells"]) -> ActivationRange:
        place = (len(values) - 1) * (1 - self.share)
        below = math.floor(place)
        above = min(below + 1, len(values) - 1)
        cells = np.partition(values, [below, above])
        low, next_one = float(cells[below]), float(cells[above])
        low = low + (place - below) * (next_one - low)
        if low >= float(cells[above:].max()):
            return ActivationRange.skip(
                f"its {1 - self.share:.1%} quantile is its largest value, {low:g}"
            )
        return ActivationRange(low, math.inf)


@dataclass(frozen=True)
class Clusters(AbstractRangeRule):
    """One of the k-means clusters of the raw cells, from its smallest to its largest member.

    Zeros are left out if no value is negative, as after a ReLU. `cluster` counts from 1, the lowest
    values, to `k`, the highest and the default.
    """

    k: int = 5
    cluster: int | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"There must be at least one cluster; got k={self.k}.")
        if self.cluster is not None and not 1 <= self.cluster <= self.k:
            raise ValueError(f"Clusters count from 1 to {self.k}; got {self.cluster}.")

    def range_of(self, unit: int, values: Float32[np.ndarray, " cells"]) -> ActivationRange:
        kept = values[values != 0] if not len(values) or values.min() >= 0 else values
        if len(kept) < self.k:
            return ActivationRange.skip(
                f"{len(kept)} non-zero activations are too few for {self.k} clusters"
            )
        distinct = len(np.unique(kept))
        if distinct < self.k:
            return ActivationRange.skip(
                f"{distinct} distinct activations are too few for {self.k} clusters"
            )
        intervals = cluster_numbers(kept.astype(np.float64), self.k)
        chosen = intervals[(self.k if self.cluster is None else self.cluster) - 1]
        return ActivationRange(chosen.low, chosen.high)


@dataclass(frozen=True)
class ExplicitRange(AbstractRangeRule):
    """Ends that are given, for all units or unit by unit."""

    low: float = -math.inf
    high: float = math.inf
    of_unit: tuple[tuple[int, float, float], ...] = ()
    """(unit, low, high) where a unit has ends of its own."""

    def __post_init__(self) -> None:
        for low, high in [(self.low, self.high), *((a, b) for _, a, b in self.of_unit)]:
            if not low < high:
                raise ValueError(f"A range goes from a lower to a higher value; got {low}..{high}.")

    @classmethod
    def by_unit(cls, ranges: Mapping[int, tuple[float, float]]) -> "ExplicitRange":
        """Ends for each of some units; the others are active everywhere."""
        return cls(of_unit=tuple((unit, *ends) for unit, ends in sorted(ranges.items())))

    def range_of(self, unit: int, values: Float32[np.ndarray, " cells"]) -> ActivationRange:
        for other, low, high in self.of_unit:
            if other == unit:
                return ActivationRange(low, high)
        return ActivationRange(self.low, self.high)


def parse_rule(text: str) -> AbstractRangeRule:
    """A rule from a command line: `quantile`, `quantile:0.01`, `clusters:5`, `clusters:5:3` (the
    third of five), `range:0.5:` or `range:0.5:2`."""
    kind, *parts = text.split(":")
    try:
        match kind, parts:
            case "quantile", []:
                return TopQuantile()
            case "quantile", [share]:
                return TopQuantile(float(share))
            case "clusters", []:
                return Clusters()
            case "clusters", [k]:
                return Clusters(int(k))
            case "clusters", [k, cluster]:
                return Clusters(int(k), int(cluster))
            case "range", [low, high]:
                return ExplicitRange(
                    float(low) if low else -math.inf, float(high) if high else math.inf
                )
            case _:
                raise ValueError("unknown form")
    except ValueError as error:
        raise ValueError(
            f"{text!r} is no activation range ({error}). Write quantile, quantile:SHARE, "
            "clusters:K, clusters:K:CLUSTER or range:LOW:HIGH."
        ) from error
