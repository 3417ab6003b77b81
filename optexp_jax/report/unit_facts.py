"""What a report tells of a unit, as exact counts and the figures that follow from them."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score, highest_rows
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.report.steps import FormulaStep, formula_steps
from optexp_jax.runs.results import UnitResult


@dataclass(frozen=True)
class BestConcept:
    """The concept that overlaps a unit best on its own."""

    name: str
    score: Score


@dataclass(frozen=True)
class UnitCounts:
    """What follows from a unit's counts: for runs whose source can be opened again."""

    size: int
    """|N|, the active locations."""
    n_locations: int
    single: BestConcept | None
    steps: tuple[FormulaStep, ...]
    any_formula: float
    """No combination of the concepts, however long, has a higher IoU than this."""

    @property
    def active_share(self) -> float:
        return self.size / self.n_locations


@dataclass(frozen=True)
class UnitFacts:
    """A unit of a run, with all that a report shows in figures."""

    result: UnitResult
    counted: UnitCounts | None
    """None if the source of the run cannot be opened again."""

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
    def mask_size(self) -> int | None:
        """Locations where the formula holds: the union without what only the unit has."""
        if self.found is None or self.counted is None:
            return None
        return self.found.union - self.counted.size + self.found.intersection

    @property
    def precision(self) -> float | None:
        """The share of the formula's locations where the unit is active."""
        if self.found is None or not self.mask_size:
            return None
        return self.found.intersection / self.mask_size

    @property
    def recall(self) -> float | None:
        """The share of the unit's locations that the formula covers."""
        if self.found is None or self.counted is None or not self.counted.size:
            return None
        return self.found.intersection / self.counted.size

    @property
    def size_limit(self) -> float | None:
        """The highest IoU of two sets as large as the unit and its formula."""
        if self.counted is None or not self.mask_size or not self.counted.size:
            return None
        sizes = (self.counted.size, self.mask_size)
        return min(sizes) / max(sizes)


def unit_facts(
    result: UnitResult, table: ConceptTable | None, counts: NeuronCounts | None
) -> UnitFacts:
    """The facts of a unit; without table and counts, those that the run itself holds."""
    if table is None or counts is None:
        return UnitFacts(result, None)
    found = result.explanation
    steps = ()
    if found is not None and found.formula is not None:
        steps = formula_steps(table, counts, found.formula)
    return UnitFacts(
        result,
        UnitCounts(
            size=counts.size,
            n_locations=table.n_locations,
            single=best_single(table, counts),
            steps=steps,
            any_formula=float(highest_of_any_formula(counts)),
        ),
    )


def best_single(table: ConceptTable, counts: NeuronCounts) -> BestConcept | None:
    """The best single concept, the first by name of those that are level; None if none overlaps."""
    incidence = table.signatures.incidence
    inside, outside = incidence.T @ counts.inside, incidence.T @ counts.outside
    if not inside.any():
        return None
    unions = counts.size + outside
    best = min(highest_rows(inside, unions), key=lambda row: table.names[row])
    return BestConcept(table.names[best], Score(int(inside[best]), int(unions[best])))


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
