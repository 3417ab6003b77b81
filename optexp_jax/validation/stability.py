"""How much of an explanation is due to these images: the search again on resamples of them."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Objective
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.reweighting import Reweighting, complement
from optexp_jax.counts.scores import Score, iou
from optexp_jax.explain import check_question, explain_counts, firing
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.resamples import Resamples, Scheme


@dataclass(frozen=True)
class IoUInterval:
    """Two limits of an IoU."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4f} to {self.high:.4f}"


@dataclass(frozen=True)
class ResampleScore:
    """One resample: its own optimum, and what the stored formula scores in it."""

    formula: Formula | None
    """The best one in the resample; None if the unit is not active there."""
    best: Score
    upper_bound: float
    """No formula is above this in the resample: the best IoU, rounded, where that is proved."""
    proved: bool
    stored: Score
    """The stored formula in the resample."""
    out_of_bag: Score
    """The stored formula on the samples that the resample leaves out."""
    recurs: bool
    """Whether its optimum holds at the same locations as the stored formula, on all images."""

    @property
    def loss(self) -> Fraction:
        """r_b: how far at most the stored formula is below the optimum of the resample."""
        highest = self.best.ratio if self.proved else Fraction(self.upper_bound)
        return max(highest - self.stored.ratio, Fraction(0))


@dataclass(frozen=True)
class Stability:
    """What resamples of the images say about a stored formula. All of it is about that formula.

    The IoU of each resample's own optimum is biased upwards, so no interval is made of it.
    """

    formula: Formula
    score: Score
    """On all images."""
    resamples: tuple[ResampleScore, ...]
    scheme: Scheme

    @property
    def recurrence(self) -> float:
        """The share of resamples whose optimum is the stored formula, as a set of locations."""
        return sum(each.recurs for each in self.resamples) / len(self.resamples)

    @property
    def concepts(self) -> dict[str, float]:
        """The share of resamples whose optimum has a concept, the most frequent first."""
        seen = Counter(
            name for each in self.resamples if each.formula for name in each.formula.concepts
        )
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        return {name: n / len(self.resamples) for name, n in ordered}

    @property
    def out_of_bag(self) -> Score:
        """On the samples that resamples leave out, intersections and unions added up."""
        return Score(
            sum(each.out_of_bag.intersection for each in self.resamples),
            sum(each.out_of_bag.union for each in self.resamples),
        )

    def interval(self, level: float = 0.95) -> IoUInterval:
        """An interval for the stored formula's IoU on images like these.

        Percentiles over bootstraps; with groups left out one at a time the jackknife's standard
        error and Student's t.
        """
        _check_level(level)
        ious = [each.stored.iou for each in self.resamples]
        if self.scheme is Scheme.BOOTSTRAP:
            low = np.quantile(ious, (1 - level) / 2, method="lower")
            high = np.quantile(ious, (1 + level) / 2, method="higher")
            return IoUInterval(float(low), float(high))
        from scipy.stats import t as student  # slow to import

        n = len(ious)
        error = math.sqrt((n - 1) * statistics.pvariance(ious))
        reach = error * float(student.ppf((1 + level) / 2, n - 1))
        return IoUInterval(max(self.score.iou - reach, 0.0), min(self.score.iou + reach, 1.0))

    def noise(self, level: float = 0.95) -> Fraction:
        """c: in a share `level` of resamples the stored formula loses no more than this.

        The ⌈level (n + 1)⌉-th smallest of the n losses, or the largest. Groups that are left out
        one at a time move less than a bootstrap does, by √(n − 1), which is put back; with so few
        groups the level is not reached by proof.
        """
        _check_level(level)
        losses = sorted(each.loss for each in self.resamples)
        if self.scheme is Scheme.LEAVE_ONE_OUT:
            return losses[-1] * Fraction(math.sqrt(len(losses) - 1))
        return losses[min(math.ceil(level * (len(losses) + 1)), len(losses)) - 1]

    def __str__(self) -> str:
        return (
            f"{self.formula}  IoU {self.score.iou:.4f}, {self.interval()} in 95 % of "
            f"{len(self.resamples)} resamples, out of bag {self.out_of_bag.iou:.4f}; the optimum "
            f"in {self.recurrence:.0%} of them"
        )


def stability(
    table: ConceptTable,
    neuron: Any,
    method: AbstractMethod | None = None,
    *,
    stored: Explanation | None = None,
    resamples: int = 100,
    groups: "Sequence[Hashable] | Groups | None" = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Explain a neuron again on resamples of the images.

    `stored` is the explanation in question; it is found first if it is not given. Whole groups are
    drawn; below ten groups each is left out once instead.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    if getattr(method, "objective", Objective.IOU) is not Objective.IOU:
        raise ValueError("stability is about IoUs; pass a method with objective='iou'.")
    counts = firing(table, neuron)
    stored = explain_counts(table, counts, method) if stored is None else stored
    if stored.formula is None:
        raise ValueError("No concept overlaps the neuron, so there is no formula to resample.")
    plan = Resamples.of(Groups.of(groups, table.n_samples), resamples, seed)
    unit = StoredUnit(counts, stored.formula, method)
    return resample_units(table, [unit], plan, progress)[0]


@dataclass(frozen=True, eq=False)
class StoredUnit:
    """A unit, the formula that is in question, and the method that found it."""

    counts: NeuronCounts
    formula: Formula
    method: AbstractMethod


def resample_units(
    table: ConceptTable,
    units: Sequence[StoredUnit],
    plan: Resamples,
    progress: Callable[[int, int], None] | None = None,
) -> list[Stability]:
    """`stability` of several units: the sizes of a resample are counted once for all of them."""
    found: list[list[ResampleScore]] = [[] for _ in units]
    for k, weights in enumerate(plan):
        resample = Resample.of(table, weights)
        for unit, scores in zip(units, found, strict=True):
            scores.append(resample.score(unit))
        if progress is not None:
            progress(k + 1, plan.n)
    return [
        Stability(unit.formula, iou(table, unit.counts, unit.formula), tuple(scores), plan.scheme)
        for unit, scores in zip(units, found, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Resample:
    """One resample of the images, and those that it leaves out."""

    drawn: Reweighting
    left_out: Reweighting | None

    @classmethod
    def of(cls, table: ConceptTable, weights: Int64[np.ndarray, " samples"]) -> "Resample":
        rest = complement(weights)
        return cls(Reweighting(table, weights), Reweighting(table, rest) if rest.any() else None)

    def score(self, unit: StoredUnit) -> ResampleScore:
        """The optimum of the resample beside the stored formula."""
        table, counts = self.drawn.table, self.drawn.counts(unit.counts)
        rest, out_of_bag = self.left_out, Score(0, 0)
        if rest is not None:
            out_of_bag = iou(rest.table, rest.counts(unit.counts), unit.formula)
        score = iou(table, counts, unit.formula)
        if not counts.size:
            nothing = Score(0, 0)
            return ResampleScore(None, nothing, 0.0, True, score, out_of_bag, recurs=False)
        found = unit.method.run(table, counts)
        return ResampleScore(
            found.formula,
            found.score,
            found.upper_bound,
            found.status is Status.OPTIMAL,
            score,
            out_of_bag,
            recurs=found.formula is not None
            and self.drawn.original.same_locations(found.formula, unit.formula),
        )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be a share between 0 and 1, such as 0.95; got {level!r}.")
