"""Subproblems that are looked at together, and the few of their pairs that a bound leaves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.bounds.tight.counts.gram import stack_grams
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.subproblem import Ranking, Subproblem
from optexp_jax.bounds.tight.search.survivors import (
    PairBlock,
    PairBound,
    lower_block,
    pair_blocks,
    survivors,
)
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.fused_root import FusedRoot
from optexp_jax.bounds.tight.theory.one_step import pair_bounds
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima, row_maxima
from optexp_jax.bounds.tight.tuning import (
    FEWEST_ROWS,
    PAIR_CHUNK,
    ROW_CELLS,
    STACKED_CELLS,
    STACKED_SUBPROBLEMS,
)
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.clock import Clock

OfRows = Callable[
    [Int32[np.ndarray, " rows"], Int32[np.ndarray, " rows"]],
    Float64[Array | np.ndarray, "rows ops concepts"],
]
"""Values of all pairs of some subproblems' concepts with every concept there."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """First concepts of pairs, filled up with others that need what nothing reaches."""

    sub: Int32[np.ndarray, " rows"]
    a: Int32[np.ndarray, " rows"]
    need: Float64[np.ndarray, " rows"]


def _rows_of(
    kept: Bool[np.ndarray, "subs concepts"], need: Float64[np.ndarray, " subs"]
) -> Iterator[_Rows]:
    """Concepts of subproblems, as many at once as stay in a cache."""
    subs, concepts = (part.astype(np.int32) for part in np.nonzero(kept))
    size = min(kept.size, max(FEWEST_ROWS, ROW_CELLS // kept.shape[1]))
    for start in range(0, len(concepts), size):
        sub, a = (part[start : start + size] for part in (subs, concepts))
        needed = np.full(size, np.inf)
        needed[: len(a)] = need[sub]
        yield _Rows(fill_up(sub, size), fill_up(a, size), needed)


@dataclass(eq=False)
class SurvivingPairs:
    """Some pairs a∘b, with a value each: an upper bound on W of what is made of them, or an IoU."""

    sub: Int32[np.ndarray, " pairs"]
    """The number of its subproblem among some subproblems."""
    op: Int32[np.ndarray, " pairs"]
    a: Int32[np.ndarray, " pairs"]
    b: Int32[np.ndarray, " pairs"]
    value: Float64[np.ndarray, " pairs"]

    def __len__(self) -> int:
        return len(self.op)

    def labels(self, ids: Int32[np.ndarray, " concepts"]) -> Labels:
        """The pairs as labels, for concepts with these numbers in the table."""
        return Labels.pairs(self.op, ids[self.a], ids[self.b])

    @classmethod
    def at_least(
        cls,
        kept: Bool[np.ndarray, "subs concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " subs"],
        on_host: bool,
    ) -> "SurvivingPairs":
        """All pairs of some first concepts whose value is not below what their subproblem needs."""
        parts: list[SurvivingPairs] = []
        for rows in _rows_of(kept, need):
            found = survivors(run(of_rows, rows.sub, rows.a), rows.need, on_host)
            row, op, b = found.at
            parts.append(cls(rows.sub[row], op, rows.a[row], b, found.value))
        return parts[0] if len(parts) == 1 else cls._concatenate(parts)

    @classmethod
    def at_least_by_both(
        cls,
        kept: Bool[np.ndarray, "subs concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " subs"],
        bound: PairBound,
        clock: Clock,
        *,
        on_host: bool,
        few: int = -1,
    ) -> "SurvivingPairs":
        """The same where another bound, which is made pair by pair, is not below it either.

        So many pairs as `few` are not bounded again; nor are others when the time is over.
        """
        if on_host:
            pairs = cls.at_least(kept, of_rows, need, on_host)
            if len(pairs) <= few:
                return pairs
            pairs._lower_to(bound, clock)
            return pairs.take(pairs.value >= need[pairs.sub])
        (needed,) = put(need)
        waiting: list[tuple[_Rows, tuple[int, ...], PairBlock]] = []
        for rows in _rows_of(kept, need):
            values = run(of_rows, rows.sub, rows.a)
            assert isinstance(values, jax.Array), "what is known on the host is bounded there"
            for block in pair_blocks(values, rows.need, rows.sub, rows.a, needed):
                waiting.append((rows, values.shape, block))
        lowers = sum(block.count for _, _, block in waiting) > few
        parts: list[SurvivingPairs] = []
        for rows, shape, block in waiting:
            left = lower_block(block, bound if lowers else None, clock)
            row, op, b = (part.astype(np.int32) for part in np.unravel_index(left.at, shape))
            parts.append(cls(rows.sub[row], op, rows.a[row], b, left.value))
        return cls._concatenate(parts)

    @classmethod
    def _concatenate(cls, parts: Sequence["SurvivingPairs"]) -> "SurvivingPairs":
        none = np.empty(0, np.int32)
        every = [cls(none, none, none, none, np.empty(0)), *parts]
        names = ("sub", "op", "a", "b", "value")
        return cls(*(np.concatenate([getattr(part, name) for part in every]) for name in names))

    def _lower_to(self, bound: PairBound, clock: Clock) -> None:
        """Take another bound where it is lower; it is made in chunks of one shape."""
        columns = self.sub, self.op, self.a, self.b
        for start in range(0, len(self), PAIR_CHUNK):
            if clock.expired:
                return
            rows = np.minimum(np.arange(start, start + PAIR_CHUNK), len(self) - 1)
            values = fetch(run(bound, *(part[rows] for part in columns)))
            here = slice(start, start + PAIR_CHUNK)
            self.value[here] = np.minimum(self.value[here], values[: len(self) - start])

    def take(self, rows: np.ndarray) -> "SurvivingPairs":
        """Some of the pairs."""
        columns = self.sub, self.op, self.a, self.b, self.value
        return SurvivingPairs(*(part[rows] for part in columns))


@dataclass(frozen=True, eq=False)
class SubproblemBatch:
    """Subproblems of one size, filled up with the first of them to a stack of a fixed size."""

    subs: Sequence[Subproblem]
    v: float
    need: Float64[np.ndarray, " filled"]
    """The W that an inner part needs at each subproblem; infinite for those that fill up."""
    light: Bool[np.ndarray, "filled concepts"]
    """Concepts that are not heavy, as `inputs` has them."""
    rank: Int32[Array | np.ndarray, "filled concepts"]
    inputs: BoundInputs
    maxima: RowMaxima
    pair_bounds: Float64[np.ndarray, "concepts ops concepts"] | None = None
    """Bounds of all pairs of a subproblem by itself, where they are known."""

    @classmethod
    def of(cls, subs: Sequence[Subproblem], v: float, order: Ranking) -> "SubproblemBatch":
        need = np.array([sub.needed(v) for sub in subs])
        n_subs = _filled_size(subs)
        filled = [*subs, *[subs[0]] * (n_subs - len(subs))]
        missing = np.full(n_subs - len(subs), np.inf)
        allowed = np.stack([sub.allowed for sub in filled])
        light = np.stack([sub.concepts.pick(order.light(sub.unused)) for sub in filled])
        with jax.enable_x64(True):
            grams = [sub.gram for sub in filled]
            gram = grams[0] if n_subs == 1 else stack_grams(grams)
            rank = np.stack([sub.concepts.pick(order.rank) for sub in filled])
            *moved, ranks = put(allowed, light, np.full(n_subs, v), rank)
            inputs, needed = BoundInputs(gram, *moved), np.concatenate([need, missing])
            return cls(subs, v, needed, light, ranks, inputs, row_maxima(inputs))

    @classmethod
    def of_fused(cls, sub: Subproblem, fused: FusedRoot, order: Ranking) -> "SubproblemBatch":
        """The subproblem without outer steps, where what is light does not matter."""
        bounds, light = fetch(fused.bounds)[0], np.ones((1, len(order.rank)), bool)
        known = fused.inputs, fused.maxima, bounds
        need = np.array([sub.needed(fused.v)])
        return cls([sub], fused.v, need, light, order.rank[None], *known)

    def bounds_of_rows(self, ops: OperatorSet) -> OfRows:
        """Bounds on what one further concept makes of pairs."""
        known = self.pair_bounds
        if known is not None:
            return lambda _, concepts: known[concepts]
        return partial(pair_bounds, self.inputs, self.maxima, ops=ops)

    def with_concepts_of(self, subs: Sequence[Subproblem]) -> bool:
        """Whether these are as many subproblems, with the same concepts each."""
        return len(subs) == len(self.subs) and all(
            np.array_equal(mine.of_use, other.of_use)
            for mine, other in zip(self.subs, subs, strict=True)
        )

    @property
    def allowed(self) -> Bool[np.ndarray, "filled concepts"]:
        """Concepts of the subproblems; none of those that fill up."""
        return fill_up(np.stack([sub.allowed for sub in self.subs]), len(self.need))

    @property
    def on_host(self) -> bool:
        """Whether the host counts."""
        return self.subs[0].overlaps.on_host

    def fill(self, values: Float64[np.ndarray, " subs"]) -> Float64[np.ndarray, " filled"]:
        """A value for each subproblem, and 0 for those that fill up."""
        return fill_up(values, len(self.need))


class BatchCache:
    """Makes batches, and remembers the last one of each subproblem that was looked at by itself."""

    def __init__(self, order: Ranking):
        self._order = order
        self._alone: WeakKeyDictionary[Subproblem, SubproblemBatch] = WeakKeyDictionary()

    def at(self, subs: Sequence[Subproblem], v: float) -> SubproblemBatch:
        """Subproblems at some v."""
        known = self._alone.get(subs[0]) if len(subs) == 1 else None
        if known is not None and known.v == v:
            return known
        batch = SubproblemBatch.of(subs, v, self._order)
        if len(subs) == 1:
            self._alone[subs[0]] = batch
        return batch


def _filled_size(subs: Sequence[Subproblem]) -> int:
    """Few concepts take one size of stack; only all of them are worth one of a subproblem alone."""
    alone = len(subs) == 1 and subs[0].concepts.is_everything
    return 1 if alone else stack_size(subs[0].concepts.size)


def stack_size(size: int) -> int:
    """How many subproblems of so many concepts are looked at together."""
    return max(1, min(STACKED_SUBPROBLEMS, STACKED_CELLS // size**2))


def together(subs: Sequence[Subproblem]) -> list[list[int]]:
    """Which of some subproblems can be looked at together, by their position."""
    groups: list[list[int]] = []
    for size in sorted({sub.concepts.size for sub in subs}):
        same = [k for k, sub in enumerate(subs) if sub.concepts.size == size]
        step = stack_size(size)
        groups += [same[start : start + step] for start in range(0, len(same), step)]
    return groups
