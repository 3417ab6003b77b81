"""Which longer formulas may beat the incumbent, at some places and around labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
from jaxtyping import Bool, Float64

from optexp_jax.bounds.tight.expanded import Expanded, LabelsAt, expand
from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, Forms
from optexp_jax.bounds.tight.last_steps import longer_labels
from optexp_jax.bounds.tight.nodes import TightNodes
from optexp_jax.bounds.tight.outer import OuterRows, effective_steps, outer_bounds, outer_rows
from optexp_jax.bounds.tight.pair_bounds import highest_bounds
from optexp_jax.bounds.tight.pairs_on_device import PairBound
from optexp_jax.bounds.tight.place import Place, Places, Spot
from optexp_jax.bounds.tight.ranking import Ranking
from optexp_jax.bounds.tight.root import FusedRoot
from optexp_jax.bounds.tight.rounding import iou_at_most, v_below
from optexp_jax.bounds.tight.short_formulas import ShortFormulaBounds, short_formulas
from optexp_jax.bounds.tight.some_pairs import OfRows, SomePairs
from optexp_jax.bounds.tight.survivors import survivors
from optexp_jax.bounds.tight.triple_bounds import triple_bounds
from optexp_jax.bounds.tight.tuning import FEW_LABELS, FEWEST_ROWS, ROW_CELLS, Tuning
from optexp_jax.bounds.tight.two_steps import refined_two_steps, step_rows, two_step_bounds
from optexp_jax.bounds.tight.views import ViewCache, Views, together
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.frontier import Queued, concatenate
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class OuterSteps:
    """Steps of some forms, with some concepts of each place."""

    forms: Forms
    concepts: Bool[np.ndarray, "places concepts"]


class TightChildren:
    """Bounds what places and labels can become; makes nodes of what may beat the incumbent."""

    def __init__(
        self,
        problem: Problem,
        places: Places,
        ranking: Ranking,
        tuning: Tuning,
        clock: Clock,
        counters: Counters,
    ):
        self._problem = problem
        self._length = problem.depth
        self._forms = Forms.of(problem.operators)
        self._places = places
        self.ranking = ranking
        self._tuning = tuning
        self._clock = clock
        self._counters = counters
        self._views = ViewCache(ranking)

    def inside(
        self,
        places: Sequence[Place],
        upper: Float64[np.ndarray, " places"],
        incumbent: Incumbent,
        fused: FusedRoot | None = None,
    ) -> Queued[TightNodes] | None:
        """What may beat the incumbent with three and more concepts inside the outer steps.

        For places that can be looked at together, with as many steps each. `fused` is what is known
        of the place without outer steps.
        """
        left = self._length - len(places[0].steps)
        if left < 3:
            return None
        with self._clock.phase("device"), jax.enable_x64(True):
            v = v_below(incumbent.threshold)
            if fused is not None and self._length == 3 and fused.v == v:
                views = Views.of_fused(places[0], fused, self.ranking)
            else:
                views = self._views.at(places, v)
            highest = self._highest_bounds(views)
            parts = [self._queue_pairs(views, self._pairs(views, highest, views.need), 1)]
            self._counters.estimated += sum(int(place.allowed.sum()) ** 2 for place in places)
            if left >= 4:
                # A node's own bound holds for all that can be made at its place, at the v of then
                # and so at any higher one. Next to an outer OR it leaves out pure ORs of higher
                # rank; the class with one filter less a source, which is not ordered, bounds them
                # as part of a longer chain.
                most = (upper * self._problem.neuron.size).tolist()
                known = zip(places, most, strict=True)
                best = np.array([place.left_of(w, views.v) for place, w in known])
                rows = outer_rows(views.regions, longest=self._length - 1)
                from_inside = fetch(rows.meeting)[: len(places)] & (left == 4)
                if from_inside.any():
                    parts += self._four_left(views, highest, best, from_inside)
                if not from_inside.all():
                    steps = self._all_steps(views, ~from_inside)
                    parts.append(self._outer_nodes(views, rows, best, steps))
        return concatenate(parts)

    def longer(self, expanded: Expanded, incumbent: Incumbent) -> Queued[TightNodes]:
        """Labels of three concepts that one more OR or AND NOT may take past the incumbent."""
        with self._clock.phase("device"), jax.enable_x64(True):
            views = self._views.at(expanded.places, v_below(incumbent.threshold))
            known = views.regions, views.rows
            longer = longer_labels(*known, expanded, views.need, self._forms)
        self._counters.estimated += expanded.n_children
        parts: list[Queued[TightNodes]] = []
        for k, place in enumerate(views.places):
            here = longer.place == k
            labels, w = longer.labels.take(here), longer.upper[here]
            nodes = TightNodes.around(labels, self._length, place.spot, 1, views.v)
            parts.append(self._queue(nodes, place.decided(views.v) + w))
        return concatenate(parts)

    def _four_left(
        self,
        views: Views,
        highest: Float64[np.ndarray, "places concepts"],
        best: Float64[np.ndarray, " places"],
        which: Bool[np.ndarray, " places"],
    ) -> list[Queued[TightNodes]]:
        """Formulas of four concepts at some of the places: from the inside, and outer steps.

        First the highest W of three concepts; it leaves out the concepts that cannot add the rest.
        """
        three = self._highest_of_three(views, highest)
        best = np.minimum(best, three)
        some = np.flatnonzero(which)
        narrow: list[Place] = []
        for k in some.tolist():
            place = views.places[k]
            shorter = place.decided(views.v) + float(three[k])
            narrow.append(self._places.at(Spot(place.steps, shorter), views.v))
        parts: list[Queued[TightNodes]] = []
        for group in together(narrow):
            chosen = some[group]
            inside = [narrow[k] for k in group]
            same = views.with_concepts_of(inside)
            inner = replace(views, places=inside) if same else self._views.at(inside, views.v)
            limits = short_formulas(inner.regions, forms=self._forms)
            limits = replace(limits, three=put(inner.fill(three[chosen]))[0])
            rows = outer_rows(inner.regions, longest=self._length - 1)
            parts.append(self._two_step_nodes(inner, limits))
            steps = self._steps_from_outside(inner)
            parts.append(self._outer_nodes(inner, rows, best[chosen], steps))
        return parts

    def _highest_bounds(self, views: Views) -> Float64[np.ndarray, "places concepts"]:
        """The highest bound of all pairs with the same first concept, or what is above it."""
        if views.allowed.size * views.allowed.shape[1] <= self._tuning.fetched_cells:
            # The pairs of so few are as soon fetched.
            return np.full(views.allowed.shape, np.inf)
        bounds = highest_bounds(views.regions, views.rows, forms=self._forms)
        return fetch(bounds)

    def _pairs(
        self,
        views: Views,
        highest: Float64[np.ndarray, "places concepts"],
        need: Float64[np.ndarray, " places"],
    ) -> SomePairs:
        """Pairs that one further step may take to what is needed."""
        kept = views.allowed & (highest >= need[:, None])
        bound = partial(triple_bounds, views.regions, forms=self._forms)
        # So few of small places are expanded as soon as they are bounded again.
        small = views.regions.n_concepts <= self._tuning.small_place
        few = self._tuning.unrefined if small else -1
        return self._by_both(views, kept, views.bounds_of_rows(self._forms), need, bound, few)

    def _by_both(
        self,
        views: Views,
        kept: Bool[np.ndarray, "places concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " places"],
        bound: PairBound,
        few: int = -1,
    ) -> SomePairs:
        on_host = views.on_host or views.pair_bounds is not None
        return SomePairs.at_least_by_both(
            kept, of_rows, need, bound, self._clock, on_host=on_host, few=few
        )

    def _two_step_nodes(self, views: Views, limits: ShortFormulaBounds) -> Queued[TightNodes]:
        """Pairs that two further steps may take past the incumbent."""
        known, need = (views.regions, views.rows), views.need
        more = step_rows(*known)
        of_rows = partial(two_step_bounds, *known, more, limits, forms=self._forms)
        bound = partial(refined_two_steps, *known, limits, forms=self._forms)
        pairs = self._by_both(views, views.allowed, of_rows, need, bound)
        self._counters.estimated += sum(int(place.allowed.sum()) ** 2 for place in views.places)
        return self._queue_pairs(views, pairs, 2)

    def _highest_of_three(
        self, views: Views, highest: Float64[np.ndarray, "places concepts"]
    ) -> Float64[np.ndarray, " places"]:
        """The highest W of at most three concepts at each place, or what it can be at most.

        Pairs are tried from the highest bound down, until no bound is higher than what was found.
        """
        best = fetch(short_formulas(views.regions, forms=self._forms).two).copy()
        n_places = len(views.places)
        best[n_places:] = np.inf
        pairs = self._pairs(views, highest, np.nextafter(best, np.inf))
        pairs = pairs.take(np.argsort(-pairs.value, kind="stable"))
        waiting = [np.flatnonzero(pairs.place == k) for k in range(n_places)]
        at = {place: k for k, place in enumerate(views.places)}
        for _ in range(self._tuning.pairs_tried // FEW_LABELS):
            waiting = [rows[pairs.value[rows] > best[k]] for k, rows in enumerate(waiting)]
            tried = [
                LabelsAt(place, pairs.take(rows[:FEW_LABELS]).labels(place.concepts.ids))
                for place, rows in zip(views.places, waiting, strict=True)
                if len(rows)
            ]
            if not tried or self._clock.expired:
                break
            for expanded in expand(tried, self._forms):
                found = expanded.highest_w(views.v, self._forms)
                for row, w in enumerate(found.tolist()):
                    k = at[expanded.places[int(expanded.of_place[row])]]
                    best[k] = max(best[k], w)
            waiting = [rows[FEW_LABELS:] for rows in waiting]
        most = [pairs.value[rows].max(initial=-np.inf) for rows in waiting]
        return np.maximum(best[:n_places], most)

    def _queue_pairs(self, views: Views, pairs: SomePairs, further: int) -> Queued[TightNodes]:
        parts: list[Queued[TightNodes]] = []
        for k, place in enumerate(views.places):
            here = pairs.take(pairs.place == k) if len(views.places) > 1 else pairs
            labels = here.labels(place.concepts.ids)
            nodes = TightNodes.around(labels, self._length, place.spot, further, views.v)
            parts.append(self._queue(nodes, place.decided(views.v) + here.value))
        return concatenate(parts)

    def _outer_nodes(
        self,
        views: Views,
        rows: OuterRows,
        best: Float64[np.ndarray, " places"],
        steps: Sequence[OuterSteps],
    ) -> Queued[TightNodes]:
        """Next outer steps with which some completion may beat the incumbent."""
        n, left = views.regions.n_concepts, self._length - len(views.places[0].steps) - 1
        known = views.regions, rows, views.rank, views.fill(best), np.int32(left)
        size = min(views.allowed.size, max(FEWEST_ROWS, ROW_CELLS // n))
        w = np.full((len(views.need), 3, n), -np.inf)
        for part in steps:
            place, c = (rows.astype(np.int32) for rows in np.nonzero(part.concepts))
            for start in range(0, len(c), size):
                some, of_those = c[start : start + size], place[start : start + size]
                padded = fill_up(of_those, size), fill_up(some, size)
                found = run(outer_bounds, *known, *padded, forms=self._forms, steps=part.forms)
                needed = np.full(size, np.inf)
                needed[: len(some)] = views.need[of_those]
                kept = survivors(found, needed, views.on_host)
                at, form = kept.at
                cells = of_those[at], form, some[at]
                w[cells] = np.maximum(w[cells], kept.value)
            self._counters.estimated += len(c)
        effective = fetch(effective_steps(views.regions))
        parts: list[Queued[TightNodes]] = []
        for k, place in enumerate(views.places):
            here = np.where(self._in_order(place) & effective[k], w[k], -np.inf)
            form, c = (part.astype(np.int32) for part in np.nonzero(here >= views.need[k]))
            concept = place.concepts.ids[c]
            nodes = TightNodes.outer(self._length, place.spot, form, concept, views.v)
            parts.append(self._queue(nodes, place.decided(views.v) + here[form, c]))
        return concatenate(parts)

    def _all_steps(self, views: Views, which: Bool[np.ndarray, " places"]) -> list[OuterSteps]:
        """All outer steps, at places where nothing is bounded from the inside."""
        return [OuterSteps(self._forms, views.allowed & fill_up(which, len(views.need))[:, None])]

    def _steps_from_outside(self, views: Views) -> list[OuterSteps]:
        """The outer steps that are searched where others are bounded from the inside."""
        heavy = views.allowed & ~views.light
        return [
            OuterSteps(Forms(self._forms.union, False, False), heavy),
            OuterSteps(Forms(False, self._forms.intersection, False), views.allowed),
        ]

    def _in_order(self, place: Place) -> Bool[np.ndarray, "forms concepts"]:
        """Which next steps come in the one order that is searched.

        In a run of the same operator ranks fall from the outermost step inward; ANDs stand outside
        AND NOTs, with which they commute.
        """
        rank = place.concepts.pick(self.ranking.rank)
        kept = np.ones((3, len(rank)), bool)
        if place.steps:
            last = place.steps[-1]
            kept[last.form] = rank < self.ranking.rank[last.concept]
            if last.form == DIFFERENCE:
                kept[INTERSECTION] = False
        return kept

    def _queue(self, nodes: TightNodes, w: Float64[np.ndarray, " nodes"]) -> Queued[TightNodes]:
        upper = iou_at_most(w, self._problem.neuron.size)
        return Queued(nodes, upper, np.zeros(len(nodes), np.int64))
