"""The search over sets of concepts, one concept at a time: for large tables and long formulas.

A node is a set of concepts that are in and candidates for the others. The last two are looked at
together, exactly; of the sets that any Boolean function lifts to the threshold, the best chains are
found. Sets of n concepts hold all formulas that beat the incumbent. Formulas that tie with a
shorter incumbent are looked for by themselves, among sets of its length: sets of n concepts that
merely contain such a set are far too many (Proposition 26).
"""

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bounds.tight.counts.gram import Counted
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import CELL_SHARE, iou_at_most, needed
from optexp_jax.bounds.tight.search.exact import ExactScoring
from optexp_jax.bounds.tight.search.root import CountedRoot, RootScores
from optexp_jax.bounds.tight.search.subproblem import Prefix, SubproblemCache
from optexp_jax.bounds.tight.sets.best_chain import solve_sets_on_host
from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.sets.chains_of_sets import (
    SetChains,
    SetsReached,
    candidates_of_chains,
    chains_from,
)
from optexp_jax.bounds.tight.shares.branching import next_concepts
from optexp_jax.bounds.tight.shares.cell_counts import CellCounter, CellCounts
from optexp_jax.bounds.tight.shares.exact_chains import ExactThreshold
from optexp_jax.bounds.tight.shares.last_pairs import (
    PairNumbers,
    cells_with_pairs,
    functions_of_pairs,
)
from optexp_jax.bounds.tight.shares.nodes import ShareNodes
from optexp_jax.bounds.tight.shares.occurring import OccurringLevels, occurring_sets
from optexp_jax.bounds.tight.shares.pieces import ThirdConcepts, third_concepts
from optexp_jax.bounds.tight.shares.shares import shares
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.counts.scores import Score
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.problem import Problem

SETS_AT_ONCE = 4096
CHAINS_AT_ONCE = 64
RISEN = 1.01
"""Bounds are made anew for a v that is higher by this factor: until then, the old ones hold."""


class SharesSpace(AbstractSpace[ShareNodes]):
    """The search over sets of `TightBounds`: see `docs/explanation/large_sets.md`."""

    family = "TightBounds"

    def __init__(
        self,
        problem: Problem,
        batch_size: int | None,
        beam: int | None,
        *,
        tuning: Tuning | None = None,
        counted: CountedRoot | None = None,
    ):
        """`counted` is what was computed together with other neurons."""
        super().__init__(1 if batch_size is None else batch_size)
        self.problem = problem
        self._tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        self._beam = self._tuning.beam if beam is None else beam
        self._counted = Counted() if counted is None else counted.counted
        self._ops = OperatorSet.of_problem(problem)
        self._exact = ExactScoring(self._ops, self.clock, self.counters)
        self._occurring: Bool[np.ndarray, " concepts"] = problem.table.concept_sizes > 0
        # A concept that holds nowhere changes no formula that it is added to.
        self._most = min(problem.depth, int(self._occurring.sum()))
        self._v = 0.0
        self._third: dict[int, ThirdConcepts] = {}
        self._tied: tuple[Score, int] | None = None

    def recover(self) -> bool:
        self._third, self._tied = {}, None
        return True

    def shortest(self, nodes: ShareNodes) -> Int64[np.ndarray, " nodes"]:
        # What is shorter and ties with the incumbent is looked for by itself.
        return nodes.size.astype(np.int64)

    def describe(self, nodes: ShareNodes, row: int) -> str:
        names = self.problem.table.names
        chosen = ", ".join(names[c] for c in nodes.concepts_in(row).tolist()) or "none yet"
        n = int(nodes.candidates(row, self.problem.table.n_concepts).sum())
        return f"sets of {nodes.size[row]} concepts: {chosen}; {n} candidates for the others"

    def root(self, incumbent: Incumbent) -> Expansion[ShareNodes] | None:
        known = SubproblemCache(self.problem, self._tuning, counted=self._counted).at(Prefix())
        with self.clock.phase("device"):
            scores = RootScores.of(known, self._ops, self.clock, self._tuning)
        if scores is None:
            self._exact.best_concept(known, incumbent)
            return None
        self.counters.visited += len(known.allowed) ** 2
        found = self._exact.pairs(known, scores, incumbent)
        found += self._exact.beam(known, scores, self._beam, self.problem.depth, incumbent)
        if self._most < 3 or incumbent.best is None:
            return Expansion(None, found)
        everything = ShareNodes.of([()], [self._occurring], self._most, self._most)
        queued = [Queued(everything, np.ones(1), np.zeros(1, np.int64)), *self._ties(incumbent)]
        return Expansion(concatenate(queued), found)

    def expand(self, batch: Queued[ShareNodes], incumbent: Incumbent) -> Expansion[ShareNodes]:
        found: list[Candidate] = []
        queued: list[Queued[ShareNodes]] = []
        for row in range(len(batch)):
            node = take(batch, slice(row, row + 1))
            if not incumbent.may_improve(node.upper, self.shortest(node.nodes))[0]:
                continue
            if self.clock.expired:
                queued.append(node)
                continue
            self.counters.expanded += 1
            left = int(node.nodes.size[0]) - len(node.nodes.concepts_in(0))
            if left > 2:
                queued += self._branch(node, left, incumbent)
            else:
                queued += self._last_two(node, incumbent, found)
        queued += self._ties(incumbent)
        return Expansion(concatenate(queued) if queued else None, found)

    def _ties(self, incumbent: Incumbent) -> list[Queued[ShareNodes]]:
        """Where formulas level with an incumbent of fewer concepts are, unless they wait already.

        What is better is in the sets of n concepts, so their IoU is that of the incumbent.
        """
        best = incumbent.best
        if best is None or not 3 <= len(best.formula) < self._most:
            return []
        if self._tied == (best.score, len(best.formula)):
            return []
        self._tied = best.score, len(best.formula)
        nodes = ShareNodes.of([()], [self._occurring], len(best.formula), self._most)
        return [Queued(nodes, np.nextafter([best.score.iou], 2.0), np.ones(1, np.int64))]

    def _given_up(self, size: int, incumbent: Incumbent) -> bool:
        """Whether ties of so many concepts are of no interest any more."""
        best = incumbent.best
        return size < self._most and best is not None and len(best.formula) != size

    def _branch(
        self, node: Queued[ShareNodes], left: int, incumbent: Incumbent
    ) -> list[Queued[ShareNodes]]:
        nodes, size = node.nodes, int(node.nodes.size[0])
        if self._given_up(size, incumbent):
            return []
        with self.clock.phase("device"):
            third = self._third_concepts(size, incumbent)
            chosen = nodes.concepts_in(0)
            kept = nodes.candidates(0, self.problem.table.n_concepts)
            counts = self._counter.count(chosen)
            found = shares(counts, self._levels.pairs.directed.among(kept), third, self._v, left)
            margin = self._margin(counts, self._v)
            wanted = needed(incumbent.v, self.problem.neuron.size) - margin
            children = next_concepts(found, kept, left, wanted)
        self.counters.estimated += int(kept.sum())
        if not children:
            return []
        upper = iou_at_most(
            np.array([child.most + margin for child in children]), self.problem.neuron.size
        )
        lists = [[*chosen.tolist(), child.concept] for child in children]
        return [
            Queued(
                ShareNodes.of(lists, [child.kept for child in children], size, self._most),
                np.minimum(upper, node.upper[0]),
                np.zeros(len(children), np.int64),
            )
        ]

    def _last_two(
        self, node: Queued[ShareNodes], incumbent: Incumbent, found: list[Candidate]
    ) -> list[Queued[ShareNodes]]:
        """Look at all sets of a node; what there is no time for waits on."""
        nodes, size = node.nodes, int(node.nodes.size[0])
        if self._given_up(size, incumbent):
            return []
        neuron_size = self.problem.neuron.size
        with self.clock.phase("device"):
            kept = nodes.candidates(0, self.problem.table.n_concepts)
            chosen = nodes.concepts_in(0)
            counts = self._counter.count(chosen)
            margin = self._margin(counts, incumbent.v)
            wanted = needed(incumbent.v, neuron_size) - margin
            looked = functions_of_pairs(counts, kept, self._levels.pairs, incumbent.v, wanted)
            a, b = np.nonzero(looked.u >= wanted)
            a, b = a[a < b], b[a < b]
            ids, u = looked.ids, looked.u[a, b] + margin
            order = np.argsort(-u, kind="stable")
            a, b, u = ids[a[order]], ids[b[order]], u[order]
        self.counters.visited += int(kept.sum()) * (int(kept.sum()) - 1) // 2
        for start in range(0, len(u), SETS_AT_ONCE):
            if u[start] < needed(incumbent.v, neuron_size):
                break
            if self.clock.expired:
                upper = np.minimum(node.upper, iou_at_most(u[start : start + 1], neuron_size))
                return [Queued(nodes, upper, node.priority)]
            some = slice(start, start + SETS_AT_ONCE)
            with self.clock.phase("exact"):
                self._chains(counts, chosen, a[some], b[some], size, incumbent, found)
        return []

    def _chains(
        self,
        counts: CellCounts,
        chosen: np.ndarray,
        a: Int64[np.ndarray, " sets"],
        b: Int64[np.ndarray, " sets"],
        size: int,
        incumbent: Incumbent,
        found: list[Candidate],
    ) -> None:
        """Offer the best chains of some sets."""
        problem, best = self.problem, incumbent.best
        assert best is not None, "a search begins with an incumbent"
        threshold = ExactThreshold(
            best.score,
            problem.neuron.size,
            problem.table.n_locations,
            ties=size <= len(best.formula),
        )
        sets = np.stack([*(np.full(len(a), c) for c in chosen.tolist()), a, b], axis=1)
        cells = cells_with_pairs(counts, self._numbers, a, b)
        if threshold.fits:
            reached = np.flatnonzero(threshold.by_functions(cells))
            cells, sets = cells.take(reached), sets[reached]
            reached = np.flatnonzero(threshold.by_chains(cells))
            cells, sets = cells.take(reached), sets[reached]
        for start in range(0, len(sets), CHAINS_AT_ONCE):
            some = slice(start, start + CHAINS_AT_ONCE)
            chains = self._reaching(cells.take(some), incumbent)
            candidates = candidates_of_chains(
                chains, sets[some], problem.table.names, problem.neuron.size, incumbent
            )
            for candidate in candidates:
                incumbent.offer(candidate)
            found += candidates

    def _reaching(self, cells: Cells, incumbent: Incumbent) -> SetChains:
        """All chains of a few sets that reach the incumbent."""
        solved = solve_sets_on_host(cells, incumbent.v, ops=self._ops, shorter=True)
        reached = SetsReached(incumbent.v, self.problem.neuron.size)
        return chains_from(solved, self._ops, reached, shorter=True)

    def _margin(self, counts: CellCounts, v: float) -> float:
        """How far rounding can be off.

        Every bound is a sum of at most 256 terms of a cell and a concept, each of at most five
        operations on parts of the cell. Cells are disjoint, so all of it is off by less than 4096
        roundings (`ROUNDOFF`) of W of all locations, with their signs left out.
        """
        inside, outside = counts.whole.sum(0).tolist()
        return CELL_SHARE * (inside + v * outside)

    def _third_concepts(self, size: int, incumbent: Incumbent) -> ThirdConcepts:
        """Bounds on pieces at a v that is that of the incumbent, or next to it."""
        if incumbent.v > RISEN * self._v:
            self._v, self._third = incumbent.v, {}
        if size not in self._third:
            inside = self.problem.neuron.inside
            self._third[size] = third_concepts(self._levels, inside, self._v, size)
        return self._third[size]

    @property
    def _levels(self) -> OccurringLevels:
        return occurring_sets(self.problem.table, self._most)

    @cached_property
    def _counter(self) -> CellCounter:
        return CellCounter(self.problem.table, self.problem.neuron, self._levels.pairs)

    @cached_property
    def _numbers(self) -> PairNumbers:
        a, b = self._levels.pairs.concepts.T.astype(np.int64)
        n_concepts = self.problem.table.n_concepts
        return PairNumbers(a * n_concepts + b, n_concepts)
