"""Places: where the inner part of a chain does its work, once the outer steps are fixed."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.formula import Formula
from optexp_jax.operators import AND, AND_NOT, OR
from optexp_jax.problem import Problem
from optexp_jax.scores import Score
from optexp_jax.search.incumbent import Candidate
from optexp_jax.tight.grams import Gram, LabelOverlaps, Overlaps
from optexp_jax.tight.pairs import DIFFERENCE, INTERSECTION, UNION

OPERATORS = {UNION: OR, INTERSECTION: AND, DIFFERENCE: AND_NOT}
REMEMBERED = 32
"""Places whose counts are kept for the pairs that are expanded next."""


@dataclass(frozen=True)
class Step:
    """One step of a chain: a form (which operator) and a concept."""

    form: int
    concept: int


@dataclass(frozen=True, eq=False)
class ChildScores:
    """Exact counts of a label joined with every concept, by form; needless ones have IoU −1."""

    intersections: Int64[np.ndarray, "forms concepts"]
    unions: Int64[np.ndarray, "forms concepts"]
    iou: Float64[np.ndarray, "forms concepts"]
    label_inside: int
    label_outside: int
    shared: LabelOverlaps
    """What the label shares with every concept."""


class Place:
    """The locations that outer steps leave undecided, and what they have decided to be positive."""

    def __init__(self, problem: Problem, overlaps: Overlaps, steps: Sequence[Step]):
        self.steps = tuple(steps)
        self._problem = problem
        self._overlaps = overlaps
        table, neuron = problem.table, problem.neuron
        self.undecided: Bool[np.ndarray, " signatures"] = np.ones(len(table.signatures), bool)
        self.decided_inside = self.decided_outside = 0
        self.allowed: Bool[np.ndarray, " concepts"] = np.ones(table.n_concepts, bool)
        for step in self.steps:
            self.allowed[step.concept] = False
            member = table.signatures.membership(step.concept)
            if step.form == UNION:
                taken = self.undecided & member
                self.decided_inside += int(neuron.inside[taken].sum())
                self.decided_outside += int(neuron.outside[taken].sum())
            self.undecided &= member if step.form == INTERSECTION else ~member

    @cached_property
    def gram(self) -> Gram:
        """Exact overlaps of all pairs of concepts here."""
        if not self.steps:
            return self._overlaps.everywhere
        return self._overlaps.gram(self.undecided)

    def decided(self, v: float) -> float:
        """W of what is decided."""
        return self.decided_inside - v * self.decided_outside

    @cached_property
    def own(self) -> LabelOverlaps:
        """Counts of every concept here."""
        return self._overlaps.own if not self.steps else self._overlaps.of_region(self.undecided)

    def candidate(self, inner: Sequence[int], forms: Sequence[int], score: Score) -> Candidate:
        """The formula with inner concepts and forms inside the outer steps."""
        names = self._problem.table.names
        concepts = [*inner, *(step.concept for step in reversed(self.steps))]
        codes = [*forms, *(step.form for step in reversed(self.steps))]
        formula = Formula(
            tuple(names[k] for k in concepts), tuple(OPERATORS[code] for code in codes)
        )
        return Candidate(formula, score)

    def score(self, inside: int, outside: int) -> Score:
        """The exact score of an inner part that holds at so many undecided locations."""
        return Score(
            self.decided_inside + inside,
            self._problem.neuron.size + self.decided_outside + outside,
        )

    def pair_score(self, form: int, a: int, b: int) -> Score:
        """The exact score of a pair, from the Gram matrices."""

        def count(gram: Int64[np.ndarray, "n n"]) -> int:
            common = int(gram[a, b])
            if form == INTERSECTION:
                return common
            return int(gram[a, a]) - common + (int(gram[b, b]) if form == UNION else 0)

        return self.score(count(np.asarray(self.gram.inside)), count(np.asarray(self.gram.outside)))

    def children(self, inner: Sequence[int], forms: Sequence[int]) -> ChildScores:
        """Exact scores of an inner label joined with every other concept."""
        inside, outside, shared = self._label(inner, forms)
        counts = {
            UNION: LabelOverlaps(inside + self.own.inside, outside + self.own.outside) - shared,
            INTERSECTION: shared,
            DIFFERENCE: LabelOverlaps(inside - shared.inside, outside - shared.outside),
        }
        size = self._problem.neuron.size + self.decided_outside
        intersections = np.stack([self.decided_inside + counts[k].inside for k in range(3)])
        unions = np.stack([size + counts[k].outside for k in range(3)])
        iou = intersections / unions
        iou[:, ~self.allowed] = -1.0
        iou[:, list(inner)] = -1.0
        for form, operator in OPERATORS.items():
            if operator not in self._problem.operators:
                iou[form] = -1.0
        # A child that is empty, or equal to one of its sides, exists with fewer concepts.
        common = shared.inside + shared.outside
        contains = common == self.own.inside + self.own.outside
        contained = common == inside + outside
        iou[UNION, contains | contained] = -1.0
        iou[INTERSECTION, contains | contained | (common == 0)] = -1.0
        iou[DIFFERENCE, contained | (common == 0)] = -1.0
        return ChildScores(intersections, unions, iou, inside, outside, shared)

    def highest_w(self, children: ChildScores, v: float) -> float:
        """The highest W of a label's children, over what is undecided; −∞ if there is none."""
        inside = children.intersections - self.decided_inside
        outside = children.unions - self._problem.neuron.size - self.decided_outside
        return float(np.where(children.iou >= 0, inside - v * outside, -np.inf).max())

    def _label(self, inner: Sequence[int], forms: Sequence[int]) -> tuple[int, int, LabelOverlaps]:
        """A label's own counts and its overlaps with every concept."""
        neuron, signatures = self._problem.neuron, self._problem.table.signatures
        if not self.steps and len(inner) == 2:
            # Only what both concepts share has to be looked up; their rows are known.
            a, b = inner
            holders = signatures.holders
            rows = holders.indices[holders.indptr[b] : holders.indptr[b + 1]]
            both = rows[signatures.membership(a)[rows]]
            shared = self._overlaps.of_rows(both)
            first, second = self._overlaps.of_concept(a), self._overlaps.of_concept(b)
            if forms[0] == UNION:
                shared = first + second - shared
            elif forms[0] == DIFFERENCE:
                shared = first - shared
            # A label shares with a what it has of a: for all three forms that and b's share
            # give its own counts.
            score = self.pair_score(forms[0], a, b)
            return score.intersection, score.union - neuron.size, shared
        held = signatures.membership(inner[0])
        for form, concept in zip(forms, inner[1:], strict=True):
            held = OPERATORS[form](held, signatures.membership(concept))
        rows = np.flatnonzero(held & self.undecided)
        return (
            int(neuron.inside[rows].sum()),
            int(neuron.outside[rows].sum()),
            self._overlaps.of_rows(rows),
        )


class Places:
    """Makes places, and remembers the last few."""

    def __init__(self, problem: Problem):
        self.overlaps = Overlaps(problem.table, problem.neuron)
        self._problem = problem
        self._recent: OrderedDict[tuple[Step, ...], Place] = OrderedDict()

    def at(self, steps: Sequence[Step]) -> Place:
        """The place inside these outer steps, given from the outermost inward."""
        key = tuple(steps)
        if key in self._recent:
            self._recent.move_to_end(key)
            return self._recent[key]
        place = self._recent[key] = Place(self._problem, self.overlaps, key)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return place
