"""Places: where the inner part of a chain does its work, once the outer steps are fixed."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.device_table import move
from optexp_jax.formula import Formula
from optexp_jax.problem import Problem
from optexp_jax.scores import Score
from optexp_jax.search.incumbent import Candidate
from optexp_jax.shapes import fill_up
from optexp_jax.tight.forms import INTERSECTION, OPERATORS, UNION, Forms
from optexp_jax.tight.grams import Gram, HostGram, Overlaps
from optexp_jax.tight.label_children import Surroundings, highest_w, score_children
from optexp_jax.tight.labels import LabelCounts, Labels, count_labels
from optexp_jax.tight.pair_scores import Decided
from optexp_jax.tight.region import Region

LABELS_AT_ONCE, FEW_LABELS = 128, 8
"""Labels whose children are looked at in one call. With more the arrays no longer fit a cache."""
REMEMBERED = 32
"""Places whose counts are kept for the pairs that are expanded next."""


@dataclass(frozen=True)
class Step:
    """One step of a chain: a form (which operator) and a concept."""

    form: int
    concept: int


@dataclass(frozen=True, eq=False)
class Children:
    """Some labels of a place joined with every concept."""

    labels: Labels
    counts: LabelCounts
    """Filled up with empty labels to one of a few sizes, as `inner` is."""
    inner: Int32[np.ndarray, "padded length"]
    iou: Float64[np.ndarray, "labels forms concepts"]
    """In floating point, to be compared exactly; −1 where a child is not needed."""


class Place:
    """The locations that outer steps leave undecided, and what they have decided to be positive."""

    def __init__(self, problem: Problem, overlaps: Overlaps, steps: Sequence[Step]):
        self.steps = tuple(steps)
        self._problem = problem
        self._overlaps = overlaps
        self._forms = Forms.of(problem.operators)
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

    @cached_property
    def counts(self) -> HostGram:
        """The Gram matrices on the host."""
        return HostGram.of(self.gram)

    @cached_property
    def decision(self) -> Decided:
        """What is decided, on the device."""
        union = self._problem.neuron.size + self.decided_outside
        with jax.enable_x64(True):
            moved = move(np.int64(self.decided_inside), np.int64(union))
        return Decided(moved[0], moved[1])

    @cached_property
    def around(self) -> Surroundings:
        """What labels are joined with here."""
        own_inside, own_outside = self.counts.inside.diagonal(), self.counts.outside.diagonal()
        with jax.enable_x64(True):
            moved = move(own_inside, own_outside, self.allowed)
        return Surroundings(moved[0], moved[1], moved[2], self.decision)

    def region(self, v: float, light: Bool[np.ndarray, " concepts"]) -> Region:
        """What bounds see of the place, at some v."""
        with jax.enable_x64(True):
            moved = move(light, np.float64(v))
        return Region(self.gram, self.around.allowed, moved[0], moved[1])

    def decided(self, v: float) -> float:
        """W of what is decided."""
        return self.decided_inside - v * self.decided_outside

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

    def concept_score(self, concept: int) -> Score:
        """The exact score of one concept."""
        inside, outside = self.counts.inside, self.counts.outside
        return self.score(int(inside[concept, concept]), int(outside[concept, concept]))

    def pair_score(self, form: int, a: int, b: int) -> Score:
        """The exact score of a pair, from the Gram matrices."""

        def count(pairs: Int64[np.ndarray, "n n"]) -> int:
            return _joined(form, int(pairs[a, a]), int(pairs[b, b]), int(pairs[a, b]))

        return self.score(count(self.counts.inside), count(self.counts.outside))

    def child_score(self, children: Children, row: int, form: int, x: int) -> Score:
        """The exact score of a label joined with a concept."""
        counts, own = children.counts, self.counts
        inside, outside, shared_inside, shared_outside = (
            int(part)
            for part in (
                counts.inside[row],
                counts.outside[row],
                counts.shared_inside[row, x],
                counts.shared_outside[row, x],
            )
        )
        return self.score(
            _joined(form, inside, int(own.inside[x, x]), shared_inside),
            _joined(form, outside, int(own.outside[x, x]), shared_outside),
        )

    def children(self, labels: Labels) -> Iterator[Children]:
        """Exact scores of labels joined with every other concept, a chunk at a time."""
        for start in range(0, len(labels), LABELS_AT_ONCE):
            yield self._children(labels.take(slice(start, start + LABELS_AT_ONCE)))

    def _children(self, labels: Labels) -> Children:
        problem = self._problem
        counts = count_labels(problem.table, problem.neuron, labels, self.undecided, self.counts)
        size = LABELS_AT_ONCE if len(labels) > FEW_LABELS else FEW_LABELS
        counts, inner = jax.tree.map(lambda part: fill_up(part, size), (counts, labels.inner))
        with jax.enable_x64(True):
            iou = score_children(self.around, counts, inner, forms=self._forms)
            return Children(labels, counts, inner, np.asarray(iou)[: len(labels)])

    def highest_w(self, children: Children, v: float) -> float:
        """The highest W of the labels' children, over what is undecided; −∞ if there is none."""
        with jax.enable_x64(True):
            known = self.around, children.counts, children.inner
            return float(highest_w(*known, v, forms=self._forms).max())


def _joined(form: int, first: int, second: int, common: int) -> int:
    """How many locations `first∘second` has."""
    if form == INTERSECTION:
        return common
    return first - common + (second if form == UNION else 0)


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
