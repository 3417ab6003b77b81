"""The few pairs, out of all of some places, that a bound leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.search.clock import Clock
from optexp_jax.shapes import fill_up
from optexp_jax.tight.labels import Labels
from optexp_jax.tight.survivors import survivors
from optexp_jax.transfers import fetch, run

PAIR_CHUNK = 128
"""Pairs that are bounded again at once, with their overlaps with every concept.

With more of them the arrays no longer fit a core's cache.
"""

FEWEST_ROWS, CELLS = 32, 2**15
"""Rows of so many cells, or so many rows, are fetched at once. More would not stay in a cache."""

OfRows = Callable[
    [Int32[np.ndarray, " rows"], Int32[np.ndarray, " rows"]],
    Float64[Array | np.ndarray, "rows forms concepts"],
]
"""Values of all pairs of some places' concepts with every concept there."""


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
        places, concepts = (part.astype(np.int32) for part in np.nonzero(kept))
        size = min(kept.size, max(FEWEST_ROWS, CELLS // kept.shape[1]))
        parts: list[SomePairs] = []
        for start in range(0, len(concepts), size):
            place, a = (part[start : start + size] for part in (places, concepts))
            values = run(of_rows, fill_up(place, size), fill_up(a, size))
            needed = np.full(size, np.inf)
            needed[: len(a)] = need[place]
            found = survivors(values, needed, on_host)
            row, form, b = found.at
            parts.append(cls(place[row], form, a[row], b, found.value))
        return parts[0] if len(parts) == 1 else cls._concatenate(parts)

    @classmethod
    def _concatenate(cls, parts: Sequence["SomePairs"]) -> "SomePairs":
        none = np.empty(0, np.int32)
        every = [cls(none, none, none, none, np.empty(0)), *parts]
        names = ("place", "form", "a", "b", "value")
        return cls(*(np.concatenate([getattr(part, name) for part in every]) for name in names))

    def lower_to(self, bound: Callable[..., Float64[Array, " chunk"]], clock: Clock) -> None:
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
