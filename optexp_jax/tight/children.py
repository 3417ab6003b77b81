"""Which longer formulas may beat the incumbent, at a place and around a label."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int32

from optexp_jax.problem import Problem
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.frontier import Queued, concatenate
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.shapes import fill_up
from optexp_jax.tight.forms import DIFFERENCE, INTERSECTION, Forms
from optexp_jax.tight.last_steps import longer_labels
from optexp_jax.tight.nodes import TightNodes
from optexp_jax.tight.outer import OuterRows, effective_steps, outer_bounds, outer_rows
from optexp_jax.tight.pair_bounds import highest_pair_bounds, pair_bounds
from optexp_jax.tight.place import FEW_LABELS, Children, Place
from optexp_jax.tight.ranking import Ranking
from optexp_jax.tight.region import ROWS_AT_ONCE, Region
from optexp_jax.tight.rows import Rows, rows_of
from optexp_jax.tight.short_formulas import Limits, short_formulas
from optexp_jax.tight.some_pairs import FEW_CONCEPTS, SomePairs
from optexp_jax.tight.triple_bounds import triple_bounds
from optexp_jax.tight.two_steps import (
    refined_two_steps,
    step_rows,
    two_step_bounds,
)

MOST_TRIED = 64
"""Pairs that are looked at for the highest W of three concepts."""
SMALL_TABLE = 256
"""On tables of up to so many concepts calls cost more than what they do."""
MOST_UNREFINED = 128
"""So many pairs are not bounded a second time there."""


@dataclass(frozen=True)
class Goal:
    """What an inner part has to reach at a place."""

    v: float
    """Just below the incumbent's IoU."""
    need: float
    """The W that it takes, at this v, to tie with the incumbent."""


@dataclass(frozen=True, eq=False)
class View:
    """A place at some v, and what is known of its rows."""

    place: Place
    goal: Goal
    region: Region
    rows: Rows


@dataclass(frozen=True, eq=False)
class OuterSteps:
    """Steps of some forms, with some concepts."""

    forms: Forms
    concepts: Int32[np.ndarray, " concepts"]


class TightChildren:
    """Bounds what a place or a label can become, and makes nodes of what may beat the incumbent."""

    def __init__(
        self, problem: Problem, forms: Forms, ranking: Ranking, clock: Clock, counters: Counters
    ):
        self._problem = problem
        self._length = problem.depth
        self._forms = forms
        self.ranking = ranking
        self._clock = clock
        self._counters = counters
        # W is a sum of a dozen terms of at most the number of locations each, in float64 or,
        # on some devices, in an emulation that keeps a few bits less.
        self._slack = 2.0**-41 * problem.table.n_locations
        self._views: WeakKeyDictionary[Place, View] = WeakKeyDictionary()

    def inside(self, place: Place, upper: float, incumbent: Incumbent) -> Queued[TightNodes] | None:
        """What may beat the incumbent with three and more concepts inside the outer steps."""
        left = self._length - len(place.steps)
        if left < 3:
            return None
        with self._clock.phase("device"), jax.enable_x64(True):
            view = self._view(place, incumbent)
            highest = self._highest_bounds(view)
            parts = [self._queue_pairs(view, self._pairs(view, highest, view.goal.need), 1)]
            self._counters.estimated += int(place.allowed.sum()) ** 2
            if left >= 4:
                # The node's own bound holds for all that can be made here, at the v of then and so
                # at any higher one. Next to an outer OR it leaves out pure ORs of higher rank; the
                # class with one filter less a source, which is not ordered, bounds them as part of
                # a longer chain.
                best = upper * self._problem.neuron.size - place.decided(view.goal.v)
                rows = outer_rows(view.region, longest=self._length - 1)
                from_inside = left == 4 and bool(rows.meeting)
                if from_inside:
                    limits = self._limits(view, highest)
                    best = min(best, float(limits.three))
                    parts.append(self._two_step_nodes(view, limits))
                steps = self._outer_steps(place, from_inside)
                parts.append(self._outer_nodes(view, rows, best, steps))
        return concatenate(parts)

    def longer(self, place: Place, children: Children, incumbent: Incumbent) -> Queued[TightNodes]:
        """Labels of three concepts that one more OR or AND NOT may take past the incumbent."""
        with self._clock.phase("device"), jax.enable_x64(True):
            view = self._view(place, incumbent)
            longer = longer_labels(view.region, view.rows, children, view.goal.need, self._forms)
        self._counters.estimated += children.iou.size
        nodes = TightNodes.around(longer.labels, self._length, place.steps, 1, view.goal.v)
        return self._queue(nodes, place.decided(view.goal.v) + longer.upper)

    def _highest_bounds(self, view: View) -> Float64[np.ndarray, " concepts"]:
        """The highest bound of all pairs with the same first concept, or what is above it."""
        n = view.region.n_concepts
        if n <= FEW_CONCEPTS:
            return np.full(n, np.inf)
        bounds = highest_pair_bounds(view.region, view.rows, forms=self._forms)
        return np.asarray(bounds).max(1)

    def _pairs(
        self, view: View, highest: Float64[np.ndarray, " concepts"], need: float
    ) -> SomePairs:
        """Pairs that one further step may take to `need`."""
        of_rows = partial(pair_bounds, view.region, view.rows, forms=self._forms)
        pairs = SomePairs.at_least(np.flatnonzero(highest >= need), of_rows, need)
        if len(pairs) <= MOST_UNREFINED and view.region.n_concepts <= SMALL_TABLE:
            return pairs  # They are expanded as soon as they are bounded again.
        pairs.lower_to(partial(triple_bounds, view.region, forms=self._forms), self._clock)
        return pairs.take(pairs.value >= need)

    def _limits(self, view: View, highest: Float64[np.ndarray, " concepts"]) -> Limits:
        """What formulas of one to three concepts can be worth."""
        limits = short_formulas(view.region, forms=self._forms)
        three = jnp.float64(self._highest_of_three(view, highest, float(limits.two)))
        return replace(limits, three=three)

    def _two_step_nodes(self, view: View, limits: Limits) -> Queued[TightNodes]:
        """Pairs that two further steps may take past the incumbent."""
        known = view.region, view.rows
        more = step_rows(*known)
        of_rows = partial(two_step_bounds, *known, more, limits, forms=self._forms)
        rows = np.flatnonzero(view.place.allowed)
        pairs = SomePairs.at_least(rows, of_rows, view.goal.need)
        self._counters.estimated += int(view.place.allowed.sum()) ** 2
        pairs.lower_to(partial(refined_two_steps, *known, limits, forms=self._forms), self._clock)
        return self._queue_pairs(view, pairs.take(pairs.value >= view.goal.need), 2)

    def _highest_of_three(
        self, view: View, highest: Float64[np.ndarray, " concepts"], two: float
    ) -> float:
        """The highest W of at most three concepts, or what it can be at most.

        Pairs are tried from the highest bound down, until no bound is higher than what was found.
        """
        pairs = self._pairs(view, highest, float(np.nextafter(two, np.inf)))
        best = two
        order = np.argsort(-pairs.value)
        for start in range(0, len(order), FEW_LABELS):
            most = float(pairs.value[order[start]])
            if most <= best or start >= MOST_TRIED or self._clock.expired:
                return max(best, most)
            labels = pairs.labels.take(order[start : start + FEW_LABELS])
            for children in view.place.children(labels):
                best = max(best, view.place.highest_w(children, view.goal.v))
        return best

    def _queue_pairs(self, view: View, pairs: SomePairs, further: int) -> Queued[TightNodes]:
        place, v = view.place, view.goal.v
        nodes = TightNodes.around(pairs.labels, self._length, place.steps, further, v)
        return self._queue(nodes, place.decided(v) + pairs.value)

    def _outer_nodes(
        self, view: View, rows: OuterRows, best: float, steps: Sequence[OuterSteps]
    ) -> Queued[TightNodes]:
        """Next outer steps with which some completion may beat the incumbent."""
        place, v = view.place, view.goal.v
        known = (
            view.region,
            rows,
            self.ranking.rank,
            jnp.float64(best),
            jnp.int32(self._length - len(place.steps) - 1),
        )
        w = np.full((3, len(place.allowed)), -np.inf)
        for part in steps:
            for start in range(0, len(part.concepts), ROWS_AT_ONCE):
                c = part.concepts[start : start + ROWS_AT_ONCE]
                padded = fill_up(c, ROWS_AT_ONCE)
                found = outer_bounds(*known, padded, forms=self._forms, steps=part.forms)
                w[:, c] = np.maximum(w[:, c], np.asarray(found)[: len(c)].T)
            self._counters.estimated += len(part.concepts)
        effective = np.asarray(effective_steps(view.region))
        w = np.where(self._in_order(place) & effective, w, -np.inf)
        form, concept = (part.astype(np.int32) for part in np.nonzero(w >= view.goal.need))
        nodes = TightNodes.outer(self._length, place.steps, form, concept, v)
        return self._queue(nodes, place.decided(v) + w[form, concept])

    def _outer_steps(self, place: Place, from_inside: bool) -> list[OuterSteps]:
        """Which outer steps are searched; fewer where the others are bounded from the inside."""
        concepts = np.flatnonzero(place.allowed).astype(np.int32)
        if not from_inside:
            return [OuterSteps(self._forms, concepts)]
        heavy = np.flatnonzero(place.allowed & ~self.ranking.light(place.allowed)).astype(np.int32)
        return [
            OuterSteps(Forms(self._forms.union, False, False), heavy),
            OuterSteps(Forms(False, self._forms.intersection, False), concepts),
        ]

    def _in_order(self, place: Place) -> Bool[np.ndarray, "forms concepts"]:
        """Which next steps come in the one order that is searched.

        In a run of the same operator ranks fall from the outermost step inward; ANDs stand outside
        AND NOTs, with which they commute.
        """
        kept = np.ones((3, len(self.ranking.rank)), bool)
        if place.steps:
            last = place.steps[-1]
            kept[last.form] = self.ranking.rank < self.ranking.rank[last.concept]
            if last.form == DIFFERENCE:
                kept[INTERSECTION] = False
        return kept

    def goal(self, place: Place, incumbent: Incumbent) -> Goal:
        """What has to be reached inside a place to tie with the incumbent."""
        v = float(np.nextafter(incumbent.threshold, 0.0))
        return Goal(v, v * self._problem.neuron.size - place.decided(v) - self._slack)

    def _view(self, place: Place, incumbent: Incumbent) -> View:
        goal = self.goal(place, incumbent)
        known = self._views.get(place)
        if known is None or known.goal != goal:
            region = place.region(goal.v, self.ranking.light(place.allowed))
            known = self._views[place] = View(place, goal, region, rows_of(region))
        return known

    def _queue(self, nodes: TightNodes, w: Float64[np.ndarray, " nodes"]) -> Queued[TightNodes]:
        # W(L) <= w means IoU(L) <= w / |N|, or IoU(L) < v: extras pull the ratio towards v.
        upper = (w + self._slack) / self._problem.neuron.size * (1 + 2.0**-44)
        return Queued(nodes, upper, np.zeros(len(nodes), np.int64))
