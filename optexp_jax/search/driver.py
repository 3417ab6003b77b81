"""The best-first driver: one loop for every family of bounds."""

import abc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.explanation import Explanation, RunnerUp, SearchStats, Status
from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.search.clock import Clock
from optexp_jax.search.frontier import Frontier, Nodes, Queued, take
from optexp_jax.search.incumbent import Candidate, Incumbent, Leader
from optexp_jax.tracing import count_traces


class InadmissibleBoundError(RuntimeError):
    """A formula turned out better than a bound that claimed to hold for it."""


@dataclass(frozen=True, eq=False)
class Turn(Generic[Nodes]):
    """What comes of expanding a batch of nodes."""

    children: Queued[Nodes] | None = None
    """Nodes to queue: children, or the expanded nodes themselves with better bounds."""
    candidates: list[Candidate] = field(default_factory=list)
    """Formulas whose exact score was computed."""
    lower: float = 0.0
    """A lower bound on the highest IoU of all formulas."""


@dataclass
class Counters:
    """The paper's counters, which a search space keeps."""

    visited: int = 0
    expanded: int = 0
    estimated: int = 0
    updated: int = 0


class AbstractSpace(abc.ABC, Generic[Nodes]):
    """One search: what its nodes are, how they branch and how they are bounded.

    A node stands for a set of formulas. Expanding nodes must account for all of them: each is a
    candidate of the turn, or in one of its children, or provably no better than a shorter
    formula.
    """

    family: str = "custom"
    """The name of the family of bounds, for the record."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.counters = Counters()
        self.clock = Clock()

    @abc.abstractmethod
    def root(self, incumbent: Incumbent) -> Turn[Nodes]:
        """The first nodes, which together stand for all formulas."""

    @abc.abstractmethod
    def expand(self, batch: Queued[Nodes], incumbent: Incumbent) -> Turn[Nodes]:
        """Expand a batch of the most promising nodes."""

    @abc.abstractmethod
    def shortest(self, nodes: Nodes) -> Int64[np.ndarray, " nodes"]:
        """The length of the shortest formula that each node stands for."""

    @abc.abstractmethod
    def stands_for(
        self, nodes: Nodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        """Which chains, exactly as they are written, each node's upper bound must hold for.

        The search does not ask this; `optexp_jax.testing.check_admissible` does.
        """


@dataclass(frozen=True)
class Progress:
    """Where a search stands, for callbacks."""

    incumbent: Candidate | None
    upper_bound: float
    """No formula has a higher IoU than this."""
    nodes: int
    """Nodes that wait in the frontier."""
    seconds: float

    @property
    def gap(self) -> float:
        iou = 0.0 if self.incumbent is None else self.incumbent.score.iou
        return self.upper_bound / iou - 1 if iou else np.inf


@dataclass(frozen=True)
class Limits:
    """When to stop before the proof is complete, and whom to tell."""

    gap: float = 0.0
    time_limit: float | None = None
    callback: Callable[[Progress], None] | None = None
    frontier_reduction: bool = True
    """Drop queued nodes as soon as MinIoU passes them; else when they come up."""
    max_nodes: int = 10_000_000
    """Nodes that may wait in the frontier before the search gives up its proof."""


def best_first(
    space: AbstractSpace[Nodes],
    neuron_size: int,
    limits: Limits,
    incumbent: Incumbent | None = None,
) -> Explanation:
    """Search until nothing that waits can beat the best formula found, or a limit is reached."""
    return Search(space, neuron_size, incumbent).run(limits)


class Search(Generic[Nodes]):
    """A search that can be stopped and go on."""

    def __init__(
        self, space: AbstractSpace[Nodes], neuron_size: int, incumbent: Incumbent | None = None
    ):
        self._space = space
        self._neuron_size = neuron_size
        self._limits = Limits()
        self._clock = space.clock
        self._clock.pause()
        self._stopped_by: str | None = None
        self._incumbent = Incumbent() if incumbent is None else incumbent
        self._frontier: Frontier[Nodes] | None = None
        self._proved = 1.0
        """The lowest upper bound so far. It held for all formulas then, so it still does."""
        self._pruned_below = 0.0
        self._popped: list[np.ndarray] = []
        self._compilations = 0

    def run(self, limits: Limits) -> Explanation:
        """Begin, or go on, until the proof is complete or one of these limits is reached."""
        self._limits = limits
        self._stopped_by = None
        self._clock.go_on(limits.time_limit)
        traces = count_traces()
        if self._frontier is None:
            self._frontier = Frontier()
            self._absorb(self._space.root(self._incumbent), self._frontier)
        while len(self._frontier) and not self._should_stop(self._frontier):
            with self._clock.phase("heap"):
                batch = self._pop(self._frontier)
            if len(batch):
                self._popped.append(batch.upper)
                self._absorb(self._space.expand(batch, self._incumbent), self._frontier)
        self._clock.pause()
        self._compilations += count_traces() - traces
        return self._explanation(proved=not len(self._frontier))

    def _pop(self, frontier: Frontier[Nodes]) -> Queued[Nodes]:
        batch = frontier.pop(self._space.batch_size)
        return take(batch, self._worth(batch))

    def _worth(self, queued: Queued[Nodes]) -> np.ndarray:
        return self._incumbent.may_improve(queued.upper, self._space.shortest(queued.nodes))

    def _absorb(self, turn: Turn[Nodes], frontier: Frontier[Nodes]) -> None:
        for candidate in turn.candidates:
            self._check(candidate)
            self._incumbent.offer(candidate)
        self._incumbent.raise_min_iou(turn.lower)
        with self._clock.phase("heap"):
            if turn.children is not None:
                frontier.push(take(turn.children, self._worth(turn.children)))
            # A space may have raised MinIoU by itself during the turn.
            if self._limits.frontier_reduction and self._incumbent.min_iou > self._pruned_below:
                self._pruned_below = self._incumbent.min_iou
                frontier.prune(self._pruned_below)

    def _check(self, candidate: Candidate) -> None:
        if candidate.score.iou > self._proved:
            raise InadmissibleBoundError(
                f"{candidate.formula} has IoU {candidate.score.iou}, above {self._proved}, which "
                "was to hold for all formulas. The bounds in use are not admissible; look for the "
                "cause with optexp_jax.testing.check_admissible."
            )

    def _should_stop(self, frontier: Frontier[Nodes]) -> bool:
        self._proved = min(self._proved, max(frontier.upper, self._incumbent.iou))
        progress = Progress(self._incumbent.best, self._proved, len(frontier), self._clock.elapsed)
        if self._limits.callback is not None:
            self._limits.callback(progress)
        if self._clock.expired:
            self._stopped_by = "time limit"
        elif self._limits.gap > 0 and progress.gap <= self._limits.gap:
            self._stopped_by = "gap"
        elif len(frontier) > self._limits.max_nodes:
            self._stopped_by = "frontier full"
        return self._stopped_by is not None

    def _explanation(self, proved: bool) -> Explanation:
        best, *others = self._incumbent.leaders or [None]
        popped = np.concatenate([np.empty(0), *self._popped])
        counters = self._space.counters
        return Explanation(
            formula=None if best is None else best.candidate.formula,
            intersection=0 if best is None else best.candidate.score.intersection,
            union=self._neuron_size if best is None else best.candidate.score.union,
            upper_bound=self._incumbent.iou if proved else self._proved,
            status=Status.OPTIMAL if proved else Status.FEASIBLE,
            equivalents=() if best is None else tuple(best.equivalents),
            runners_up=tuple(_runner_up(leader) for leader in others if leader is not None),
            limit_hit=self._incumbent.limit_hit,
            state=None if proved else self,
            stats=SearchStats(
                visited=counters.visited,
                expanded=counters.expanded,
                estimated=counters.estimated,
                updated=counters.updated,
                speculative=int((popped < self._incumbent.iou).sum()),
                compilations=self._compilations,
                bounds=self._space.family,
                stopped_by=None if proved else self._stopped_by,
                seconds=self._clock.seconds(),
            ),
        )


def _runner_up(leader: Leader) -> RunnerUp:
    score = leader.candidate.score
    return RunnerUp(
        leader.candidate.formula, score.intersection, score.union, tuple(leader.equivalents)
    )
