"""What a report tells of a unit, as exact counts and the figures that follow from them."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.formula_steps import FormulaStep, formula_steps
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.neuron_summary import NeuronSummary
from optexp_jax.counts.scores import highest_rows
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.runs.results import UnitResult
from optexp_jax.validation.confidence_set import ConfidenceSet
from optexp_jax.validation.held_out import HeldOut
from optexp_jax.validation.stability import Stability


@dataclass(frozen=True)
class UnitFacts:
    """A unit of a run, with all that a report shows in figures."""

    result: UnitResult
    steps: tuple[FormulaStep, ...] = ()
    """Of its formula; none if the source of the run cannot be opened again."""
    any_formula: float | None = None
    """No combination of the concepts, however long, has a higher IoU; None likewise."""

    @property
    def unit(self) -> int:
        return self.result.unit

    @property
    def found(self) -> Explanation | None:
        return self.result.explanation

    @property
    def formula(self) -> Formula | None:
        return None if self.found is None else self.found.formula

    @property
    def iou(self) -> float | None:
        return None if self.found is None else self.found.iou

    @property
    def status(self) -> str:
        """`optimal`, `feasible` or `failed`."""
        return "failed" if self.found is None else str(self.found.status)

    @property
    def proved(self) -> bool:
        return self.found is not None and self.found.status is Status.OPTIMAL

    @property
    def p_value(self) -> float | None:
        return None if self.result.null is None else self.result.null.p_value

    @property
    def held_out(self) -> HeldOut | None:
        """What formulas score on folds that they were not found on."""
        other = self.result.other_images
        return None if other is None else other.held_out

    @property
    def stability(self) -> Stability | None:
        """What resamples say about the formula."""
        other = self.result.other_images
        return None if other is None else other.stability

    @property
    def confidence(self) -> ConfidenceSet | None:
        """All formulas that resamples cannot tell from the best one."""
        other = self.result.other_images
        return None if other is None else other.confidence

    @property
    def neuron(self) -> NeuronSummary | None:
        """The unit's size, and the best single concept."""
        return None if self.found is None else self.found.neuron

    @property
    def precision(self) -> float | None:
        """The share of the formula's locations where the unit is active."""
        return None if self.formula is None or self.found is None else self.found.precision

    @property
    def recall(self) -> float | None:
        """The share of the unit's locations that the formula covers."""
        return None if self.found is None else self.found.recall

    @property
    def size_limit(self) -> float | None:
        """The highest IoU of two sets as large as the unit and its formula."""
        return None if self.formula is None or self.found is None else self.found.highest_for_sizes


def unit_facts(
    result: UnitResult, table: ConceptTable | None, counts: NeuronCounts | None
) -> UnitFacts:
    """The facts of a unit; without table and counts, those that the run itself holds."""
    if table is None or counts is None:
        return UnitFacts(result)
    found = result.explanation
    steps = ()
    if found is not None and found.formula is not None:
        steps = formula_steps(table, counts, found.formula)
    return UnitFacts(result, steps, float(highest_of_any_formula(counts)))


def highest_of_any_formula(counts: NeuronCounts) -> Fraction:
    """The highest IoU of any set of signatures that leaves out the empty one.

    Every formula holds on such a set, whatever its length. For a ratio of sums the best set takes
    signatures in the order of their active share, as long as that is above the ratio so far.
    """
    inside, outside = counts.inside[1:], counts.outside[1:]
    touched = np.flatnonzero(inside)
    inside, outside = inside[touched], outside[touched]
    order = np.argsort(-(inside / (inside + outside)), kind="stable")
    captured = np.concatenate([[0], np.cumsum(inside[order])])
    union = np.concatenate([[0], np.cumsum(outside[order])]) + counts.size
    best = max(highest_rows(captured, union))
    return Fraction(int(captured[best]), max(int(union[best]), 1))
