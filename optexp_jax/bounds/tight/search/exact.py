"""What is scored exactly and offered to the incumbent: pairs, children of labels, a first beam."""

from collections.abc import Iterator, Sequence

import numpy as np

from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import near_tie
from optexp_jax.bounds.tight.search.label_scores import ScoredChildren, SubproblemLabels, expand
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.root import RootScores
from optexp_jax.bounds.tight.search.subproblem import Subproblem
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.incumbent import Candidate, Incumbent


class ExactScoring:
    """Finds the candidates among many scores. All that may be kept are found, ties included."""

    def __init__(self, ops: OperatorSet, clock: Clock, counters: Counters):
        self._ops = ops
        self._clock = clock
        self._counters = counters

    def best_concept(self, root: Subproblem, incumbent: Incumbent) -> None:
        """Offer the best single concept: it is quickly found where there is no time for pairs."""
        of_concepts = root.table.signatures.incidence.T
        inside, outside = of_concepts @ root.neuron.inside, of_concepts @ root.neuron.outside
        best = int((inside / (outside + root.captured_union)).argmax())
        incumbent.offer(
            root.candidate([best], [], root.score(int(inside[best]), int(outside[best])))
        )

    def pairs(self, root: Subproblem, scores: RootScores, incumbent: Incumbent) -> list[Candidate]:
        """Candidates among the formulas with one or two concepts."""
        with self._clock.phase("exact"):
            self._seed(root, scores, incumbent)
            reached = _reached(scores.best, incumbent)
            found = [] if scores.best < reached else _pairs_from(root, scores, reached)
            _offer(found, incumbent)
        return found

    def children(self, waiting: Sequence[SubproblemLabels]) -> Iterator[ScoredChildren]:
        """Labels joined with every concept, a chunk at a time."""
        chunks = expand(waiting, self._ops)
        while True:
            with self._clock.phase("exact"):
                scored = next(chunks, None)
            if scored is None:
                return
            self._counters.visited += scored.n_children
            yield scored

    def best_children(self, scored: ScoredChildren, incumbent: Incumbent) -> list[Candidate]:
        """Candidates among the children of labels."""
        with self._clock.phase("exact"):
            reached = _reached(scored.best, incumbent)
            found = [] if scored.best < reached else scored.candidates(reached)
            _offer(found, incumbent)
        return found

    def beam(
        self, root: Subproblem, scores: RootScores, size: int, length: int, incumbent: Incumbent
    ) -> list[Candidate]:
        """A beam with exact children. Its incumbent, nearly always the best, makes bounds bite."""
        found: list[Candidate] = []
        if length < 3 or not size:
            return found
        beam = scores.highest_pairs(size).labels(root.concepts.ids)
        for _ in range(3, length + 1):
            grown: list[Labels] = []
            iou: list[np.ndarray] = []
            for scored in self.children([SubproblemLabels(root, beam)]):
                found += self.best_children(scored, incumbent)
                highest = scored.highest(size)
                row, op, x = highest.at
                grown.append(scored.labels.take(row).joined(op, x))
                iou.append(highest.value)
            if not grown:
                break
            order = np.argsort(-np.concatenate(iou), kind="stable")[:size]
            beam = Labels.concatenate(grown).take(order)
        return found

    def _seed(self, root: Subproblem, scores: RootScores, incumbent: Incumbent) -> None:
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
            _offer(_pairs_from(root, scores, reached), incumbent)
            if n == len(values):
                return
            n = min(4 * n, len(values))


def _reached(highest: float, incumbent: Incumbent) -> float:
    """The IoU from which candidates are of interest: all that may be kept, ties included."""
    wanted = incumbent.threshold
    if incumbent.keep.only_best:
        wanted = max(wanted, highest)
    return max(near_tie(wanted), np.finfo(float).tiny)


def _pairs_from(root: Subproblem, scores: RootScores, reached: float) -> list[Candidate]:
    """Formulas with one or two concepts whose IoU is not below `reached`."""
    found = [
        root.candidate([k], [], root.concept_score(k))
        for k in np.flatnonzero(scores.single >= reached).tolist()
    ]
    pairs = scores.pairs_from(reached)
    at = pairs.op, pairs.a, pairs.b
    columns = (part.tolist() for part in at)
    for op, a, b, score in zip(*columns, root.pair_scores(*at), strict=True):
        found.append(root.candidate([a, b], [op], score))
    return found


def _offer(candidates: Sequence[Candidate], incumbent: Incumbent) -> None:
    for candidate in candidates:
        incumbent.offer(candidate)
