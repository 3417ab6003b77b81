"""The driver: one loop for every family of bounds and every order of nodes."""

import abc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic

import equinox as eqx
import numpy as np
from jaxtyping import Float64, Int64

from optexp_jax.explanation import (
    Explanation,
    LengthOptimum,
    RunnerUp,
    SearchStats,
    Speculative,
    Status,
    StoppedBy,
)
from optexp_jax.internal.float64 import place_of_bounds
from optexp_jax.internal.kernel_choice import used_kernels
from optexp_jax.internal.tracing import (
    CompilationDeferredError,
    compiling_while,
    count_traces,
)
from optexp_jax.search.clock import Clock
from optexp_jax.search.frontier import Frontier, Nodes, Queued, take
from optexp_jax.search.incumbent import Candidate, Incumbent, PoolEntry
from optexp_jax.search.order import AbstractOrder
from optexp_jax.search.stopping import Progress, StoppingCriteria


class InadmissibleBoundError(RuntimeError):
    """A formula turned out better than a bound that claimed to hold for it."""


@dataclass(frozen=True, eq=False)
class Expansion(Generic[Nodes]):
    """What comes of expanding a batch of nodes."""

    children: Queued[Nodes] | None = None
    """Nodes to queue: children, or the expanded nodes themselves with better bounds."""
    candidates: list[Candidate] = field(default_factory=list)
    """Formulas whose exact score was computed."""
    lower: float = 0.0
    """A lower bound on the highest IoU of all formulas."""
    work: Int64[np.ndarray, "3 nodes"] | None = None
    """What each expanded node added to `visited`, `expanded` and `estimated`, if the space tells.

    Else each counts as expanded.
    """


@dataclass
class Counters:
    """The paper's counters, which a search space keeps."""

    visited: int = 0
    expanded: int = 0
    estimated: int = 0
    updated: int = 0

    def set_to(self, other: "Counters") -> None:
        """Go back to what was counted before."""
        self.__dict__.update(other.__dict__)


class AbstractSpace(abc.ABC, Generic[Nodes]):
    """One search: what its nodes are, how they branch and how they are bounded.

    A node stands for a set of formulas. Expanding nodes must account for all of them: each is a
    candidate of the turn, or in one of its children, or provably no better than a shorter
    formula.
    """

    family: str = "custom"
    """The name of the family of bounds, for the record."""
    way: str | None = None
    """Which of its ways the family took, and why."""
    by_length: tuple[LengthOptimum, ...] = ()
    """Proved optima of shorter formulas, where they are a by-product."""
    any_shape: float | None = None
    """An IoU that no Boolean function of as many concepts exceeds, if the problem asks for it."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.counters = Counters()
        self.clock = Clock()

    @abc.abstractmethod
    def root(self, incumbent: Incumbent) -> Expansion[Nodes] | None:
        """The first nodes, which together stand for all formulas.

        None if the time was over before there were any: then it is asked again when the search
        goes on.
        """

    @abc.abstractmethod
    def expand(self, batch: Queued[Nodes], incumbent: Incumbent) -> Expansion[Nodes]:
        """Expand a batch of the most promising nodes."""

    def recover(self) -> bool:
        """Make ready to go on although an exception (Ctrl-C, no memory) has cut a turn short.

        The nodes of that turn come up again, and may be expanded only as if they never had: what
        the space remembers from one turn to the next has to be as whole as before the turn, or
        forgotten. A space that cannot promise it returns False, as this one does; it is then
        given up for a new one, which starts from the root, with the incumbent kept.
        """
        return False

    def concept_intersections(self) -> Int64[np.ndarray, " concepts"] | None:
        """Active locations of every concept, if the search has counted them by now."""
        return None

    @abc.abstractmethod
    def shortest(self, nodes: Nodes) -> Int64[np.ndarray, " nodes"]:
        """The length of the shortest formula that each node stands for."""

    def describe(self, nodes: Nodes, row: int) -> str:
        """One node as a person reads it, for reports: which formulas it stands for.

        Unless a space says better, all that the node holds.
        """
        return f"node {eqx.tree_pformat(take(nodes, slice(row, row + 1)), short_arrays=False)}"


def best_first(
    space: AbstractSpace[Nodes],
    neuron_size: int,
    limits: StoppingCriteria,
    incumbent: Incumbent | None = None,
) -> Explanation:
    """Search until nothing that waits can beat the best formula found, or a limit is reached."""
    return Search(lambda: space, neuron_size, incumbent).run(limits)


@dataclass(frozen=True, eq=False)
class _Standing(Generic[Nodes]):
    """Where a search stands between two turns."""

    frontier: Frontier[Nodes]
    counters: Counters
    turns: int
    """How many there were."""
    pruned_below: float = 0.0


@dataclass(frozen=True, eq=False)
class _Work:
    """What the nodes of a turn added to the counters, and their bounds."""

    upper: Float64[np.ndarray, " nodes"]
    work: Int64[np.ndarray, "3 nodes"]


class Search(Generic[Nodes]):
    """A search that can be stopped and go on, also after an exception.

    A turn takes place wholly or not at all: it works on a copy of the frontier, which takes the
    place of the other in one assignment at its end. What is not undone are scores offered to the
    incumbent and lower bounds, which are true whatever becomes of the turn.
    """

    def __init__(
        self,
        open_space: Callable[[], AbstractSpace[Nodes]],
        neuron_size: int,
        incumbent: Incumbent | None = None,
        order: AbstractOrder | None = None,
        highest: float = 1.0,
        fallback: Callable[[], list[Candidate]] | None = None,
    ):
        """`open_space` opens a space anew, to begin with and if one has to be given up.

        `order` is that in which nodes are expanded; best-first unless told. `highest` is the
        highest value that a formula can have. `fallback` finds formulas, without compiling
        anything, where there was no time for the root.
        """
        self._order = order
        self._fallback = fallback
        self._place = place_of_bounds()
        self._open_space = open_space
        traces = count_traces()
        with self._place.scope():
            self._space = open_space()
        self._compilations = count_traces() - traces
        self._neuron_size = neuron_size
        self._limits = StoppingCriteria()
        self._clock = self._space.clock
        self._clock.pause()
        self._stopped_by: StoppedBy | None = None
        self._incumbent = Incumbent() if incumbent is None else incumbent
        self._standing: _Standing[Nodes] | None = None
        self._within_turn = False
        """Whether a turn was begun and did not come to its end."""
        self._proved = highest
        """The lowest upper bound so far. It held for all formulas then, so it still does."""
        self._done: list[_Work] = []
        """What the popped nodes added to the counters, `[counter, node]`."""

    @property
    def space(self) -> AbstractSpace[Nodes]:
        """What is searched."""
        return self._space

    def run(self, limits: StoppingCriteria) -> Explanation:
        """Begin, or go on, until the proof is complete or one of these limits is reached."""
        with self._place.scope():
            return self._run(limits)

    def _run(self, limits: StoppingCriteria) -> Explanation:
        self._limits = limits
        self._stopped_by = None
        if self._within_turn:
            self._recover()
        self._clock.go_on(limits.time_limit)
        traces = count_traces()
        try:
            with compiling_while(lambda: not self._clock.expired):
                standing = self._search()
        except CompilationDeferredError:
            # The turn was cut short; it is done again if the search goes on.
            standing, self._stopped_by = self._standing, StoppedBy.TIME_LIMIT
        finally:
            self._clock.pause()
            self._compilations += count_traces() - traces
        if self._standing is None and self._fallback is not None:
            for candidate in self._fallback():
                self._incumbent.offer(candidate)
        done = standing is not None and not len(standing.frontier)
        return self._explanation(proved=done and self._stopped_by is None)

    def _search(self) -> _Standing[Nodes] | None:
        """Where the search stands when it is over, or has to stop; None before its root."""
        standing = self._root() if self._standing is None else self._standing
        while standing is not None and len(standing.frontier):
            if self._should_stop(standing.frontier):
                break
            standing = self._turn(standing)
        return standing

    def _root(self) -> _Standing[Nodes] | None:
        """Where the search stands after its root; None if there was no time for it."""
        self._within_turn = True
        turn = self._space.root(self._incumbent)
        if turn is None:
            self._stopped_by = StoppedBy.TIME_LIMIT
            self._within_turn = False
            return None
        return self._absorb(turn, Frontier(self._order), 0.0)

    def _turn(self, standing: _Standing[Nodes]) -> _Standing[Nodes]:
        self._within_turn = True
        with self._clock.phase("heap"):
            frontier = standing.frontier.copy()
            batch = self._pop(frontier)
        turn = self._space.expand(batch, self._incumbent) if len(batch) else Expansion()
        nodes_only = np.array([[0], [1], [0]]).repeat(len(batch), axis=1)
        self._done.append(_Work(batch.upper, nodes_only if turn.work is None else turn.work))
        return self._absorb(turn, frontier, standing.pruned_below)

    def _recover(self) -> None:
        """Go back to where the search stood before a turn that was cut short."""
        del self._done[0 if self._standing is None else self._standing.turns :]
        if self._standing is None or not self._space.recover():
            self._begin_again()
        else:
            self._space.counters.set_to(self._standing.counters)
        self._within_turn = False

    def _begin_again(self) -> None:
        """Give up the space and all that waits, but not what was found and proved."""
        space, before = self._open_space(), self._space
        space.clock.take_over(before.clock)
        if self._standing is not None:
            space.counters.set_to(self._standing.counters)
        self._standing = None
        self._space, self._clock = space, space.clock

    def _pop(self, frontier: Frontier[Nodes]) -> Queued[Nodes]:
        batch = frontier.pop(self._space.batch_size)
        return take(batch, self._worth(batch))

    def _worth(self, queued: Queued[Nodes]) -> np.ndarray:
        return self._incumbent.may_improve(queued.upper, self._space.shortest(queued.nodes))

    def _absorb(
        self, turn: Expansion[Nodes], frontier: Frontier[Nodes], pruned_below: float
    ) -> _Standing[Nodes]:
        """End a turn: from here on, the search stands where it has led."""
        for candidate in turn.candidates:
            self._check(candidate)
            self._incumbent.offer(candidate)
        self._incumbent.raise_min_iou(turn.lower)
        with self._clock.phase("heap"):
            if turn.children is not None:
                children = take(turn.children, self._worth(turn.children))
                frontier.push(children, self._space.shortest(children.nodes))
            # A space may have raised MinIoU by itself during the turn.
            if self._limits.frontier_reduction and self._incumbent.min_iou > pruned_below:
                pruned_below = self._incumbent.min_iou
                frontier.prune(pruned_below)
        counters = replace(self._space.counters)
        standing = _Standing(frontier, counters, len(self._done), pruned_below)
        self._standing = standing
        self._within_turn = False
        return standing

    def _check(self, candidate: Candidate) -> None:
        if candidate.score.value > self._proved:
            raise InadmissibleBoundError(
                f"{candidate.formula} has IoU {candidate.score.value}, above {self._proved}, which "
                "was to hold for all formulas. The bounds in use are not admissible; look for the "
                "cause with optexp_jax.testing.check_admissible."
            )

    def _should_stop(self, frontier: Frontier[Nodes]) -> bool:
        self._proved = min(self._proved, max(frontier.upper, self._incumbent.iou))
        progress = Progress(self._incumbent.best, self._proved, len(frontier), self._clock.elapsed)
        if self._limits.callback is not None:
            self._limits.callback(progress)
        if self._clock.expired:
            self._stopped_by = StoppedBy.TIME_LIMIT
        elif self._limits.gap > 0 and progress.gap <= self._limits.gap:
            self._stopped_by = StoppedBy.GAP
        elif len(frontier) > self._limits.max_nodes:
            self._stopped_by = StoppedBy.MAX_NODES
        return self._stopped_by is not None

    def _explanation(self, proved: bool) -> Explanation:
        best, *others = self._incumbent.leaders or (None,)
        counters = self._space.counters
        return Explanation(
            formula=None if best is None else best.candidate.formula,
            intersection=0 if best is None else best.candidate.score.intersection,
            union=self._neuron_size if best is None else best.candidate.score.union,
            upper_bound=self._incumbent.iou if proved else self._proved,
            status=Status.OPTIMAL if proved else Status.FEASIBLE,
            equivalents=() if best is None else best.equivalents,
            runners_up=tuple(map(_runner_up, others)),
            by_length=self._by_length(proved),
            any_shape=self._space.any_shape,
            within_truncated=self._incumbent.within_truncated,
            state=None if proved else self,
            stats=SearchStats(
                visited=counters.visited,
                expanded=counters.expanded,
                estimated=counters.estimated,
                updated=counters.updated,
                speculative=self._speculative(),
                compilations=self._compilations,
                bounds=self._space.family,
                way=self._space.way,
                kernels=used_kernels().value,
                bounds_on=self._place.platform,
                float64_fault=self._place.fault,
                stopped_by=None if proved else self._stopped_by,
                seconds=self._clock.seconds(),
            ),
        )

    def _by_length(self, proved: bool) -> tuple[LengthOptimum, ...]:
        """Of shorter formulas, and of all of them once that is proved."""
        best, shorter = self._incumbent.best, self._space.by_length
        if best is None or not proved or not shorter:
            return shorter
        score, length = best.score, shorter[-1].length + 1
        whole = LengthOptimum(length, best.formula, score.intersection, score.union)
        return (*shorter, whole)

    def _speculative(self) -> Speculative:
        """What was done for nodes whose bound turned out to be below the best formula."""
        in_vain = np.zeros(3, np.int64)
        for done in self._done:
            in_vain += done.work[:, done.upper < self._incumbent.iou].sum(1)
        return Speculative(*in_vain.tolist())


def _runner_up(leader: PoolEntry) -> RunnerUp:
    score = leader.candidate.score
    return RunnerUp(leader.candidate.formula, score.intersection, score.union, leader.equivalents)
