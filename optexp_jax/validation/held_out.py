"""The score of a formula on images that it was not found on."""

import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.reweighting import Reweighting
from optexp_jax.counts.scores import Score, iou
from optexp_jax.explain import check_question, firing
from optexp_jax.explanation import Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.resamples import Folds, make_folds

Told = Callable[[int, int], None]
"""Called with how many of how many pieces of work are done."""


@dataclass(frozen=True)
class FoldScore:
    """The formula found on all other folds, and what it scores."""

    formula: Formula | None
    """None if the unit is not active there, or overlaps no concept."""
    found: Score
    """Where it was found."""
    held_out: Score
    """On the fold itself."""
    proved: bool
    """Whether no better formula exists where it was found."""


@dataclass(frozen=True)
class HeldOut:
    """A unit's formulas, each scored on the fold that it was not found on."""

    folds: tuple[FoldScore, ...]
    note: str | None = None
    """What to know about the folds: that there are fewer than were asked for, say."""

    @property
    def score(self) -> Score:
        """Intersections and unions added up over the folds: every location counts once."""
        return _pooled([each.held_out for each in self.folds])

    @property
    def iou(self) -> float:
        """The held-out IoU."""
        return self.score.iou

    @property
    def found(self) -> Score:
        """Where the formulas were found, added up alike: what held-out scores compare with."""
        return _pooled([each.found for each in self.folds])

    @property
    def spread(self) -> float:
        """Population standard deviation of the folds' IoUs; folds with nothing to score are out."""
        ious = [each.held_out.iou for each in self.folds if each.held_out.union]
        return statistics.pstdev(ious) if ious else 0.0

    def __str__(self) -> str:
        return (
            f"held-out IoU {self.iou:.4f} ± {self.spread:.4f} over {len(self.folds)} folds "
            f"(in-sample {self.found.iou:.4f})"
        )


def held_out(
    table: ConceptTable,
    units: Iterable[Any],
    method: AbstractMethod | None = None,
    *,
    folds: int = 5,
    groups: "Sequence[Hashable] | Groups | None" = None,
    seed: int = 0,
    progress: Told | None = None,
) -> list[HeldOut]:
    """Find each unit's formula on all folds but one, and score it on that one, for every fold.

    `units` are bitmaps or `NeuronCounts`. What counts as active was decided on all images before,
    so only the formula is held out, not the activation range. `groups` has one label a sample;
    samples of one group are always in one fold.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    dealt = make_folds(Groups.of(groups, table.n_samples), folds, seed)
    return score_folds(table, [firing(table, unit) for unit in units], method, dealt, progress)


def score_folds(
    table: ConceptTable,
    units: Sequence[NeuronCounts],
    method: AbstractMethod,
    dealt: Folds,
    progress: Told | None = None,
) -> list[HeldOut]:
    """`held_out` for folds that are dealt already."""
    scores: list[list[FoldScore]] = [[] for _ in units]
    for k in range(dealt.n):
        fold = dealt.held_out(k)
        elsewhere, here = Reweighting(table, ~fold), Reweighting(table, fold)
        for unit, counts in enumerate(units):
            scores[unit].append(_score_fold(elsewhere, here, counts, method))
            if progress is not None:
                progress(k * len(units) + unit + 1, dealt.n * len(units))
    return [HeldOut(tuple(each), dealt.note) for each in scores]


def _score_fold(
    elsewhere: Reweighting, here: Reweighting, unit: NeuronCounts, method: AbstractMethod
) -> FoldScore:
    training, scored = elsewhere.counts(unit), here.counts(unit)
    nothing = Score(0, scored.size)
    if not training.size:
        return FoldScore(None, Score(0, 0), nothing, proved=True)
    found = method.run(elsewhere.table, training)
    proved = found.status is Status.OPTIMAL
    if found.formula is None:
        return FoldScore(None, found.score, nothing, proved)
    return FoldScore(found.formula, found.score, iou(here.table, scored, found.formula), proved)


def _pooled(scores: Sequence[Score]) -> Score:
    return Score(sum(each.intersection for each in scores), sum(each.union for each in scores))
