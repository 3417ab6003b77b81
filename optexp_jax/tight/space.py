"""The tight search: exact pairs at every place, and bounds on what is built around them."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.problem import Problem
from optexp_jax.search.driver import AbstractSpace, Turn
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.tight.children import SMALL_TABLE, TightChildren
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.labels import Labels
from optexp_jax.tight.nodes import TightNodes
from optexp_jax.tight.place import Children, Place, Places
from optexp_jax.tight.place_scores import PlaceScores
from optexp_jax.tight.ranking import Ranking
from optexp_jax.tight.reduced import Reduced
from optexp_jax.tight.searched import searched_there

FIRST_BATCH, MOST_AT_ONCE = 16, 256
"""Nodes that are expanded at once: ever more, as a search that is not over soon takes long."""
SMALL_BATCH = 128
"""The same on small tables, where a batch costs little more than a node."""
BEAM = 6
ROUNDING = 1 - 2.0**-48
"""IoUs in float64 that differ by less may be equal; they are compared in integers."""


class TightSpace(AbstractSpace[TightNodes]):
    """The search of `TightBounds`: see `docs/tight_bounds.md`."""

    family = "TightBounds"

    def __init__(self, problem: Problem, batch_size: int | None, beam: int | None):
        small = problem.table.n_concepts <= SMALL_TABLE
        first_batch = SMALL_BATCH if small else FIRST_BATCH
        super().__init__(first_batch if batch_size is None else batch_size)
        self._grows = batch_size is None
        self._problem = problem
        self._length = problem.depth
        if beam is None:
            beam = 0 if small and problem.depth <= 3 else BEAM
        self._beam = beam
        self._places = Places(problem)
        self._forms = Forms.of(problem.operators)
        self._ranking: Ranking | None = None

    def shortest(self, nodes: TightNodes) -> Int64[np.ndarray, " nodes"]:
        # What has one or two concepts inside the outer steps was scored at the place before.
        return nodes.depth + 3

    def stands_for(
        self, nodes: TightNodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        return searched_there(nodes, formulas, self._problem, self._places, self._children.ranking)

    def root(self, incumbent: Incumbent) -> Turn[TightNodes]:
        place = self._places.at(())
        scores = self._score_pairs(place)
        with self.clock.phase("exact"):
            found = self._best_pairs(place, scores, incumbent)
            self._offer(found, incumbent)
        found += self._exact_beam(place, scores, incumbent)
        inside, outside = place.counts.inside.diagonal(), place.counts.outside.diagonal()
        self._ranking = Ranking.by_worth(inside - incumbent.iou * outside)
        return Turn(self._children.inside(place, 1.0, incumbent), found)

    @cached_property
    def _children(self) -> TightChildren:
        assert self._ranking is not None, "concepts are ranked at the root"
        return TightChildren(self._problem, self._forms, self._ranking, self.clock, self.counters)

    def expand(self, batch: Queued[TightNodes], incumbent: Incumbent) -> Turn[TightNodes]:
        found: list[Candidate] = []
        queued: list[Queued[TightNodes]] = []
        for rows in batch.nodes.groups():
            part = take(batch, rows)
            part = take(part, incumbent.may_improve(part.upper, self.shortest(part.nodes)))
            if not len(part):
                continue
            if self.clock.expired:  # a place takes long enough that the rest has to wait
                queued.append(part)
                continue
            self.counters.expanded += len(part)
            place = self._places.at(part.nodes.steps(0))
            if part.nodes.further[0]:
                turn = self._expand_labels(place, part, incumbent)
            else:
                turn = self._expand_place(place, float(part.upper[0]), incumbent)
            queued += [] if turn.children is None else [turn.children]
            found += turn.candidates
        if self._grows:
            self.batch_size = min(2 * self.batch_size, MOST_AT_ONCE)
        return Turn(concatenate(queued) if queued else None, found)

    def _expand_place(self, place: Place, upper: float, incumbent: Incumbent) -> Turn[TightNodes]:
        """Score all singles and pairs at a place, and bound what is longer."""
        if self._holds_nothing(place, incumbent):
            return Turn()
        scores = self._score_pairs(place)
        with self.clock.phase("exact"):
            found = self._best_pairs(place, scores, incumbent)
            self._offer(found, incumbent)
        return Turn(self._children.inside(place, upper, incumbent), found)

    def _holds_nothing(self, place: Place, incumbent: Incumbent) -> bool:
        """Whether a place with three left has few concepts, which make nothing of interest."""
        problem = self._problem
        small = problem.table.n_concepts <= SMALL_TABLE
        if small or self._length - len(place.steps) != 3:
            return False
        with self.clock.phase("device"):
            reduced = Reduced.of(place, problem.table, problem.neuron)
            if reduced is None:
                return False
            goal = self._children.goal(place, incumbent)
            reached = self._reached(0.0, incumbent)
            return reduced.holds_nothing(place.decision, reached, goal.v, goal.need, self._forms)

    def _expand_labels(
        self, place: Place, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Turn[TightNodes]:
        """Score all children of labels, and bound those that may take one more step."""
        found: list[Candidate] = []
        queued: list[Queued[TightNodes]] = []
        further = int(part.nodes.further[0])
        for children in self._scored(place, part.nodes.labels(np.arange(len(part)))):
            with self.clock.phase("exact"):
                best = self._best_children(place, children, incumbent)
                self._offer(best, incumbent)
            found += best
            if further == 2:
                queued.append(self._children.longer(place, children, incumbent))
        return Turn(concatenate(queued) if queued else None, found)

    def _scored(self, place: Place, labels: Labels) -> Iterator[Children]:
        """Labels joined with every concept, a chunk at a time."""
        chunks = place.children(labels)
        while True:
            with self.clock.phase("exact"):
                children = next(chunks, None)
            if children is None:
                return
            self.counters.visited += children.iou.size
            yield children

    def _score_pairs(self, place: Place) -> PlaceScores:
        """IoUs of all formulas with one or two concepts at a place."""
        with self.clock.phase("device"):
            scores = PlaceScores.at(place, Forms.of(()) if self._length == 1 else self._forms)
        self.counters.visited += len(place.allowed) ** 2
        return scores

    def _best_pairs(
        self, place: Place, scores: PlaceScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """Candidates among the formulas with one or two concepts, ties included."""
        self._seed(place, scores, incumbent)
        reached = self._reached(scores.best, incumbent)
        return [] if scores.best < reached else self._pairs_from(place, scores, reached)

    def _seed(self, place: Place, scores: PlaceScores, incumbent: Incumbent) -> None:
        """When several formulas are wanted, find as many first: without them nothing is ruled out.

        Equal sets count once, so more are tried until there are enough, or no more.
        """
        if incumbent.keep.only_best or incumbent.threshold > 0:
            return
        tiny = np.finfo(float).tiny
        values = np.concatenate([scores.single[scores.single > 0], scores.pairs_from(tiny).value])
        n = min(4 * incumbent.keep.top_k, len(values))
        while n and incumbent.threshold == 0:
            reached = float(np.partition(values, -n)[-n])
            self._offer(self._pairs_from(place, scores, reached), incumbent)
            if n == len(values):
                return
            n = min(4 * n, len(values))

    def _reached(self, highest: float, incumbent: Incumbent) -> float:
        """The IoU from which candidates are of interest: all that may be kept, ties included."""
        wanted = incumbent.threshold
        if incumbent.keep.only_best:
            wanted = max(wanted, highest)
        return max(wanted * ROUNDING, np.finfo(float).tiny)

    def _pairs_from(self, place: Place, scores: PlaceScores, reached: float) -> list[Candidate]:
        found = [
            place.candidate([k], [], place.concept_score(k))
            for k in np.flatnonzero(scores.single >= reached).tolist()
        ]
        pairs = scores.pairs_from(reached)
        columns = (part.tolist() for part in (pairs.form, pairs.a, pairs.b))
        for form, a, b in zip(*columns, strict=True):
            found.append(place.candidate([a, b], [form], place.pair_score(form, a, b)))
        return found

    def _best_children(
        self, place: Place, children: Children, incumbent: Incumbent
    ) -> list[Candidate]:
        """Candidates among the children of labels, ties included."""
        reached = self._reached(float(children.iou.max()), incumbent)
        found: list[Candidate] = []
        for row, form, x in np.argwhere(children.iou >= reached).tolist():
            inner, forms = children.labels.inner[row], children.labels.forms[row]
            score = place.child_score(children, row, form, x)
            found.append(place.candidate([*inner.tolist(), x], [*forms.tolist(), form], score))
        return found

    def _exact_beam(
        self, place: Place, scores: PlaceScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """A beam with exact children. Its incumbent, nearly always the best, makes bounds bite."""
        found: list[Candidate] = []
        if self._length < 3 or not self._beam:
            return found
        beam = scores.highest_pairs(self._beam).labels
        for _ in range(3, self._length + 1):
            grown: list[Labels] = []
            iou: list[np.ndarray] = []
            for children in self._scored(place, beam):
                best = self._best_children(place, children, incumbent)
                self._offer(best, incumbent)
                found += best
                row, form, x = _highest(children.iou, self._beam)
                grown.append(children.labels.take(row).joined(form, x))
                iou.append(children.iou[row, form, x])
            if not grown:
                break
            order = np.argsort(-np.concatenate(iou), kind="stable")[: self._beam]
            beam = Labels.concatenate(grown).take(order)
        return found

    def _offer(self, candidates: list[Candidate], incumbent: Incumbent) -> None:
        for candidate in candidates:
            incumbent.offer(candidate)


def _highest(iou: Float64[np.ndarray, "..."], k: int) -> tuple[Int32[np.ndarray, " k"], ...]:
    """Where the k highest IoUs stand, as far as they are positive."""
    flat = iou.reshape(-1)
    best = np.argpartition(-flat, min(k, len(flat)) - 1)[:k]
    best = best[flat[best] > 0]
    return tuple(part.astype(np.int32) for part in np.unravel_index(best, iou.shape))
