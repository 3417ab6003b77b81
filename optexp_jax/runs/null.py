"""Is an IoU above chance? The same unit, with its activation maps on the wrong samples."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
from jaxtyping import Int

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod, check_count
from optexp_jax.runs.sources import UnitSource
from optexp_jax.validation.families import sequential_p_value
from optexp_jax.validation.groups import Groups

MOST_DRAWS = 100_000
"""Each costs as much as the unit itself, and its score is kept."""
FEWEST_TO_EXCHANGE = 20
"""Groups of one size below which they are not exchanged: too few orders to tell chance from."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One way to put the maps on other samples."""

    order: Int[np.ndarray, " samples"]
    shifts: Int[np.ndarray, "samples two"] | None


@dataclass(frozen=True)
class NullModel:
    """Explain each unit again with its activation maps shuffled over the samples.

    The maps keep their shapes and sizes; only what they lie on is left to chance. All units share
    the same draws, so that their results can be compared. Where samples form groups, such as the
    frames of a video, a group's maps are shifted along its order, and come in again at its other
    end; whole groups change places only with others of their size, of which there must be 20.
    """

    n: int
    """How often each unit is explained with its maps shuffled over the samples; the smallest
    p-value there can be is 1 / (1 + n)."""
    shift: bool = False
    """Also roll every map by random rows and columns, for concepts that keep to a place."""
    seed: int = 0
    """Another seed, other draws."""
    stop: int | None = None
    """End a unit's draws when so many of them reach its IoU: it is clearly not above chance."""

    def __post_init__(self) -> None:
        check_count(self.n, "n of the null model", MOST_DRAWS)
        if isinstance(self.seed, bool) or not isinstance(cast(object, self.seed), int):
            raise ValueError(f"seed of the null model must be a whole number; got {self.seed!r}.")
        if self.seed < 0:
            raise ValueError(f"seed of the null model must not be negative; got {self.seed}.")
        if self.stop is not None:
            check_count(self.stop, "stop of the null model", MOST_DRAWS)

    def draws(self, table: ConceptTable, groups: Groups | None = None) -> Iterator[Draw]:
        """The draws for a table, each from a seed of its own."""
        shape = table.require_map("The null model").location_shape
        if self.shift and len(shape) != 2:
            raise ValueError(
                f"Maps can be shifted where locations have rows and columns; these have {shape}. "
                "Leave out the shift."
            )
        grouped = None if groups is None or groups.are_samples else GroupedOrder.of(groups)
        for k in range(self.n):
            rng = np.random.default_rng([self.seed, k])
            order = rng.permutation(table.n_samples) if grouped is None else grouped.draw(rng)
            shifts = rng.integers(0, shape, (table.n_samples, 2)) if self.shift else None
            yield Draw(order, shifts)


@dataclass(frozen=True, eq=False)
class GroupedOrder:
    """Orders of samples that keep groups together, and neighbours in a group beside each other."""

    members: tuple[Int[np.ndarray, " members"], ...]
    """Samples of each group, in their order."""
    exchanged: tuple[Int[np.ndarray, " alike"], ...]
    """Groups of equal size that may change places, where there are enough of them."""

    @classmethod
    def of(cls, groups: Groups) -> "GroupedOrder":
        members = tuple(np.flatnonzero(groups.member == k) for k in range(len(groups)))
        sizes = groups.sizes
        alike = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
        enough = tuple(each for each in alike if len(each) >= FEWEST_TO_EXCHANGE)
        return cls(members, enough)

    def draw(self, rng: np.random.Generator) -> Int[np.ndarray, " samples"]:
        """For each sample, the one whose map it is given."""
        giver = np.arange(len(self.members))
        for alike in self.exchanged:
            giver[alike] = rng.permutation(alike)
        order = np.empty(sum(map(len, self.members)), np.int64)
        for group, own in enumerate(self.members):
            given = self.members[giver[group]]
            order[own] = np.roll(given, rng.integers(0, len(given)))
        return order


@dataclass(frozen=True)
class NullResult:
    """How a unit's IoU compares with those of the draws."""

    scores: tuple[Score, ...]
    """Of the best formula that was found in each draw."""
    at_least: int
    """Draws whose best formula reaches the unit's IoU, or may: a search that was stopped before its
    proof counts with its upper bound."""
    upper_bounds: tuple[float | None, ...] = ()
    """Of draws whose search was stopped before its proof; None for the others."""
    stop: int | None = None
    """Draws end when so many reach the unit's IoU."""

    @classmethod
    def of(
        cls,
        scores: Sequence[Score],
        found: Score,
        upper_bounds: Sequence[float | None] | None = None,
        stop: int | None = None,
    ) -> "NullResult":
        """The comparison of a unit that has the score `found`."""
        if not scores:
            raise ValueError("There must be at least one draw to compare with.")
        bounds = tuple(upper_bounds or [None] * len(scores))
        pairs = zip(scores, bounds, strict=True)
        reached = sum(_highest(score, bound) >= found.ratio for score, bound in pairs)
        return cls(tuple(scores), reached, bounds, stop)

    @property
    def n(self) -> int:
        return len(self.scores)

    @property
    def stopped(self) -> bool:
        """Whether the draws ended because enough of them reach the unit's IoU."""
        return self.stop is not None and self.at_least >= self.stop

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The IoU of each draw, or its upper bound where that is all that is known."""
        pairs = zip(self.scores, self.upper_bounds, strict=True)
        return tuple(float(_highest(score, bound)) for score, bound in pairs)

    @property
    def highest(self) -> float:
        return max(self.values)

    @property
    def mean(self) -> float:
        # Summed without rounding, so that it is the same everywhere.
        return statistics.fmean(self.values)

    @property
    def p_value(self) -> float:
        """The chance to find such an IoU if the maps lay anywhere: (1 + at_least) / (1 + n).

        Where draws ended at the h-th that reaches the IoU, the L-th of all, it is h / L.
        """
        if self.stop is None:
            return (1 + self.at_least) / (1 + self.n)
        return sequential_p_value(self.at_least, self.n, self.stop)


def _highest(score: Score, upper_bound: float | None) -> Fraction:
    return score.ratio if upper_bound is None else max(score.ratio, Fraction(upper_bound))


def draw_bound(found: Explanation) -> float | None:
    """The bound that a draw counts with: None unless a limit stopped its search."""
    return None if found.stats.stopped_by is None else found.upper_bound


def compare_with_null(
    model: NullModel,
    source: UnitSource,
    found: Mapping[int, Explanation],
    method: AbstractMethod,
    groups: Groups | None = None,
) -> dict[int, NullResult]:
    """Explain units under every draw, by the same method, and compare exactly.

    Units are counted together: a pass over the map of the table serves all of them.
    """
    scores: dict[int, list[Score]] = {unit: [] for unit in found}
    bounds: dict[int, list[float | None]] = {unit: [] for unit in found}
    reached = dict.fromkeys(found, 0)
    for draw in model.draws(source.table, groups):
        units = [unit for unit in found if model.stop is None or reached[unit] < model.stop]
        if not units:
            break
        counted = source.counts(units, order=draw.order, shifts=draw.shifts)
        for unit, counts in zip(units, counted, strict=True):
            drawn = method.run(source.table, counts)
            scores[unit].append(drawn.score)
            bounds[unit].append(draw_bound(drawn))
            highest = _highest(drawn.score, bounds[unit][-1])
            reached[unit] += highest >= found[unit].score.ratio
    return {
        unit: NullResult.of(scores[unit], found[unit].score, bounds[unit], model.stop)
        for unit in found
    }
