"""Places: where the inner part of a chain does its work, once the outer steps are fixed."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Bool, Int32, Int64

from optexp_jax.bounds.tight.forms import INTERSECTION, OPERATORS, UNION, Forms
from optexp_jax.bounds.tight.grams import (
    Counted,
    Gram,
    HostGram,
    Overlaps,
    Own,
    Within,
    cells_of,
)
from optexp_jax.bounds.tight.labels_on_device import PlaceOnDevice
from optexp_jax.bounds.tight.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.relevance import OverlapSums, gains, present
from optexp_jax.bounds.tight.rounding import left_for, needed, weight
from optexp_jax.bounds.tight.sparse_table import Sizes, pack_region
from optexp_jax.bounds.tight.tuning import COUNTS_AT_ONCE, Tuning
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.problem import Problem


@dataclass(frozen=True)
class Step:
    """One step of a chain: a form (which operator) and a concept."""

    form: int
    concept: int


@dataclass(frozen=True)
class Spot:
    """Which place: its outer steps, from the outermost inward, and what can be left out there."""

    steps: tuple[Step, ...] = ()
    shorter: float = np.inf
    """W of all formulas with one concept less than those that are looked for; infinite if unknown.

    It leaves out the concepts that cannot add what is missing (see `relevance`).
    """


class Place:
    """The locations that outer steps leave undecided, and what they have decided to be positive."""

    def __init__(self, problem: Problem, overlaps: Overlaps, spot: Spot):
        self.spot = spot
        self.table, self.neuron = table, neuron = problem.table, problem.neuron
        self.overlaps = overlaps
        self.undecided: Bool[np.ndarray, " signatures"] = np.ones(len(table.signatures), bool)
        self.decided_inside = self.decided_outside = 0
        self.unused: Bool[np.ndarray, " all_concepts"] = np.ones(table.n_concepts, bool)
        """Concepts of the table that no outer step has."""
        for step in spot.steps:
            self.unused[step.concept] = False
            member = table.signatures.membership(step.concept)
            if step.form == UNION:
                taken = self.undecided & member
                self.decided_inside += int(neuron.inside[taken].sum())
                self.decided_outside += int(neuron.outside[taken].sum())
            self.undecided &= member if step.form == INTERSECTION else ~member
        self.within = Within(overlaps, self.undecided)
        self.of_use = self.unused
        """Those of them that can be part of a formula of interest."""
        self.concepts = LocalConcepts.everything(table.n_concepts)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.spot.steps

    def keep(self, kept: Bool[np.ndarray, " all_concepts"], few: float = 0.0) -> None:
        """Leave out all other concepts; before anything is counted.

        The others are numbered anew where they are a share `few` of all or less.
        """
        self.of_use = kept & self.unused
        self.concepts = LocalConcepts.of(self.of_use, few)

    @cached_property
    def allowed(self) -> Bool[np.ndarray, " concepts"]:
        """Concepts that the inner part may have, as they are numbered here."""
        return self.concepts.pick(self.of_use)

    @cached_property
    def gram(self) -> Gram:
        """Exact overlaps of all pairs of concepts here."""
        if not self.steps and self.concepts.is_everything:
            return self.overlaps.everywhere
        return self.within.gram(self.concepts)

    @cached_property
    def counts(self) -> HostGram:
        """The Gram matrices on the host. From a device that is much to fetch: no search does."""
        return HostGram.of(self.gram)

    @cached_property
    def own(self) -> Own:
        """Counts of each concept."""
        own = self.within.own
        return Own(self.concepts.pick(own.inside), self.concepts.pick(own.outside))

    @cached_property
    def on_device(self) -> PlaceOnDevice:
        """What programs that count have to know of it."""
        overlaps = self.overlaps
        with jax.enable_x64(True):
            region, number = put(pack_region(self.undecided, overlaps.sizes), self.concepts.number)
            return PlaceOnDevice(overlaps.on_device, region, number, self.gram)

    @property
    def decided_union(self) -> int:
        """Locations that are in the union whatever the inner part does."""
        return self.neuron.size + self.decided_outside

    def decided(self, v: float) -> float:
        """W of what is decided, rounded up."""
        return weight(float(self.decided_inside), v * self.decided_outside)

    def needed(self, v: float) -> float:
        """The W that an inner part needs for an IoU of v, rounded down."""
        return needed(v, self.neuron.size) - self.decided(v)

    def left_of(self, w: float, v: float) -> float:
        """The highest W of an inner part, rounded up, where the whole formula has w at most."""
        return left_for(w, self.decided_inside, v * self.decided_outside)

    def candidate(self, inner: Sequence[int], forms: Sequence[int], score: Score) -> Candidate:
        """The formula with inner concepts, as the table numbers them, inside the outer steps."""
        names = self.table.names
        concepts = [*inner, *(step.concept for step in reversed(self.steps))]
        codes = [*forms, *(step.form for step in reversed(self.steps))]
        formula = Formula(
            tuple(names[k] for k in concepts), tuple(OPERATORS[code] for code in codes)
        )
        return Candidate(formula, score)

    def score(self, inside: int, outside: int) -> Score:
        """The exact score of an inner part that holds at so many undecided locations."""
        return Score(self.decided_inside + inside, self.decided_union + outside)

    def concept_score(self, concept: int) -> Score:
        """The exact score of one concept."""
        return self.score(int(self.own.inside[concept]), int(self.own.outside[concept]))

    def pair_scores(
        self,
        form: Int32[np.ndarray, " pairs"],
        a: Int32[np.ndarray, " pairs"],
        b: Int32[np.ndarray, " pairs"],
    ) -> list[Score]:
        """The exact scores of pairs, from the Gram matrices."""
        held_inside, held_outside = self._held(a, b)
        parts = (
            (own[a].tolist(), own[b].tolist(), held.tolist())
            for own, held in ((self.own.inside, held_inside), (self.own.outside, held_outside))
        )
        (first_i, second_i, both_i), (first_e, second_e, both_e) = parts
        return [
            self.score(
                joined(code, first_i[k], second_i[k], both_i[k]),
                joined(code, first_e[k], second_e[k], both_e[k]),
            )
            for k, code in enumerate(form.tolist())
        ]

    def pair_score(self, form: int, a: int, b: int) -> Score:
        """The exact score of a pair."""
        return self.pair_scores(*(np.array([part], np.int32) for part in (form, a, b)))[0]

    def _held(
        self, a: Int32[np.ndarray, " pairs"], b: Int32[np.ndarray, " pairs"]
    ) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """What both concepts of pairs hold."""
        if self.overlaps.on_host:
            return self.counts.inside[a, b], self.counts.outside[a, b]
        found = [np.empty((2, 0), np.int64)]
        with jax.enable_x64(True):
            for start in range(0, len(a), COUNTS_AT_ONCE):
                some = (
                    fill_up(part[start : start + COUNTS_AT_ONCE], COUNTS_AT_ONCE) for part in (a, b)
                )
                found.append(fetch(run(cells_of, self.gram, *some)))
        inside, outside = np.concatenate(found, axis=1)[:, : len(a)]
        return inside, outside


def joined(form: int, first: int, second: int, common: int) -> int:
    """How many locations `first∘second` has."""
    if form == INTERSECTION:
        return common
    return first - common + (second if form == UNION else 0)


class Places:
    """Makes places, and remembers the last few."""

    def __init__(
        self,
        problem: Problem,
        tuning: Tuning | None = None,
        sizes: Sizes | None = None,
        counted: Counted | None = None,
    ):
        self.overlaps = Overlaps(problem.table, problem.neuron, sizes=sizes, counted=counted)
        self._problem = problem
        self._tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        self._recent: OrderedDict[Spot, Place] = OrderedDict()

    def at(self, spot: Spot, v: float = 0.0) -> Place:
        """A place, with the concepts of use there where formulas have to be better than v."""
        if spot in self._recent:
            self._recent.move_to_end(spot)
            return self._recent[spot]
        place = self._recent[spot] = Place(self._problem, self.overlaps, spot)
        if spot.steps or np.isfinite(spot.shorter):
            place.keep(self._relevant(place, v), self._tuning.few_concepts)
        if len(self._recent) > self._tuning.remembered:
            self._recent.popitem(last=False)
        return place

    def _relevant(self, place: Place, v: float) -> Bool[np.ndarray, " concepts"]:
        problem, spot, own = self._problem, place.spot, place.within.own
        kept = present(own)
        if np.isinf(spot.shorter):
            return kept
        missing = needed(v, problem.neuron.size) - spot.shorter
        left, forms = problem.depth - len(spot.steps), Forms.of(problem.operators)
        gain = gains(own, self._sums, v, left, forms)
        return kept & (gain >= missing)

    @cached_property
    def _sums(self) -> OverlapSums:
        return OverlapSums.of(self.overlaps.everywhere, self._problem.depth - 1)
