"""The tight search: exact pairs at every place, and bounds on what is built around them."""

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.problem import Problem
from optexp_jax.scores import Score
from optexp_jax.search.driver import AbstractSpace, Turn
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.tight.children import TightChildren
from optexp_jax.tight.nodes import TightNodes
from optexp_jax.tight.pairs import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    Forms,
    PairScores,
    score_pairs,
)
from optexp_jax.tight.place import OPERATORS, ChildScores, Place, Places
from optexp_jax.tight.ranking import Ranking
from optexp_jax.tight.searched import searched_there

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
            own = place.own
            self._ranking = Ranking.by_worth(own.inside - incumbent.iou * own.outside)
        return Turn(self._children.inside(place, 1.0, incumbent), found)

    @cached_property
    def _children(self) -> TightChildren:
        assert self._ranking is not None, "concepts are ranked at the root"
        return TightChildren(self._problem, self._forms, self._ranking, self.clock, self.counters)

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
        return found, self._children.inside(place, float(upper), incumbent)

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
        return found, self._children.longer(place, inner, forms, children, incumbent)

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

    def _offer(self, candidates: list[Candidate], incumbent: Incumbent) -> None:
        for candidate in candidates:
            incumbent.offer(candidate)


def _highest(values: Float64[np.ndarray, "..."], k: int) -> list[tuple[int, ...]]:
    """Indices of the k highest values."""
    flat = values.reshape(-1)
    k = min(k, len(flat))
    best = np.argpartition(-flat, k - 1)[:k]
    return [tuple(map(int, np.unravel_index(at, values.shape))) for at in best]
