"""How long a formula may be before more concepts stop helping on other images."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explain import check_question, firing
from optexp_jax.methods.optimal import Optimal
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.held_out import HeldOut, score_folds
from optexp_jax.validation.resamples import make_folds


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
    scored: dict[int, HeldOut] = {}
    for length in range(1, longest + 1):
        of_length = dataclasses.replace(method, length=length)
        scored[length] = score_folds(table, [counts], of_length, dealt)[0]
        if progress is not None:
            progress(length, longest)
    best = max(scored, key=lambda length: (_mean(scored[length]), -length))
    compared = tuple(_compared(length, scored[length], scored[best]) for length in scored)
    return ChosenLength(next(each.length for each in compared if each.as_good), compared)


def _compared(length: int, mine: HeldOut, best: HeldOut) -> ComparedLength:
    losses = [
        other.held_out.iou - own.held_out.iou
        for own, other in zip(mine.folds, best.folds, strict=True)
    ]
    error = statistics.stdev(losses) / math.sqrt(len(losses))
    return ComparedLength(length, mine, statistics.fmean(losses), error)


def _mean(scored: HeldOut) -> float:
    return statistics.fmean(each.held_out.iou for each in scored.folds)
