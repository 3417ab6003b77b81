"""Which longer formulas may beat the incumbent, at some subproblems and around labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
from jaxtyping import Bool, Float64

from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, OperatorSet
from optexp_jax.bounds.tight.rounding import iou_at_most
from optexp_jax.bounds.tight.search.batch import (
    BatchCache,
    OfRows,
    SubproblemBatch,
    SurvivingPairs,
    together,
)
from optexp_jax.bounds.tight.search.label_scores import (
    ScoredChildren,
    SubproblemLabels,
    expand,
    longer_labels,
)
from optexp_jax.bounds.tight.search.nodes import TightNodes
from optexp_jax.bounds.tight.search.subproblem import Prefix, Ranking, Subproblem, SubproblemCache
from optexp_jax.bounds.tight.search.survivors import PairBound, survivors
from optexp_jax.bounds.tight.theory.fused_root import FusedRoot
from optexp_jax.bounds.tight.theory.one_step import highest_bounds, triple_bounds
from optexp_jax.bounds.tight.theory.outer_step import (
    OuterMaxima,
    effective_steps,
    outer_bounds,
    outer_maxima,
)
from optexp_jax.bounds.tight.theory.row_maxima import two_step_maxima
from optexp_jax.bounds.tight.theory.short import ShortFormulaBounds, short_formulas
from optexp_jax.bounds.tight.theory.two_step import refined_two_steps, two_step_bounds
from optexp_jax.bounds.tight.tuning import FEW_LABELS, FEWEST_ROWS, ROW_CELLS, Tuning
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.frontier import Queued, concatenate
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class OuterSteps:
    """Steps of some operators, with some concepts of each subproblem."""

    ops: OperatorSet
    concepts: Bool[np.ndarray, "subs concepts"]


class Branching:
    """Bounds what subproblems and labels can become; makes nodes of what may beat the incumbent."""

    def __init__(
        self,
        problem: Problem,
        subs: SubproblemCache,
        ranking: Ranking,
        tuning: Tuning,
        clock: Clock,
        counters: Counters,
    ):
        self._problem = problem
        self._length = problem.depth
        self._ops = OperatorSet.of(problem.operators)
        self._subs = subs
        self.ranking = ranking
        self._tuning = tuning
        self._clock = clock
        self._counters = counters
        self._batch = BatchCache(ranking)

    def inside(
        self,
        subs: Sequence[Subproblem],
        upper: Float64[np.ndarray, " subs"],
        incumbent: Incumbent,
        fused: FusedRoot | None = None,
    ) -> Queued[TightNodes] | None:
        """What may beat the incumbent with three and more concepts inside the outer steps.

        For subproblems that can be looked at together, with as many steps each. `fused` is what is
        known of the root.
        """
        left = self._length - len(subs[0].steps)
        if left < 3:
            return None
        with self._clock.phase("device"), jax.enable_x64(True):
            v = incumbent.v
            if fused is not None and self._length == 3 and fused.v == v:
                batch = SubproblemBatch.of_fused(subs[0], fused, self.ranking)
            else:
                batch = self._batch.at(subs, v)
            highest = self._highest_bounds(batch)
            parts = [self._queue_pairs(batch, self._pairs(batch, highest, batch.need), 1)]
            self._counters.estimated += sum(int(sub.allowed.sum()) ** 2 for sub in subs)
            if left >= 4:
                # B is the node's own bound, less what is captured (Proposition 11).
                most = (upper * self._problem.rounded_base).tolist()
                known = zip(subs, most, strict=True)
                best = np.array([sub.left_of(w, batch.v) for sub, w in known])
                maxima = outer_maxima(batch.inputs, longest=self._length - 1)
                from_inside = fetch(maxima.meeting)[: len(subs)] & (left == 4)
                if from_inside.any():
                    parts += self._four_left(batch, highest, best, from_inside)
                if not from_inside.all():
                    steps = self._all_steps(batch, ~from_inside)
                    parts.append(self._outer_nodes(batch, maxima, best, steps))
        return concatenate(parts)

    def longer(self, expanded: ScoredChildren, incumbent: Incumbent) -> Queued[TightNodes]:
        """Labels of three concepts that one more OR or AND NOT may take past the incumbent."""
        with self._clock.phase("device"), jax.enable_x64(True):
            batch = self._batch.at(expanded.subs, incumbent.v)
            known = batch.inputs, batch.maxima
            longer = longer_labels(*known, expanded, batch.need, self._ops)
        self._counters.estimated += expanded.n_children
        parts: list[Queued[TightNodes]] = []
        for k, sub in enumerate(batch.subs):
            here = longer.sub == k
            labels, w = longer.labels.take(here), longer.upper[here]
            nodes = TightNodes.around(labels, self._length, sub.prefix, 1, batch.v)
            parts.append(self._queue(nodes, sub.captured(batch.v) + w))
        return concatenate(parts)

    def _four_left(
        self,
        batch: SubproblemBatch,
        highest: Float64[np.ndarray, "subs concepts"],
        best: Float64[np.ndarray, " subs"],
        which: Bool[np.ndarray, " subs"],
    ) -> list[Queued[TightNodes]]:
        """Formulas of four concepts at some of the subproblems: from the inside, and outer steps.

        First the highest W of three concepts; it leaves out the concepts that cannot add the rest.
        """
        three = self._highest_of_three(batch, highest)
        best = np.minimum(best, three)
        some = np.flatnonzero(which)
        narrow: list[Subproblem] = []
        for k in some.tolist():
            sub = batch.subs[k]
            shorter = sub.captured(batch.v) + float(three[k])
            narrow.append(self._subs.at(Prefix(sub.steps, shorter), batch.v))
        parts: list[Queued[TightNodes]] = []
        for group in together(narrow):
            chosen = some[group]
            inside = [narrow[k] for k in group]
            same = batch.with_concepts_of(inside)
            inner = replace(batch, subs=inside) if same else self._batch.at(inside, batch.v)
            limits = short_formulas(inner.inputs, ops=self._ops)
            limits = replace(limits, three=put(inner.fill(three[chosen]))[0])
            maxima = outer_maxima(inner.inputs, longest=self._length - 1)
            parts.append(self._two_step_nodes(inner, limits))
            steps = self._steps_from_outside(inner)
            parts.append(self._outer_nodes(inner, maxima, best[chosen], steps))
        return parts

    def _highest_bounds(self, batch: SubproblemBatch) -> Float64[np.ndarray, "subs concepts"]:
        """The highest bound of all pairs with the same first concept, or what is above it."""
        if batch.allowed.size * batch.allowed.shape[1] <= self._tuning.fetched_cells:
            # The pairs of so few are as soon fetched.
            return np.full(batch.allowed.shape, np.inf)
        bounds = highest_bounds(batch.inputs, batch.maxima, ops=self._ops)
        return fetch(bounds)

    def _pairs(
        self,
        batch: SubproblemBatch,
        highest: Float64[np.ndarray, "subs concepts"],
        need: Float64[np.ndarray, " subs"],
    ) -> SurvivingPairs:
        """Pairs that one further step may take to what is needed."""
        kept = batch.allowed & (highest >= need[:, None])
        bound = partial(triple_bounds, batch.inputs, ops=self._ops)
        # So few of small subproblems are expanded as soon as they are bounded again.
        small = batch.inputs.n_concepts <= self._tuning.small_subproblem
        few = self._tuning.unrefined if small else -1
        return self._by_both(batch, kept, batch.bounds_of_rows(self._ops), need, bound, few)

    def _by_both(
        self,
        batch: SubproblemBatch,
        kept: Bool[np.ndarray, "subs concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " subs"],
        bound: PairBound,
        few: int = -1,
    ) -> SurvivingPairs:
        on_host = batch.on_host or batch.pair_bounds is not None
        return SurvivingPairs.at_least_by_both(
            kept, of_rows, need, bound, self._clock, on_host=on_host, few=few
        )

    def _two_step_nodes(
        self, batch: SubproblemBatch, limits: ShortFormulaBounds
    ) -> Queued[TightNodes]:
        """Pairs that two further steps may take past the incumbent."""
        known, need = (batch.inputs, batch.maxima), batch.need
        more = two_step_maxima(*known)
        of_rows = partial(two_step_bounds, *known, more, limits, ops=self._ops)
        bound = partial(refined_two_steps, *known, limits, ops=self._ops)
        pairs = self._by_both(batch, batch.allowed, of_rows, need, bound)
        self._counters.estimated += sum(int(sub.allowed.sum()) ** 2 for sub in batch.subs)
        return self._queue_pairs(batch, pairs, 2)

    def _highest_of_three(
        self, batch: SubproblemBatch, highest: Float64[np.ndarray, "subs concepts"]
    ) -> Float64[np.ndarray, " subs"]:
        """The highest W of at most three concepts at each subproblem, or what it can be at most.

        Pairs are tried from the highest bound down, until no bound is higher than what was found.
        """
        best = fetch(short_formulas(batch.inputs, ops=self._ops).two).copy()
        n_subs = len(batch.subs)
        best[n_subs:] = np.inf
        pairs = self._pairs(batch, highest, np.nextafter(best, np.inf))
        pairs = pairs.take(np.argsort(-pairs.value, kind="stable"))
        waiting = [np.flatnonzero(pairs.sub == k) for k in range(n_subs)]
        at = {sub: k for k, sub in enumerate(batch.subs)}
        for _ in range(self._tuning.pairs_tried // FEW_LABELS):
            waiting = [rows[pairs.value[rows] > best[k]] for k, rows in enumerate(waiting)]
            tried = [
                SubproblemLabels(sub, pairs.take(rows[:FEW_LABELS]).labels(sub.concepts.ids))
                for sub, rows in zip(batch.subs, waiting, strict=True)
                if len(rows)
            ]
            if not tried or self._clock.expired:
                break
            for expanded in expand(tried, self._ops):
                found = expanded.highest_w(batch.v, self._ops)
                for row, w in enumerate(found.tolist()):
                    k = at[expanded.subs[int(expanded.of_sub[row])]]
                    best[k] = max(best[k], w)
            waiting = [rows[FEW_LABELS:] for rows in waiting]
        most = [pairs.value[rows].max(initial=-np.inf) for rows in waiting]
        return np.maximum(best[:n_subs], most)

    def _queue_pairs(
        self, batch: SubproblemBatch, pairs: SurvivingPairs, further: int
    ) -> Queued[TightNodes]:
        parts: list[Queued[TightNodes]] = []
        for k, sub in enumerate(batch.subs):
            here = pairs.take(pairs.sub == k) if len(batch.subs) > 1 else pairs
            labels = here.labels(sub.concepts.ids)
            nodes = TightNodes.around(labels, self._length, sub.prefix, further, batch.v)
            parts.append(self._queue(nodes, sub.captured(batch.v) + here.value))
        return concatenate(parts)

    def _outer_nodes(
        self,
        batch: SubproblemBatch,
        maxima: OuterMaxima,
        best: Float64[np.ndarray, " subs"],
        steps: Sequence[OuterSteps],
    ) -> Queued[TightNodes]:
        """Next outer steps with which some completion may beat the incumbent."""
        n, left = batch.inputs.n_concepts, self._length - len(batch.subs[0].steps) - 1
        known = batch.inputs, maxima, batch.rank, batch.fill(best), np.int32(left)
        size = min(batch.allowed.size, max(FEWEST_ROWS, ROW_CELLS // n))
        w = np.full((len(batch.need), 3, n), -np.inf)
        for part in steps:
            sub, c = (part_of.astype(np.int32) for part_of in np.nonzero(part.concepts))
            for start in range(0, len(c), size):
                some, of_those = c[start : start + size], sub[start : start + size]
                padded = fill_up(of_those, size), fill_up(some, size)
                found = run(outer_bounds, *known, *padded, ops=self._ops, steps=part.ops)
                needed = np.full(size, np.inf)
                needed[: len(some)] = batch.need[of_those]
                kept = survivors(found, needed, batch.on_host)
                at, op = kept.at
                cells = of_those[at], op, some[at]
                w[cells] = np.maximum(w[cells], kept.value)
            self._counters.estimated += len(c)
        effective = fetch(effective_steps(batch.inputs))
        parts: list[Queued[TightNodes]] = []
        for k, sub in enumerate(batch.subs):
            here = np.where(self._in_order(sub) & effective[k], w[k], -np.inf)
            op, c = (part.astype(np.int32) for part in np.nonzero(here >= batch.need[k]))
            concept = sub.concepts.ids[c]
            nodes = TightNodes.outer(self._length, sub.prefix, op, concept, batch.v)
            parts.append(self._queue(nodes, sub.captured(batch.v) + here[op, c]))
        return concatenate(parts)

    def _all_steps(
        self, batch: SubproblemBatch, which: Bool[np.ndarray, " subs"]
    ) -> list[OuterSteps]:
        """All outer steps, at subproblems where nothing is bounded from the inside."""
        return [OuterSteps(self._ops, batch.allowed & fill_up(which, len(batch.need))[:, None])]

    def _steps_from_outside(self, batch: SubproblemBatch) -> list[OuterSteps]:
        """The outer steps that are searched where others are bounded from the inside."""
        heavy = batch.allowed & ~batch.light
        return [
            OuterSteps(OperatorSet(self._ops.union, False, False), heavy),
            OuterSteps(OperatorSet(False, self._ops.intersection, False), batch.allowed),
        ]

    def _in_order(self, sub: Subproblem) -> Bool[np.ndarray, "ops concepts"]:
        """Which next steps come in the one order that is searched.

        In a run of the same operator ranks fall from the outermost step inward; ANDs stand outside
        AND NOTs, with which they commute.
        """
        rank = sub.concepts.pick(self.ranking.rank)
        kept = np.ones((3, len(rank)), bool)
        if sub.steps:
            last = sub.steps[-1]
            kept[last.op] = rank < self.ranking.rank[last.concept]
            if last.op == DIFFERENCE:
                kept[INTERSECTION] = False
        return kept

    def _queue(self, nodes: TightNodes, w: Float64[np.ndarray, " nodes"]) -> Queued[TightNodes]:
        upper = iou_at_most(w, self._problem.rounded_base)
        return Queued(nodes, upper, np.zeros(len(nodes), np.int64))
