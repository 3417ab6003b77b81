"""The few pairs, out of all of some places, that a bound leaves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.bounds.tight.labels import Labels
from optexp_jax.bounds.tight.pairs_on_device import (
    PairBlock,
    PairBound,
    lower_block,
    pair_blocks,
)
from optexp_jax.bounds.tight.survivors import survivors
from optexp_jax.bounds.tight.tuning import FEWEST_ROWS, PAIR_CHUNK, ROW_CELLS
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.clock import Clock

OfRows = Callable[
    [Int32[np.ndarray, " rows"], Int32[np.ndarray, " rows"]],
    Float64[Array | np.ndarray, "rows forms concepts"],
]
"""Values of all pairs of some places' concepts with every concept there."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """First concepts of pairs, filled up with others that need what nothing reaches."""

    place: Int32[np.ndarray, " rows"]
    a: Int32[np.ndarray, " rows"]
    need: Float64[np.ndarray, " rows"]


def _rows_of(
    kept: Bool[np.ndarray, "places concepts"], need: Float64[np.ndarray, " places"]
) -> Iterator[_Rows]:
    """Concepts of places, as many at once as stay in a cache."""
    places, concepts = (part.astype(np.int32) for part in np.nonzero(kept))
    size = min(kept.size, max(FEWEST_ROWS, ROW_CELLS // kept.shape[1]))
    for start in range(0, len(concepts), size):
        place, a = (part[start : start + size] for part in (places, concepts))
        needed = np.full(size, np.inf)
        needed[: len(a)] = need[place]
        yield _Rows(fill_up(place, size), fill_up(a, size), needed)


@dataclass(eq=False)
class SomePairs:
    """Some pairs a∘b, with a value each: an upper bound on W of what is made of them, or an IoU."""

    place: Int32[np.ndarray, " pairs"]
    """The number of its place among some places."""
    form: Int32[np.ndarray, " pairs"]
    a: Int32[np.ndarray, " pairs"]
    b: Int32[np.ndarray, " pairs"]
    value: Float64[np.ndarray, " pairs"]

    def __len__(self) -> int:
        return len(self.form)

    def labels(self, ids: Int32[np.ndarray, " concepts"]) -> Labels:
        """The pairs as labels, for concepts with these numbers in the table."""
        return Labels.pairs(self.form, ids[self.a], ids[self.b])

    @classmethod
    def at_least(
        cls,
        kept: Bool[np.ndarray, "places concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " places"],
        on_host: bool,
    ) -> "SomePairs":
        """All pairs of some first concepts whose value is not below what their place needs."""
        parts: list[SomePairs] = []
        for rows in _rows_of(kept, need):
            found = survivors(run(of_rows, rows.place, rows.a), rows.need, on_host)
            row, form, b = found.at
            parts.append(cls(rows.place[row], form, rows.a[row], b, found.value))
        return parts[0] if len(parts) == 1 else cls._concatenate(parts)

    @classmethod
    def at_least_by_both(
        cls,
        kept: Bool[np.ndarray, "places concepts"],
        of_rows: OfRows,
        need: Float64[np.ndarray, " places"],
        bound: PairBound,
        clock: Clock,
        *,
        on_host: bool,
        few: int = -1,
    ) -> "SomePairs":
        """The same where another bound, which is made pair by pair, is not below it either.

        So many pairs as `few` are not bounded again; nor are others when the time is over.
        """
        if on_host:
            pairs = cls.at_least(kept, of_rows, need, on_host)
            if len(pairs) <= few:
                return pairs
            pairs._lower_to(bound, clock)
            return pairs.take(pairs.value >= need[pairs.place])
        (needed,) = put(need)
        waiting: list[tuple[_Rows, tuple[int, ...], PairBlock]] = []
        for rows in _rows_of(kept, need):
            values = run(of_rows, rows.place, rows.a)
            assert isinstance(values, jax.Array), "what is known on the host is bounded there"
            for block in pair_blocks(values, rows.need, rows.place, rows.a, needed):
                waiting.append((rows, values.shape, block))
        lowers = sum(block.count for _, _, block in waiting) > few
        parts: list[SomePairs] = []
        for rows, shape, block in waiting:
            left = lower_block(block, bound if lowers else None, clock)
            row, form, b = (part.astype(np.int32) for part in np.unravel_index(left.at, shape))
            parts.append(cls(rows.place[row], form, rows.a[row], b, left.value))
        return cls._concatenate(parts)

    @classmethod
    def _concatenate(cls, parts: Sequence["SomePairs"]) -> "SomePairs":
        none = np.empty(0, np.int32)
        every = [cls(none, none, none, none, np.empty(0)), *parts]
        names = ("place", "form", "a", "b", "value")
        return cls(*(np.concatenate([getattr(part, name) for part in every]) for name in names))

    def _lower_to(self, bound: PairBound, clock: Clock) -> None:
        """Take another bound where it is lower; it is made in chunks of one shape."""
        columns = self.place, self.form, self.a, self.b
        for start in range(0, len(self), PAIR_CHUNK):
            if clock.expired:
                return
            rows = np.minimum(np.arange(start, start + PAIR_CHUNK), len(self) - 1)
            values = fetch(run(bound, *(part[rows] for part in columns)))
            here = slice(start, start + PAIR_CHUNK)
            self.value[here] = np.minimum(self.value[here], values[: len(self) - start])

    def take(self, rows: np.ndarray) -> "SomePairs":
        """Some of the pairs."""
        columns = self.place, self.form, self.a, self.b, self.value
        return SomePairs(*(part[rows] for part in columns))
