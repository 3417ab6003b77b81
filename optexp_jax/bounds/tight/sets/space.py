"""The search over all sets of a small table: screen the sets of a level, solve those that are left.

Shorter formulas come first. Their optimum is the threshold with which longer ones are screened, and
a by-product: `Explanation.by_length`.
"""

import jax
import numpy as np
from jaxtyping import Int32, Int64

from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import iou_at_most, needed, raised
from optexp_jax.bounds.tight.sets.any_shape import highest_of_any_shape
from optexp_jax.bounds.tight.sets.best_chain import SolvedSets, solve_sets, solve_sets_on_host
from optexp_jax.bounds.tight.sets.cells import Cells, any_function_on_host
from optexp_jax.bounds.tight.sets.chains_of_sets import (
    SetsReached,
    candidates_of_chains,
    chains_from,
)
from optexp_jax.bounds.tight.sets.every_set import every_set
from optexp_jax.bounds.tight.sets.screening import Intersections, allowance, screen
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.explanation import LengthOptimum
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.transfers import fetch_all, run
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.problem import Problem

NONE = -1


@pytree
class SetNodes:
    """Sets of concepts; each stands for the chains that have all of them."""

    size: Int64[np.ndarray, " nodes"]
    concepts: Int32[np.ndarray, "nodes length"]
    """Ascending, then -1. Only -1 stands for every set of this size."""

    def __len__(self) -> int:
        return len(self.size)


class SetsSpace(AbstractSpace[SetNodes]):
    """Searches the sets of up to `length` concepts: see `docs/explanation/sets_of_concepts.md`."""

    family = "TightBounds"

    def __init__(
        self,
        problem: Problem,
        batch_size: int | None,
        *,
        way: str,
        tuning: Tuning | None = None,
        shared: Intersections | None = None,
        screens: bool = True,
    ):
        """`way` says why sets are searched.

        `shared` is what was counted together with other neurons. Without `screens`, every set is
        solved.
        """
        self._tuning = tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        super().__init__(tuning.sets_at_once if batch_size is None else batch_size)
        self.problem = problem
        self.way = way
        self._length = problem.depth
        self._ops = OperatorSet.of_problem(problem)
        self._shared = shared
        self._screens = screens

    def recover(self) -> bool:
        return True  # All that is remembered are counts, and optima that are proved.

    def concept_intersections(self) -> Int64[np.ndarray, " concepts"] | None:
        if self._shared is None:
            return None
        single = every_set(self.problem.table, self._length).rows[0]
        return self._shared.inside[single, 0]

    def shortest(self, nodes: SetNodes) -> Int64[np.ndarray, " nodes"]:
        return nodes.size

    def describe(self, nodes: SetNodes, row: int) -> str:
        names = [self.problem.table.names[c] for c in nodes.concepts[row].tolist() if c != NONE]
        if not names:
            return f"every set of {int(nodes.size[row])} concepts"
        return f"the chains of {', '.join(names)}"

    def root(self, incumbent: Incumbent) -> Expansion[SetNodes] | None:
        with self.clock.phase("device"):
            self._sets = every_set(self.problem.table, self._length)
            if self._shared is None:
                self._shared = Intersections.of(self._sets, [self.problem.neuron])
        found: list[Candidate] = []
        self.by_length = ()
        for k in range(1, self._length + 1):
            if k > 2 and self.clock.expired:
                return Expansion(self._unscreened(range(k, self._length + 1)), found)
            queued = self._screened(k, incumbent)
            if 2 < k == self._length:
                if self.problem.any_shape:
                    self.any_shape = self._highest_of_any_shape(incumbent)
                return Expansion(queued, found)
            found += self._settle(queued, incumbent)
            if k < self._length:
                self._prove(k, incumbent)
        if self.problem.any_shape:
            self.any_shape = self._highest_of_any_shape(incumbent)
        return Expansion(None, found)

    def expand(self, batch: Queued[SetNodes], incumbent: Incumbent) -> Expansion[SetNodes]:
        whole = batch.nodes.concepts[:, 0] == NONE
        children: list[Queued[SetNodes]] = []
        found: list[Candidate] = []
        for k in np.unique(batch.nodes.size).tolist():
            of_size = batch.nodes.size == k
            waiting = take(batch, np.flatnonzero(of_size & whole))
            chosen = take(batch, np.flatnonzero(of_size & ~whole))
            if self.clock.expired:
                children += [waiting, chosen]
                continue
            if len(waiting):
                children.append(self._screened(k, incumbent))
            if len(chosen):
                found += self._settle(chosen, incumbent)
        return Expansion(concatenate(children) if children else None, found)

    def _prove(self, k: int, incumbent: Incumbent) -> None:
        """Keep the best formula of at most k concepts: all of them are settled."""
        if incumbent.best is not None:
            best = incumbent.best
            optimum = LengthOptimum(k, best.formula, best.score.intersection, best.score.union)
            self.by_length = (*self.by_length, optimum)

    def _unscreened(self, sizes: range) -> Queued[SetNodes]:
        nodes = SetNodes(np.array(sizes), np.full((len(sizes), self._length), NONE, np.int32))
        return Queued(nodes, np.ones(len(sizes)), np.array(sizes))

    def _screened(self, k: int, incumbent: Incumbent) -> Queued[SetNodes]:
        """The sets of k concepts that may have a chain that is wanted."""
        assert self._shared is not None, "the root counts first"
        level = self._sets.levels[k - 1]
        v, size = incumbent.v, self.problem.neuron.size
        self.counters.estimated += len(level)
        with self.clock.phase("device"):
            if self._screens and k > 2:
                asked = self.problem.table, self._length, self._shared
                (upper,) = screen(*asked, np.array([v]), k, k)
                w = raised(upper[:, 0] + allowance(k, self._shared.mass(self._sets, v)))
                kept = np.flatnonzero(w >= needed(v, size))
                bounds = iou_at_most(w[kept], size)
            else:  # So few that they are solved as soon, or all are to be.
                kept, bounds = np.arange(len(level)), np.ones(len(level))
        concepts = np.full((len(kept), self._length), NONE, np.int32)
        concepts[:, :k] = level.concepts[kept]
        nodes = SetNodes(np.full(len(kept), k), concepts)
        queued = Queued(nodes, bounds, np.full(len(kept), k))
        return take(queued, np.argsort(-bounds, kind="stable"))

    def _settle(self, queued: Queued[SetNodes], incumbent: Incumbent) -> list[Candidate]:
        """Solve sets of one size and offer their best chains, the most promising sets first."""
        found: list[Candidate] = []
        step = self._tuning.sets_at_once
        for start in range(0, len(queued), step):
            some = take(queued, slice(start, start + step))
            some = take(some, incumbent.may_improve(some.upper, some.nodes.size))
            if len(some):
                k = int(some.nodes.size[0])
                with self.clock.phase("exact"):
                    chosen = self._chains(some.nodes.concepts[:, :k], incumbent)
                for candidate in chosen:
                    incumbent.offer(candidate)
                found += chosen
        return found

    def _chains(self, sets: Int32[np.ndarray, "sets k"], incumbent: Incumbent) -> list[Candidate]:
        """The chains of sets that may be wanted."""
        assert self._shared is not None, "the root counts first"
        v, size = incumbent.v, self.problem.neuron.size
        cells = self._sets.cells(sets, self._shared.inside[:, 0], self._shared.outside[:, 0])
        if self._screens:  # v may have risen since.
            kept = np.flatnonzero(any_function_on_host(cells, v) >= needed(v, size))
            sets, cells = sets[kept], cells.take(kept)
        self.counters.expanded += len(sets)
        reached = SetsReached(v, size)
        solved = _solve(cells, v, self._ops, self._tuning.sets_at_once)
        kept = np.flatnonzero(reached.by(solved))
        chains = chains_from(solved.take(kept), self._ops, reached)
        self.counters.visited += len(chains)
        return candidates_of_chains(chains, sets[kept], self.problem.table.names, size, incumbent)

    def _highest_of_any_shape(self, incumbent: Incumbent) -> float:
        assert self._shared is not None, "the root counts first"
        with self.clock.phase("device"):
            return highest_of_any_shape(self.problem, self._shared, incumbent.iou, self.clock)


def _solve(cells: Cells, v: float, ops: OperatorSet, at_once: int) -> SolvedSets:
    """On the host or on the device, on the latter always for as many sets."""
    if prefers_host_kernels():
        return solve_sets_on_host(cells, v, ops=ops)
    n = len(cells)
    spare = ((0, 0), (0, max(at_once - n, 0)))
    filled = Cells(np.pad(cells.inside, spare), np.pad(cells.outside, spare))
    with jax.enable_x64(True):
        solved = run(solve_sets, filled, np.float64(v), ops=ops)
        return SolvedSets(*fetch_all(solved.inside, solved.outside, solved.best)).take(slice(n))
