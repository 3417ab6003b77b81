"""The tight search from its root to its last node: what is scored, what is bounded, what waits."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Int64

from optexp_jax.bounds.tight.counts.device_lists import Sizes
from optexp_jax.bounds.tight.counts.gram import Counted
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.search.batch import together
from optexp_jax.bounds.tight.search.branching import Branching
from optexp_jax.bounds.tight.search.exact import ExactScoring
from optexp_jax.bounds.tight.search.label_scores import SubproblemLabels
from optexp_jax.bounds.tight.search.nodes import TightNodes, node_text
from optexp_jax.bounds.tight.search.root import CountedRoot, RootScores, fused_root_of
from optexp_jax.bounds.tight.search.subproblem import Prefix, Ranking, SubproblemCache
from optexp_jax.bounds.tight.search.warmup import warm_up
from optexp_jax.bounds.tight.tuning import STACKED_SUBPROBLEMS, Tuning
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.problem import Problem


class TightSpace(AbstractSpace[TightNodes]):
    """The search of `TightBounds`: see `docs/explanation/tight_bounds.md`."""

    family = "TightBounds"

    def __init__(
        self,
        problem: Problem,
        batch_size: int | None,
        beam: int | None,
        *,
        tuning: Tuning | None = None,
        sizes: Sizes | None = None,
        counted: CountedRoot | None = None,
    ):
        """`sizes` fills up lists on the device to those of another table.

        `counted` is what was computed together with other neurons.
        """
        self._tuning = tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        super().__init__(tuning.first_batch if batch_size is None else batch_size)
        self._grows = batch_size is None
        self.problem, self._length = problem, problem.depth
        if beam is None:
            beam = tuning.short_beam if problem.depth <= 3 else tuning.beam
        self._beam, self._sizes, self._counted = beam, sizes, counted
        self._known = Counted() if counted is None else counted.counted
        self.subproblems = self._new_subproblems()
        self._ops = OperatorSet.of_problem(problem)
        self._exact = ExactScoring(self._ops, self.clock, self.counters)
        self._ranking: Ranking | None = None

    def recover(self) -> bool:
        # All that is remembered are subproblems and their bounds, which are made again as needed.
        # The ranking stays: it settles which of equal chains are searched.
        self.subproblems = self._new_subproblems()
        vars(self).pop("branching", None)
        return True

    def _new_subproblems(self) -> SubproblemCache:
        return SubproblemCache(self.problem, self._tuning, self._sizes, self._known)

    def shortest(self, nodes: TightNodes) -> Int64[np.ndarray, " nodes"]:
        # What has one or two concepts inside the outer steps was scored one step further out.
        return nodes.depth + 3

    def describe(self, nodes: TightNodes, row: int) -> str:
        return node_text(nodes, row, self.problem.table.names)

    def root(self, incumbent: Incumbent) -> Expansion[TightNodes] | None:
        if self._tuning.warms_up:
            warm_up(self.problem, self._tuning, self.clock, self._another)
        with self.clock.phase("device"):
            fused = fused_root_of(self.problem, self._ops, self._tuning, self._counted)
        if fused is not None:
            self._known = Counted(gram=fused.inputs.gram)
            self.subproblems = self._new_subproblems()
        root = self.subproblems.at(Prefix())
        with self.clock.phase("device"):
            if fused is not None:
                scores = RootScores.of_fused(fused)
            else:
                scores = RootScores.of(root, self._ops, self.clock, self._tuning)
        if scores is None:
            self._exact.best_concept(root, incumbent)
            return None
        self.counters.visited += len(root.allowed) ** 2
        found = self._exact.pairs(root, scores, incumbent)
        found += self._exact.beam(root, scores, self._beam, self._length, incumbent)
        worth = root.own.inside - incumbent.iou * root.own.outside
        self._ranking = Ranking.by_worth(worth, self._tuning.most_heavy)
        large = root.table.n_concepts > self._tuning.rows_at_once
        whole = np.full(1, self.problem.highest)
        if self._length >= 3 and self.clock.expired and large:
            everything = TightNodes.everything(self._length, incumbent.threshold)
            return Expansion(Queued(everything, whole, np.zeros(1, np.int64)), found)
        return Expansion(self.branching.inside([root], whole, incumbent, fused), found)

    def _another(
        self, problem: Problem, tuning: Tuning, sizes: Sizes | None
    ) -> AbstractSpace[TightNodes]:
        return TightSpace(problem, None, self._beam, tuning=tuning, sizes=sizes)

    def concept_intersections(self) -> Int64[np.ndarray, " concepts"] | None:
        return None if self._ranking is None else self.subproblems.overlaps.own.inside

    @cached_property
    def branching(self) -> Branching:
        assert self._ranking is not None, "concepts are ranked at the root"
        known = self.problem, self.subproblems, self._ranking, self._tuning
        return Branching(*known, self.clock, self.counters)

    def expand(self, batch: Queued[TightNodes], incumbent: Incumbent) -> Expansion[TightNodes]:
        turns: list[Expansion[TightNodes]] = []
        for rows in batch.nodes.groups():
            part = take(batch, rows)
            if part.nodes.further[0]:
                turns.append(self._expand_labels(part, incumbent))
                continue
            for start in range(0, len(part), STACKED_SUBPROBLEMS):
                some = take(part, slice(start, start + STACKED_SUBPROBLEMS))
                turns += self._expand_subproblems(some, incumbent)
        if self._grows:
            self.batch_size = min(2 * self.batch_size, self._tuning.most_at_once)
        queued = [turn.children for turn in turns if turn.children is not None]
        found = [candidate for turn in turns for candidate in turn.candidates]
        return Expansion(concatenate(queued) if queued else None, found)

    def _expand_subproblems(
        self, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Iterator[Expansion[TightNodes]]:
        """Bound what is longer in some subproblems, those of one size together."""
        part = take(part, incumbent.may_improve(part.upper, self.shortest(part.nodes)))
        if self.clock.expired or not len(part):  # what takes long has to wait
            yield Expansion(part)
            return
        with self.clock.phase("device"):
            prefixes = (part.nodes.prefix(row) for row in range(len(part)))
            subs = [self.subproblems.at(prefix, incumbent.v) for prefix in prefixes]
        for group in together(subs):
            some = take(part, np.array(group))
            if self.clock.expired:
                yield Expansion(some)
                continue
            self.counters.expanded += len(group)
            chosen = [subs[k] for k in group]
            yield Expansion(self.branching.inside(chosen, some.upper, incumbent))

    def _expand_labels(
        self, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Expansion[TightNodes]:
        """Score all children of labels, and bound those that may take one more step."""
        part = take(part, incumbent.may_improve(part.upper, self.shortest(part.nodes)))
        if self.clock.expired or not len(part):
            return Expansion(part)
        self.counters.expanded += len(part)
        found: list[Candidate] = []
        queued: list[Queued[TightNodes]] = []
        waiting: list[SubproblemLabels] = []
        for rows in part.nodes.by_prefix():
            sub = self.subproblems.at(part.nodes.prefix(int(rows[0])), incumbent.v)
            waiting.append(SubproblemLabels.of_use(sub, part.nodes.labels(rows)))
        for scored in self._exact.children(waiting):
            found += self._exact.best_children(scored, incumbent)
            if part.nodes.further[0] == 2:
                queued.append(self.branching.longer(scored, incumbent))
        return Expansion(concatenate(queued) if queued else None, found)
