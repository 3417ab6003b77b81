"""Which longer formulas may beat the incumbent, at a place and around a label."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.problem import Problem
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.frontier import Queued, concatenate
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.tight.labels import Labels
from optexp_jax.tight.last_steps import Region, longer_labels
from optexp_jax.tight.nodes import TightNodes
from optexp_jax.tight.outer import effective_steps, outer_bounds
from optexp_jax.tight.pairs import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    Forms,
    pair_bounds,
    triple_bounds,
)
from optexp_jax.tight.place import FEW_LABELS, Children, Place
from optexp_jax.tight.ranking import Ranking
from optexp_jax.tight.two_steps import (
    Limits,
    Rows,
    refined_two_steps,
    short_formulas,
    two_step_bounds,
)

PAIR_CHUNK = 128
"""Pairs that are bounded again at once, with their overlaps with every concept.

With more of them the arrays no longer fit a core's cache.
"""
MOST_TRIED = 64
"""Pairs that are looked at for the highest W of three concepts."""


@dataclass(eq=False)
class Pairs:
    """Some pairs a∘b, with upper bounds on W of what is made of them."""

    form: Int32[np.ndarray, " pairs"]
    a: Int32[np.ndarray, " pairs"]
    b: Int32[np.ndarray, " pairs"]
    upper: Float64[np.ndarray, " pairs"]

    def __len__(self) -> int:
        return len(self.form)

    @property
    def labels(self) -> Labels:
        return Labels.pairs(self.form, self.a, self.b)

    def lower_to(self, upper: Float64[np.ndarray, " pairs"]) -> None:
        """Take other bounds where they are lower."""
        self.upper = np.minimum(self.upper, upper)

    def at_least(self, need: float) -> "Pairs":
        """The pairs whose bound is not below."""
        kept = self.upper >= need
        return Pairs(self.form[kept], self.a[kept], self.b[kept], self.upper[kept])


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
        self._regions: WeakKeyDictionary[Place, Region] = WeakKeyDictionary()

    def inside(self, place: Place, upper: float, incumbent: Incumbent) -> Queued[TightNodes] | None:
        """What may beat the incumbent with three and more concepts inside the outer steps."""
        left = self._length - len(place.steps)
        if left < 3:
            return None
        v, need = self._goal(place, incumbent)
        bounds = self._pair_bounds(place, v)
        parts = [self._pair_nodes(place, bounds, v, need)]
        if left == 4:
            parts.append(self._two_step_nodes(place, bounds, v, need))
        if left >= 4:
            parts.append(self._outer_nodes(place, upper, incumbent))
        return concatenate(parts)

    def longer(self, place: Place, children: Children, incumbent: Incumbent) -> Queued[TightNodes]:
        """Labels of three concepts that one more OR or AND NOT may take past the incumbent."""
        v, need = self._goal(place, incumbent)
        region = self._region(place, v)
        with self._clock.phase("device"):
            longer = longer_labels(region, children, need, self._forms)
        self._counters.estimated += children.iou.size
        nodes = TightNodes.around(longer.labels, self._length, place.steps, 1, v)
        return self._queue(nodes, place.decided(v) + longer.upper)

    def _pair_bounds(self, place: Place, v: float) -> Float64[np.ndarray, "forms n n"]:
        """Bounds of all pairs with one more concept."""
        with self._clock.phase("device"), jax.enable_x64(True):
            allowed = jnp.asarray(place.allowed)
            bounds = np.asarray(pair_bounds(place.gram, allowed, jnp.float64(v), forms=self._forms))
        self._counters.estimated += int(place.allowed.sum()) ** 2
        return bounds

    def _pair_nodes(
        self, place: Place, bounds: Float64[np.ndarray, "forms n n"], v: float, need: float
    ) -> Queued[TightNodes]:
        """Pairs that one further step may take past the incumbent."""
        pairs = self._at_least(bounds, need)
        pairs.lower_to(self._triple_bounds(place, v, pairs))
        return self._queue_pairs(place, pairs.at_least(need), 1, v)

    def _two_step_nodes(
        self, place: Place, bounds: Float64[np.ndarray, "forms n n"], v: float, need: float
    ) -> Queued[TightNodes]:
        """Pairs that two further steps may take past the incumbent."""
        rows, limits = self._short_formulas(place, v)
        with jax.enable_x64(True):
            three = jnp.float64(self._highest_of_three(place, bounds, v, float(limits.two)))
            limits = Limits(limits.light, limits.light_union, limits.two, three)
        known = (
            place.gram,
            jnp.asarray(place.allowed),
            jnp.asarray(self.ranking.light(place.allowed)),
            v,
            rows,
            limits,
        )
        with self._clock.phase("device"), jax.enable_x64(True):
            coarse = np.asarray(two_step_bounds(*known, forms=self._forms))
        pairs = self._at_least(coarse, need)
        self._counters.estimated += int(place.allowed.sum()) ** 2
        pairs.lower_to(self._in_chunks(partial(refined_two_steps, *known), pairs))
        return self._queue_pairs(place, pairs.at_least(need), 2, v)

    def _highest_of_three(
        self, place: Place, bounds: Float64[np.ndarray, "forms n n"], v: float, two: float
    ) -> float:
        """The highest W of at most three concepts, or what it can be at most.

        Pairs are tried from the highest bound down, until no bound is higher than what was found.
        """
        pairs = self._at_least(bounds, np.nextafter(two, np.inf))
        pairs.lower_to(self._triple_bounds(place, v, pairs))
        best = two
        with self._clock.phase("exact"):
            order = np.argsort(-pairs.upper)
            for start in range(0, len(order), FEW_LABELS):
                highest = float(pairs.upper[order[start]])
                if highest <= best or start >= MOST_TRIED or self._clock.expired:
                    return max(best, highest)
                rows = order[start : start + FEW_LABELS]
                for children in place.children(pairs.labels.take(rows)):
                    best = max(best, place.highest_w(children, v))
        return best

    def _triple_bounds(self, place: Place, v: float, pairs: Pairs) -> Float64[np.ndarray, " pairs"]:
        """Bounds of given pairs with the same third concept for both."""
        with jax.enable_x64(True):
            known = place.gram, jnp.asarray(place.allowed), jnp.float64(v)
        return self._in_chunks(partial(triple_bounds, *known), pairs)

    def _in_chunks(
        self, bound: Callable[..., Float64[Array, " chunk"]], pairs: Pairs
    ) -> Float64[np.ndarray, " pairs"]:
        """Bounds of given pairs, in chunks of one shape."""
        upper = np.full(len(pairs), np.inf)
        columns = pairs.form, pairs.a, pairs.b
        with self._clock.phase("device"), jax.enable_x64(True):
            for start in range(0, len(pairs), PAIR_CHUNK):
                if self._clock.expired:
                    break
                rows = np.minimum(np.arange(start, start + PAIR_CHUNK), len(pairs) - 1)
                chunk = bound(*(part[rows] for part in columns), forms=self._forms)
                upper[start : start + PAIR_CHUNK] = np.asarray(chunk)[: len(pairs) - start]
        return upper

    def _at_least(self, bounds: Float64[np.ndarray, "forms n n"], need: float) -> Pairs:
        with self._clock.phase("heap"):
            form, a, b = (part.astype(np.int32) for part in np.nonzero(bounds >= need))
            return Pairs(form, a, b, bounds[form, a, b])

    def _queue_pairs(
        self, place: Place, pairs: Pairs, further: int, v: float
    ) -> Queued[TightNodes]:
        nodes = TightNodes.around(pairs.labels, self._length, place.steps, further, v)
        return self._queue(nodes, place.decided(v) + pairs.upper)

    def _outer_nodes(self, place: Place, upper: float, incumbent: Incumbent) -> Queued[TightNodes]:
        """Next outer steps with which some completion may beat the incumbent."""
        v, need = self._goal(place, incumbent)
        # The node's own bound holds for all that can be made here, at the v of then and so at any
        # higher one. Next to an outer OR it leaves out pure ORs of higher rank; the class with one
        # filter less a source, which is not ordered, bounds them as part of a longer chain.
        with self._clock.phase("device"), jax.enable_x64(True):
            bounds = outer_bounds(
                place.gram,
                jnp.asarray(place.allowed),
                jnp.asarray(self.ranking.rank),
                jnp.float64(v),
                jnp.float64(upper * self._problem.neuron.size - place.decided(v)),
                jnp.int32(self._length - len(place.steps) - 1),
                forms=self._forms,
                longest=self._length - 1,
            )
            parts = (bounds.union, bounds.intersection, bounds.difference)
            w = np.stack([np.asarray(part) for part in parts])
            effective = np.asarray(effective_steps(place.gram, jnp.asarray(place.allowed)))
        w = np.where(self._in_order(place) & effective, w, -np.inf)
        if self._length - len(place.steps) == 4:  # The others are bounded from the inside.
            w[DIFFERENCE] = -np.inf
            w[UNION, self.ranking.light(place.allowed)] = -np.inf
        form, concept = (part.astype(np.int32) for part in np.nonzero(w >= need))
        self._counters.estimated += w.size
        nodes = TightNodes.outer(self._length, place.steps, form, concept, v)
        return self._queue(nodes, place.decided(v) + w[form, concept])

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

    def _region(self, place: Place, v: float) -> Region:
        """A place at some v."""
        known = self._regions.get(place)
        if known is None or float(known.v) != v:
            rows, _ = self._short_formulas(place, v)
            light = self.ranking.light(place.allowed)
            with jax.enable_x64(True):
                known = self._regions[place] = Region.of(
                    place.gram, jnp.asarray(place.allowed), jnp.asarray(light), rows, jnp.float64(v)
                )
        return known

    def _short_formulas(self, place: Place, v: float) -> tuple[Rows, Limits]:
        with self._clock.phase("device"), jax.enable_x64(True):
            return short_formulas(
                place.gram,
                jnp.asarray(place.allowed),
                jnp.asarray(self.ranking.light(place.allowed)),
                jnp.float64(v),
                forms=self._forms,
            )

    def _goal(self, place: Place, incumbent: Incumbent) -> tuple[float, float]:
        """v, just below the incumbent's IoU, and the W that an inner part needs to tie with it."""
        v = float(np.nextafter(incumbent.threshold, 0.0))
        return v, v * self._problem.neuron.size - place.decided(v) - self._slack

    def _queue(self, nodes: TightNodes, w: Float64[np.ndarray, " nodes"]) -> Queued[TightNodes]:
        # W(L) <= w means IoU(L) <= w / |N|, or IoU(L) < v: extras pull the ratio towards v.
        upper = (w + self._slack) / self._problem.neuron.size * (1 + 2.0**-44)
        return Queued(nodes, upper, np.zeros(len(nodes), np.int64))
