"""The frontier: nodes that wait, in the order of the search; by default best upper bound first.

Children arrive in batches of thousands and most are never looked at again, so a batch is kept as
one sorted *run* of arrays; the heap on the host holds one entry a run, keyed by the run's best
remaining node. No Python object is made for a node before it is popped.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import numpy as np
from jaxtyping import Float64, Int64

from optexp_jax.internal.pytrees import pytree
from optexp_jax.search.order import AbstractOrder, BestFirst

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


@pytree
class _Ordered(Generic[Nodes]):
    """Nodes with their keys, lower ones first."""

    queued: Queued[Nodes]
    keys: Float64[np.ndarray, " nodes"]

    def sorted(self) -> "_Ordered[Nodes]":
        """In the order in which they are to be taken; equals stay as they stand."""
        queued = self.queued
        return take(self, np.lexsort((queued.priority, -queued.upper, self.keys)))


class _Batch(Generic[Nodes]):
    """One sorted batch of nodes, as it was pushed."""

    def __init__(self, ordered: _Ordered[Nodes], age: int):
        self.ordered = ordered
        self.queued = queued = ordered.queued
        self.age = age
        keys = ordered.keys
        self.key = float(keys[0]) if len(keys) and keys[0] == keys[-1] else None
        """The key of all nodes, if they have the same: then they stand by their bounds."""
        # Ascending, as `searchsorted` wants them.
        self.order = -queued.upper
        self.highest = queued.upper
        if self.key is None:  # The highest bound from each node on.
            self.highest = np.maximum.accumulate(queued.upper[::-1])[::-1]
        for part in jax.tree.leaves(queued):
            part.flags.writeable = False  # What is popped is a view, and may have to be put back.


@dataclass(frozen=True, eq=False, slots=True)
class _Run(Generic[Nodes]):
    """What is left of a batch: its nodes from a position on."""

    batch: _Batch[Nodes]
    position: int = 0

    def __len__(self) -> int:
        return len(self.batch.order) - self.position

    @property
    def key(self) -> "Key":
        """The first node that is left comes before those of greater keys; then older runs do."""
        at, batch = self.position, self.batch
        first = float(batch.ordered.keys[at])
        return first, float(batch.order[at]), int(batch.queued.priority[at]), batch.age

    @property
    def upper(self) -> float:
        """The highest bound that is left."""
        return float(self.batch.highest[self.position])

    def before(self, other: "tuple[Key, _Run[Nodes]] | None") -> int:
        """How many nodes, one at least, come before the first of another run, if there is one."""
        if other is None:
            return len(self)
        key, order, *_ = other[0]
        batch, keys = self.batch, self.batch.ordered.keys
        lower, level = 0, len(keys)
        if batch.key != key:
            lower, level = (int(keys.searchsorted(key, side)) for side in ("left", "right"))
        # Those of a higher bound do for sure; equals are looked at one by one.
        higher = lower + int(batch.order[lower:level].searchsorted(order))
        return max(higher - self.position, 1)

    def after(self, taken: int) -> "_Run[Nodes]":
        """The run without so many of its best nodes."""
        return _Run(self.batch, self.position + taken)

    def from_threshold(self, threshold: float) -> "_Run[Nodes]":
        """The run without nodes whose bound is below the threshold."""
        batch, start = self.batch, self.position
        if batch.key is not None:
            end = int(batch.order.searchsorted(-threshold, "right"))
            if end == len(batch.order):
                return self
            rest = take(batch.ordered, slice(start, max(end, start)))
        else:
            left = take(batch.ordered, slice(start, None))
            rest = take(left, np.flatnonzero(left.queued.upper >= threshold))
        # A copy lets go of the nodes that were dropped.
        return _Run(_Batch(jax.tree.map(np.copy, rest), batch.age))


Key = tuple[float, float, int, int]
"""The order's key, the bound with its sign changed, the priority, the age."""


class Frontier(Generic[Nodes]):
    """A priority queue of nodes."""

    def __init__(self, order: AbstractOrder | None = None) -> None:
        self._order = BestFirst() if order is None else order
        self._heap: list[tuple[Key, _Run[Nodes]]] = []
        self._size = 0
        self._pushed = 0

    def __len__(self) -> int:
        return self._size

    @property
    def upper(self) -> float:
        """The highest bound that waits; minus infinity when nothing does."""
        if isinstance(self._order, BestFirst):
            return -self._heap[0][0][1] if self._heap else -np.inf
        return max((run.upper for _, run in self._heap), default=-np.inf)

    def copy(self) -> "Frontier[Nodes]":
        """A frontier that changes by itself. The nodes are not copied."""
        other: Frontier[Nodes] = Frontier(self._order)
        other._heap, other._size, other._pushed = self._heap.copy(), self._size, self._pushed
        return other

    def push(
        self, queued: Queued[Nodes], shortest: Int64[np.ndarray, " nodes"] | None = None
    ) -> None:
        """Add a batch of nodes, with the length of the shortest formula of each."""
        if not len(queued):
            return
        lengths = np.zeros(len(queued), np.int64) if shortest is None else shortest
        keys = np.asarray(self._order.keys(queued.upper, lengths, self._pushed), np.float64)
        if keys.shape != queued.upper.shape or np.isnan(keys).any():
            raise ValueError(
                f"keys of {type(self._order).__name__} must be a number for each of "
                f"{len(queued)} nodes; got {keys!r}."
            )
        run = _Run(_Batch(_Ordered(queued, keys).sorted(), self._pushed))
        heapq.heappush(self._heap, (run.key, run))
        self._pushed += 1
        self._size += len(run)

    def pop(self, most: int) -> Queued[Nodes]:
        """Remove up to `most` of the first nodes, in order; the frontier must not be empty."""
        # What is taken from one run stands together in it.
        taken: dict[int, slice] = {}
        source: dict[int, _Ordered[Nodes]] = {}
        n_popped = 0
        while self._heap and n_popped < most:
            run = self._heap[0][1]
            age, position = run.batch.age, run.position
            n = min(most - n_popped, run.before(min(self._heap[1:3], default=None)))
            start = taken[age].start if age in taken else position
            taken[age], source[age] = slice(start, position + n), run.batch.ordered
            n_popped += n
            rest = run.after(n)
            if len(rest):
                heapq.heapreplace(self._heap, (rest.key, rest))
            else:
                heapq.heappop(self._heap)
        self._size -= n_popped
        parts = [take(source[age], rows) for age, rows in taken.items()]
        return parts[0].queued if len(parts) == 1 else concatenate(parts).sorted().queued

    def prune(self, threshold: float) -> int:
        """Drop all nodes whose bound is below the threshold; how many there were."""
        before = self._size
        runs = [run.from_threshold(threshold) for _, run in self._heap]
        self._heap = [(run.key, run) for run in runs if len(run)]
        heapq.heapify(self._heap)
        self._size = sum(len(run) for run in runs)
        return before - self._size


def take(nodes: Tree, rows: np.ndarray | slice) -> Tree:
    """Some of the nodes."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
        return nodes
    return jax.tree.map(lambda part: part[rows], nodes)


def concatenate(parts: Sequence[Tree]) -> Tree:
    """Batches of nodes one after another."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
