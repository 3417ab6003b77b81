"""How long a formula may be before more concepts stop helping on other images."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import check_question, firing
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.held_out import HeldOut, score_folds
from optexp_jax.validation.resamples import Folds, make_folds


@dataclass(frozen=True)
class ComparedLength:
    """What formulas of at most so many concepts score on folds that they were not found on."""

    length: int
    held_out: HeldOut
    loss: float
    """Mean over folds of how far it is below the best length."""
    standard_error: float
    """Of that mean: paired, fold by fold."""

    @property
    def as_good(self) -> bool:
        """Whether the loss is within one standard error of none."""
        return self.loss <= self.standard_error


@dataclass(frozen=True)
class ChosenLength:
    """The shortest length that is as good as the best, and what it was compared with."""

    length: int
    compared: tuple[ComparedLength, ...]

    @classmethod
    def of(cls, scored: Sequence[HeldOut]) -> "ChosenLength":
        """The choice among the lengths 1, 2, ..., each with its held-out scores."""
        best = max(scored, key=_mean)  # the shortest of those that are level
        compared = tuple(
            _compared(length, each, best) for length, each in enumerate(scored, start=1)
        )
        return cls(next(each.length for each in compared if each.as_good), compared)

    @property
    def held_out(self) -> HeldOut:
        """Of formulas of the chosen length."""
        return self.compared[self.length - 1].held_out

    def __str__(self) -> str:
        told = ", ".join(f"{each.length}: {each.held_out.iou:.4f}" for each in self.compared)
        return f"length {self.length} (held-out IoU by length {told})"


def choose_length(
    table: ConceptTable,
    neuron: Any,
    method: Optimal | None = None,
    *,
    longest: int = 4,
    folds: int = 5,
    groups: "Sequence[Hashable] | Groups | None" = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ChosenLength:
    """The shortest length whose loss to the best length is within one standard error of it.

    The loss is paired: the difference of IoUs in each fold, and its standard error over folds.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    counts = firing(table, neuron)
    dealt = make_folds(Groups.of(groups, table.n_samples), folds, seed)
    return choose_lengths(table, [counts], of_lengths(method, longest), dealt, progress)[0]


def of_lengths(method: AbstractMethod, longest: int) -> list[AbstractMethod]:
    """The method with formulas of at most 1, 2, ... concepts."""
    if "length" not in {field.name for field in dataclasses.fields(method)}:
        raise ValueError(
            f"{type(method).__name__} has no length to choose. Use Optimal, Beam or Exhaustive."
        )
    lengths = range(1, longest + 1)
    return [dataclasses.replace(cast(Any, method), length=length) for length in lengths]


def choose_lengths(
    table: ConceptTable,
    units: Sequence[NeuronCounts],
    methods: Sequence[AbstractMethod],
    dealt: Folds,
    progress: Callable[[int, int], None] | None = None,
) -> list[ChosenLength]:
    """`choose_length` of several units; the methods have the lengths 1, 2, ..."""
    by_length: list[list[HeldOut]] = []
    for method in methods:
        by_length.append(score_folds(table, units, method, dealt))
        if progress is not None:
            progress(len(by_length), len(methods))
    return [ChosenLength.of(scored) for scored in zip(*by_length, strict=True)]


def _compared(length: int, mine: HeldOut, best: HeldOut) -> ComparedLength:
    losses = [
        other.held_out.iou - own.held_out.iou
        for own, other in zip(mine.folds, best.folds, strict=True)
    ]
    error = statistics.stdev(losses) / math.sqrt(len(losses))
    return ComparedLength(length, mine, statistics.fmean(losses), error)


def _mean(scored: HeldOut) -> float:
    return statistics.fmean(each.held_out.iou for each in scored.folds)
