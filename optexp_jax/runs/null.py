"""Is an IoU above chance? The same unit, with its activation maps on the wrong samples."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Int

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod, check_count
from optexp_jax.runs.sources import UnitSource

MOST_DRAWS = 100_000
"""Each costs as much as the unit itself, and its score is kept."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One way to put the maps on other samples."""

    order: Int[np.ndarray, " samples"]
    shifts: Int[np.ndarray, "samples two"] | None


@dataclass(frozen=True)
class NullModel:
    """Explain each unit again with its activation maps shuffled over the samples.

    The maps keep their shapes and sizes; only what they lie on is left to chance. All units share
    the same draws, so that their results can be compared.
    """

    n: int
    """How often each unit is explained with its maps shuffled over the samples; the smallest
    p-value there can be is 1 / (1 + n)."""
    shift: bool = False
    """Also roll every map by random rows and columns, for concepts that keep to a place."""
    seed: int = 0
    """Another seed, other draws."""

    def __post_init__(self) -> None:
        check_count(self.n, "n of the null model", MOST_DRAWS)
        if isinstance(self.seed, bool) or not isinstance(cast(object, self.seed), int):
            raise ValueError(f"seed of the null model must be a whole number; got {self.seed!r}.")
        if self.seed < 0:
            raise ValueError(f"seed of the null model must not be negative; got {self.seed}.")

    def draws(self, table: ConceptTable) -> Iterator[Draw]:
        """The draws for a table, each from a seed of its own."""
        shape = table.require_map("The null model").location_shape
        if self.shift and len(shape) != 2:
            raise ValueError(
                f"Maps can be shifted where locations have rows and columns; these have {shape}. "
                "Leave out the shift."
            )
        for k in range(self.n):
            rng = np.random.default_rng([self.seed, k])
            order = rng.permutation(table.n_samples)
            shifts = rng.integers(0, shape, (table.n_samples, 2)) if self.shift else None
            yield Draw(order, shifts)


@dataclass(frozen=True)
class NullResult:
    """How a unit's IoU compares with those of the draws."""

    scores: tuple[Score, ...]
    """Of the best formula in each draw."""
    at_least: int
    """Draws whose best formula reaches the unit's IoU."""

    @classmethod
    def of(cls, scores: Sequence[Score], found: Score) -> "NullResult":
        """The comparison of a unit that has the score `found`."""
        if not scores:
            raise ValueError("There must be at least one draw to compare with.")
        return cls(tuple(scores), sum(score.ratio >= found.ratio for score in scores))

    @property
    def n(self) -> int:
        return len(self.scores)

    @property
    def highest(self) -> float:
        return max(score.iou for score in self.scores)

    @property
    def mean(self) -> float:
        # Summed without rounding, so that it is the same everywhere.
        return statistics.fmean(score.iou for score in self.scores)

    @property
    def p_value(self) -> float:
        """The chance to find such an IoU if the maps lay anywhere: (1 + at_least) / (1 + n)."""
        return (1 + self.at_least) / (1 + self.n)


def compare_with_null(
    model: NullModel,
    source: UnitSource,
    found: Mapping[int, Explanation],
    method: AbstractMethod,
) -> dict[int, NullResult]:
    """Explain units under every draw, by the same method, and compare exactly.

    Units are counted together: a pass over the map of the table serves all of them.
    """
    units = list(found)
    scores: dict[int, list[Score]] = {unit: [] for unit in units}
    for draw in model.draws(source.table):
        counted = source.counts(units, order=draw.order, shifts=draw.shifts)
        for unit, counts in zip(units, counted, strict=True):
            scores[unit].append(method.run(source.table, counts).score)
    return {unit: NullResult.of(scores[unit], found[unit].score) for unit in units}
