"""The frontier: nodes that wait, best upper bound first.

Children arrive in batches of thousands and most are never looked at again, so a batch is kept as
one sorted *run* of arrays; the heap on the host holds one entry a run, keyed by the run's best
remaining node. No Python object is made for a node before it is popped.
"""

import copy
import heapq
from collections.abc import Sequence
from typing import Generic, TypeVar

import jax
import numpy as np
from jaxtyping import Float64, Int64

from optexp_jax.internal.pytrees import pytree

Nodes = TypeVar("Nodes")
"""A batch of nodes: a pytree of host arrays that share their first axis."""

Tree = TypeVar("Tree")


@pytree
class Queued(Generic[Nodes]):
    """Nodes with their upper bounds; among equals, the one of lower `priority` goes first."""

    nodes: Nodes
    upper: Float64[np.ndarray, " nodes"]
    priority: Int64[np.ndarray, " nodes"]

    def __len__(self) -> int:
        return len(self.upper)


class _Run(Generic[Nodes]):
    """What is left of one sorted batch. It does not change: `after` makes another one."""

    def __init__(self, queued: Queued[Nodes], age: int, position: int = 0):
        self.queued = queued
        self.age = age
        self.position = position
        # Ascending, as `np.searchsorted` wants them.
        self._order = -queued.upper
        for part in jax.tree.leaves(queued):
            part.flags.writeable = False  # What is popped is a view, and may have to be put back.

    def __len__(self) -> int:
        return len(self._order) - self.position

    @property
    def key(self) -> tuple[float, int, int]:
        """The best node that is left comes before those of greater keys; then older runs do."""
        at = self.position
        return float(self._order[at]), int(self.queued.priority[at]), self.age

    def before(self, other: "tuple[tuple[float, int, int], _Run[Nodes]] | None") -> int:
        """How many nodes, one at least, come before the best of another run, if there is one."""
        if other is None:
            return len(self)
        # Those of a higher bound do for sure; equals are looked at one by one.
        higher = int(np.searchsorted(self._order, other[0][0])) - self.position
        return max(higher, 1)

    def after(self, taken: int) -> "_Run[Nodes]":
        """The run without so many of its best nodes."""
        rest = copy.copy(self)
        rest.position += taken
        return rest

    def from_threshold(self, threshold: float) -> "_Run[Nodes]":
        """The run without nodes whose bound is below the threshold."""
        end = int(np.searchsorted(self._order, -threshold, side="right"))
        if end == len(self._order):
            return self
        rest = take(self.queued, slice(self.position, max(end, self.position)))
        # A copy lets go of the nodes that were dropped.
        return _Run(jax.tree.map(np.copy, rest), self.age)


class Frontier(Generic[Nodes]):
    """A priority queue of nodes by upper bound."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[float, int, int], _Run[Nodes]]] = []
        self._size = 0
        self._pushed = 0

    def __len__(self) -> int:
        return self._size

    @property
    def upper(self) -> float:
        """The highest bound that waits; minus infinity when nothing does."""
        return -self._heap[0][0][0] if self._heap else -np.inf

    def copy(self) -> "Frontier[Nodes]":
        """A frontier that changes by itself. The nodes are not copied."""
        other: Frontier[Nodes] = Frontier()
        other._heap, other._size, other._pushed = self._heap.copy(), self._size, self._pushed
        return other

    def push(self, queued: Queued[Nodes]) -> None:
        """Add a batch of nodes."""
        if not len(queued):
            return
        run = _Run(_sort(queued), self._pushed)
        heapq.heappush(self._heap, (run.key, run))
        self._pushed += 1
        self._size += len(run)

    def pop(self, most: int) -> Queued[Nodes]:
        """Remove up to `most` of the best nodes, best first; the frontier must not be empty."""
        # What is taken from one run stands together in it.
        taken: dict[int, slice] = {}
        source: dict[int, Queued[Nodes]] = {}
        n_popped = 0
        while self._heap and n_popped < most:
            run = self._heap[0][1]
            n = min(most - n_popped, run.before(min(self._heap[1:3], default=None)))
            start = taken[run.age].start if run.age in taken else run.position
            taken[run.age] = slice(start, run.position + n)
            source[run.age] = run.queued
            n_popped += n
            rest = run.after(n)
            if len(rest):
                heapq.heapreplace(self._heap, (rest.key, rest))
            else:
                heapq.heappop(self._heap)
        self._size -= n_popped
        parts = [take(source[age], rows) for age, rows in taken.items()]
        return parts[0] if len(parts) == 1 else _sort(concatenate(parts))

    def prune(self, threshold: float) -> int:
        """Drop all nodes whose bound is below the threshold; how many there were."""
        before = self._size
        runs = [run.from_threshold(threshold) for _, run in self._heap]
        self._heap = [(run.key, run) for run in runs if len(run)]
        heapq.heapify(self._heap)
        self._size = sum(len(run) for run in runs)
        return before - self._size


def _sort(queued: Queued[Nodes]) -> Queued[Nodes]:
    """The nodes in the order in which they are to be taken; equals stay as they stand."""
    return take(queued, np.lexsort((queued.priority, -queued.upper)))


def take(nodes: Tree, rows: np.ndarray | slice) -> Tree:
    """Some of the nodes."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
        return nodes
    return jax.tree.map(lambda part: part[rows], nodes)


def concatenate(parts: Sequence[Tree]) -> Tree:
    """Batches of nodes one after another."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
