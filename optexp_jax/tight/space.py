"""The tight search: exact pairs at every place, and bounds on what is built around them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.problem import Problem
from optexp_jax.scores import Score
from optexp_jax.search.driver import AbstractSpace, Turn
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.tight.doubles import double_bounds, last_step_bounds
from optexp_jax.tight.nodes import TightNodes
from optexp_jax.tight.outer import effective_steps, outer_bounds
from optexp_jax.tight.pairs import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    Forms,
    PairScores,
    pair_bounds,
    score_pairs,
    triple_bounds,
)
from optexp_jax.tight.place import OPERATORS, ChildScores, Place, Places
from optexp_jax.tight.searched import searched_there

TRIPLE_CHUNK = 512
ROUNDING = 1 - 2.0**-48
"""IoUs in float64 that differ by less may be equal; they are compared in integers."""


class TightSpace(AbstractSpace[TightNodes]):
    """The search of `TightBounds`: see `docs/tight_bounds.md`."""

    family = "TightBounds"

    def __init__(self, problem: Problem, batch_size: int, beam: int):
        super().__init__(batch_size)
        self._problem = problem
        self._length = problem.depth
        self._beam = beam
        self._places = Places(problem)
        used = set(problem.operators)
        self._forms = Forms(*(OPERATORS[k] in used for k in (UNION, INTERSECTION, DIFFERENCE)))
        # W is a sum of a dozen terms of at most the number of locations each, in float64 or,
        # on some devices, in an emulation that keeps a few bits less.
        self._slack = 2.0**-41 * problem.table.n_locations
        self._rank = np.zeros(problem.table.n_concepts, np.int32)

    def shortest(self, nodes: TightNodes) -> Int64[np.ndarray, " nodes"]:
        # What has one or two concepts inside the outer steps was scored at the place before.
        return nodes.depth + 3

    def stands_for(
        self, nodes: TightNodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        return searched_there(nodes, formulas, self._problem, self._places, self._rank)

    def root(self, incumbent: Incumbent) -> Turn[TightNodes]:
        place = self._places.at(())
        scores = self._score_pairs(place)
        with self.clock.phase("exact"):
            found = self._best_pairs(place, scores, incumbent)
            self._offer(found, incumbent)
            found += self._exact_beam(place, scores, incumbent)
            self._rank_concepts(incumbent)
        return Turn(self._inner_nodes(place, 1.0, incumbent), found)

    def expand(self, batch: Queued[TightNodes], incumbent: Incumbent) -> Turn[TightNodes]:
        found: list[Candidate] = []
        queued: list[Queued[TightNodes]] = []
        for row in range(len(batch)):
            if self.clock.expired:  # a place takes long enough that the rest has to wait
                queued.append(take(batch, slice(row, None)))
                break
            self.counters.expanded += 1
            if batch.nodes.further[row]:
                new, children = self._expand_label(batch.nodes, row, incumbent)
            else:
                new, children = self._expand_place(batch.nodes, row, batch.upper[row], incumbent)
            queued += [] if children is None else [children]
            found += new
        return Turn(concatenate(queued) if queued else None, found)

    def _expand_place(
        self, nodes: TightNodes, row: int, upper: float, incumbent: Incumbent
    ) -> tuple[list[Candidate], Queued[TightNodes] | None]:
        """Score all singles and pairs at a place, and bound what is longer."""
        place = self._places.at(nodes.steps(row))
        scores = self._score_pairs(place)
        with self.clock.phase("exact"):
            found = self._best_pairs(place, scores, incumbent)
            self._offer(found, incumbent)
        return found, self._inner_nodes(place, float(upper), incumbent)

    def _expand_label(
        self, nodes: TightNodes, row: int, incumbent: Incumbent
    ) -> tuple[list[Candidate], Queued[TightNodes] | None]:
        """Score all children of a label, and bound those that may take one more AND NOT."""
        place = self._places.at(nodes.steps(row))
        inner, forms = nodes.label(row)
        with self.clock.phase("exact"):
            children = place.children(inner, forms)
            found = self._best_children(place, inner, forms, children, incumbent)
            self._offer(found, incumbent)
        if nodes.further[row] == 1:
            return found, None
        return found, self._longer_labels(place, inner, forms, children, incumbent)

    def _longer_labels(
        self,
        place: Place,
        inner: list[int],
        forms: list[int],
        children: ChildScores,
        incumbent: Incumbent,
    ) -> Queued[TightNodes]:
        """Labels of three concepts that an AND NOT may take past the incumbent."""
        v, need = self._goal(place, incumbent)
        allowed = place.allowed.copy()
        allowed[inner] = False
        with self.clock.phase("device"), jax.enable_x64(True):
            bounds = np.asarray(
                last_step_bounds(
                    place.gram,
                    jnp.asarray(allowed),
                    jnp.float64(v),
                    jnp.int64(children.label_inside),
                    jnp.int64(children.label_outside),
                    jnp.asarray(children.shared.inside),
                    jnp.asarray(children.shared.outside),
                )
            )
        self.counters.estimated += bounds.size
        ways = [self._forms.union, True]
        way, x = np.nonzero((bounds >= need) & np.array(ways)[:, None])
        third = np.where(way == 0, UNION, DIFFERENCE).astype(np.int32)
        nodes = TightNodes.labels(
            self._length,
            list(place.steps),
            [*(np.full(len(x), k, np.int32) for k in inner), x.astype(np.int32)],
            [*(np.full(len(x), k, np.int32) for k in forms), third],
            1,
            v,
        )
        return self._queue(nodes, place.decided(v) + bounds[way, x])

    def _score_pairs(self, place: Place) -> PairScores:
        """IoUs of all formulas with one or two concepts at a place."""
        one = Forms(False, False, False)
        with self.clock.phase("device"), jax.enable_x64(True):
            scores = score_pairs(
                place.gram,
                jnp.asarray(place.allowed),
                jnp.int64(place.decided_inside),
                jnp.int64(place.decided_outside),
                jnp.int64(self._problem.neuron.size),
                forms=one if self._length == 1 else self._forms,
            )
            scores.highest.block_until_ready()
        self.counters.visited += len(place.allowed) ** 2
        return scores

    def _best_pairs(
        self, place: Place, scores: PairScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """Candidates among the formulas with one or two concepts, ties included."""
        self._seed(place, scores, incumbent)
        reached = self._reached(float(scores.highest), incumbent)
        if float(scores.highest) < reached:
            return []
        return self._pairs_from(place, scores, reached)

    def _seed(self, place: Place, scores: PairScores, incumbent: Incumbent) -> None:
        """When several formulas are wanted, find as many first: without them nothing is ruled out.

        Equal sets count once, so more are tried until there are enough, or no more.
        """
        if incumbent.keep.only_best or incumbent.threshold > 0:
            return
        values = np.concatenate([np.asarray(scores.single), np.asarray(scores.pairs).reshape(-1)])
        most = int((values > 0).sum())
        n = min(4 * incumbent.keep.top_k, most)
        while n and incumbent.threshold == 0:
            reached = max(float(np.partition(values, -n)[-n]), np.finfo(float).tiny)
            self._offer(self._pairs_from(place, scores, reached), incumbent)
            if n == most:
                return
            n = min(4 * n, most)

    def _reached(self, highest: float, incumbent: Incumbent) -> float:
        """The IoU from which candidates are of interest: all that may be kept, ties included."""
        wanted = incumbent.threshold
        if incumbent.keep.only_best:
            wanted = max(wanted, highest)
        return max(wanted * ROUNDING, np.finfo(float).tiny)

    def _pairs_from(self, place: Place, scores: PairScores, reached: float) -> list[Candidate]:
        found = [
            place.candidate(
                [k], [], place.score(int(place.own.inside[k]), int(place.own.outside[k]))
            )
            for k in np.flatnonzero(np.asarray(scores.single) >= reached).tolist()
        ]
        rows = np.nonzero(np.asarray(scores.pairs) >= reached)
        for form, a, b in zip(*(part.tolist() for part in rows), strict=True):
            found.append(place.candidate([a, b], [form], place.pair_score(form, a, b)))
        return found

    def _best_children(
        self,
        place: Place,
        inner: list[int],
        forms: list[int],
        children: ChildScores,
        incumbent: Incumbent,
    ) -> list[Candidate]:
        """Candidates among a label's children, ties included."""
        self.counters.visited += children.iou.size
        reached = self._reached(float(children.iou.max()), incumbent)
        rows = np.nonzero(children.iou >= reached)
        return [
            place.candidate(
                [*inner, x],
                [*forms, form],
                Score(int(children.intersections[form, x]), int(children.unions[form, x])),
            )
            for form, x in zip(*(part.tolist() for part in rows), strict=True)
        ]

    def _exact_beam(
        self, place: Place, scores: PairScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """A beam with exact children. Its incumbent, nearly always the best, makes bounds bite."""
        found: list[Candidate] = []
        if self._length < 3:
            return found
        pairs = np.asarray(scores.pairs)
        best = _highest(pairs, self._beam)
        beam = [([a, b], [form]) for form, a, b in best if pairs[form, a, b] > 0]
        for _ in range(3, self._length + 1):
            grown: list[tuple[float, list[int], list[int]]] = []
            for inner, forms in beam:
                children = place.children(inner, forms)
                found += self._best_children(place, inner, forms, children, incumbent)
                self._offer(found[-1:], incumbent)
                for form, x in _highest(children.iou, self._beam):
                    grown.append((float(children.iou[form, x]), [*inner, x], [*forms, form]))
            grown.sort(key=lambda item: -item[0])
            beam = [(inner, forms) for iou, inner, forms in grown[: self._beam] if iou > 0]
        self._offer(found, incumbent)
        return found

    def _inner_nodes(
        self, place: Place, upper: float, incumbent: Incumbent
    ) -> Queued[TightNodes] | None:
        """What may beat the incumbent with three and more concepts inside the outer steps."""
        left = self._length - len(place.steps)
        parts: list[Queued[TightNodes]] = []
        if left >= 3:
            parts.append(self._pair_nodes(place, 1, incumbent))
        if left == 4 and self._forms.difference:
            parts.append(self._pair_nodes(place, 2, incumbent))
        if left >= 4:
            parts.append(self._outer_nodes(place, upper, incumbent))
        return concatenate(parts) if parts else None

    def _pair_nodes(self, place: Place, further: int, incumbent: Incumbent) -> Queued[TightNodes]:
        """Pairs that so many further steps may take past the incumbent."""
        v, need = self._goal(place, incumbent)
        bound = pair_bounds if further == 1 else double_bounds
        with self.clock.phase("device"), jax.enable_x64(True):
            allowed = jnp.asarray(place.allowed)
            bounds = np.asarray(bound(place.gram, allowed, jnp.float64(v), forms=self._forms))
        with self.clock.phase("heap"):
            form, a, b = (part.astype(np.int32) for part in np.nonzero(bounds >= need))
            upper = bounds[form, a, b]
        self.counters.estimated += int(place.allowed.sum()) ** 2
        if further == 1:
            upper = np.minimum(upper, self._triple_bounds(place, v, form, a, b))
        kept = upper >= need
        nodes = TightNodes.labels(
            self._length, list(place.steps), [a[kept], b[kept]], [form[kept]], further, v
        )
        return self._queue(nodes, place.decided(v) + upper[kept])

    def _triple_bounds(
        self,
        place: Place,
        v: float,
        form: Int32[np.ndarray, " pairs"],
        a: Int32[np.ndarray, " pairs"],
        b: Int32[np.ndarray, " pairs"],
    ) -> Float64[np.ndarray, " pairs"]:
        """Bounds of given pairs with the same third concept for both, in chunks of one shape."""
        upper = np.empty(len(a))
        with self.clock.phase("device"), jax.enable_x64(True):
            for start in range(0, len(a), TRIPLE_CHUNK):
                rows = np.minimum(np.arange(start, start + TRIPLE_CHUNK), len(a) - 1)
                chunk = triple_bounds(
                    place.gram,
                    jnp.asarray(place.allowed),
                    jnp.float64(v),
                    *(jnp.asarray(part[rows]) for part in (form, a, b)),
                    forms=self._forms,
                )
                upper[start : start + TRIPLE_CHUNK] = np.asarray(chunk)[: len(a) - start]
        return upper

    def _outer_nodes(self, place: Place, upper: float, incumbent: Incumbent) -> Queued[TightNodes]:
        """Next outer steps with which some completion may beat the incumbent."""
        v, need = self._goal(place, incumbent)
        # The node's own bound holds for all that can be made here, at the v of then and so at any
        # higher one. Next to an outer OR it leaves out pure ORs of higher rank; the class with one
        # filter less a source, which is not ordered, bounds them as part of a longer chain.
        with self.clock.phase("device"), jax.enable_x64(True):
            bounds = outer_bounds(
                place.gram,
                jnp.asarray(place.allowed),
                jnp.asarray(self._rank),
                jnp.float64(v),
                jnp.float64(upper * self._problem.neuron.size - place.decided(v)),
                forms=self._forms,
                left=self._length - len(place.steps) - 1,
            )
            parts = (bounds.union, bounds.intersection, bounds.difference)
            w = np.stack([np.asarray(part) for part in parts])
            effective = np.asarray(effective_steps(place.gram, jnp.asarray(place.allowed)))
        w = np.where(self._in_order(place) & effective, w, -np.inf)
        if self._length - len(place.steps) == 4:
            w[DIFFERENCE] = -np.inf  # bounded from the inside, by double_bounds
        form, concept = (part.astype(np.int32) for part in np.nonzero(w >= need))
        self.counters.estimated += w.size
        nodes = TightNodes.outer(self._length, list(place.steps), form, concept, v)
        return self._queue(nodes, place.decided(v) + w[form, concept])

    def _in_order(self, place: Place) -> Bool[np.ndarray, "forms concepts"]:
        """Which next steps come in the one order that is searched.

        In a run of the same operator ranks fall from the outermost step inward; ANDs stand outside
        AND NOTs, with which they commute.
        """
        kept = np.ones((3, len(self._rank)), bool)
        if place.steps:
            last = place.steps[-1]
            kept[last.form] = self._rank < self._rank[last.concept]
            if last.form == DIFFERENCE:
                kept[INTERSECTION] = False
        return kept

    def _goal(self, place: Place, incumbent: Incumbent) -> tuple[float, float]:
        """v, just below the incumbent's IoU, and the W that an inner part needs to tie with it."""
        v = float(np.nextafter(incumbent.threshold, 0.0))
        return v, v * self._problem.neuron.size - place.decided(v) - self._slack

    def _queue(self, nodes: TightNodes, w: Float64[np.ndarray, " nodes"]) -> Queued[TightNodes]:
        # W(L) <= w means IoU(L) <= w / |N|, or IoU(L) < v: extras pull the ratio towards v.
        upper = (w + self._slack) / self._problem.neuron.size * (1 + 2.0**-44)
        return Queued(nodes, upper, np.zeros(len(nodes), np.int64))

    def _rank_concepts(self, incumbent: Incumbent) -> None:
        """Order concepts by what they are worth, once for the whole search."""
        own = self._places.at(()).own
        score = own.inside - incumbent.iou / self._length * own.outside
        self._rank[np.argsort(score, kind="stable")] = np.arange(len(score))

    def _offer(self, candidates: list[Candidate], incumbent: Incumbent) -> None:
        for candidate in candidates:
            incumbent.offer(candidate)


def _highest(values: Float64[np.ndarray, "..."], k: int) -> list[tuple[int, ...]]:
    """Indices of the k highest values."""
    flat = values.reshape(-1)
    k = min(k, len(flat))
    best = np.argpartition(-flat, k - 1)[:k]
    return [tuple(map(int, np.unravel_index(at, values.shape))) for at in best]
