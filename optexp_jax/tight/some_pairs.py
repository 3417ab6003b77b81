"""The few pairs, out of all, that a bound leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float64, Int, Int32

from optexp_jax.search.clock import Clock
from optexp_jax.shapes import fill_up
from optexp_jax.tight.labels import Labels
from optexp_jax.tight.region import ROWS_AT_ONCE

PAIR_CHUNK = 128
"""Pairs that are bounded again at once, with their overlaps with every concept.

With more of them the arrays no longer fit a core's cache.
"""

FEW_CONCEPTS = ROWS_AT_ONCE
"""The pairs of so few concepts are as soon fetched as the highest of each row."""

OfRows = Callable[[Int32[np.ndarray, " rows"]], Float64[Array | np.ndarray, "rows forms concepts"]]
"""Values of all pairs of some concepts with every concept."""


@dataclass(eq=False)
class SomePairs:
    """Some pairs a∘b, with a value each: an upper bound on W of what is made of them, or an IoU."""

    form: Int32[np.ndarray, " pairs"]
    a: Int32[np.ndarray, " pairs"]
    b: Int32[np.ndarray, " pairs"]
    value: Float64[np.ndarray, " pairs"]

    def __len__(self) -> int:
        return len(self.form)

    @property
    def labels(self) -> Labels:
        return Labels.pairs(self.form, self.a, self.b)

    @classmethod
    def at_least(cls, rows: Int[np.ndarray, " rows"], of_rows: OfRows, need: float) -> "SomePairs":
        """All pairs of some first concepts whose value is not below `need`."""
        parts: list[SomePairs] = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            chunk = rows[start : start + ROWS_AT_ONCE].astype(np.int32)
            values = np.asarray(of_rows(fill_up(chunk, ROWS_AT_ONCE)))[: len(chunk)]
            # One dimension: numpy finds what is not zero in others several times slower.
            at = np.flatnonzero((values >= need).reshape(-1))
            row, form, b = (part.astype(np.int32) for part in np.unravel_index(at, values.shape))
            parts.append(cls(form, chunk[row], b, values.reshape(-1)[at]))
        return parts[0] if len(parts) == 1 else cls._concatenate(parts)

    @classmethod
    def _concatenate(cls, parts: Sequence["SomePairs"]) -> "SomePairs":
        none = np.empty(0, np.int32)
        every = [cls(none, none, none, np.empty(0)), *parts]
        return cls(
            np.concatenate([part.form for part in every]),
            np.concatenate([part.a for part in every]),
            np.concatenate([part.b for part in every]),
            np.concatenate([part.value for part in every]),
        )

    def lower_to(self, bound: Callable[..., Float64[Array, " chunk"]], clock: Clock) -> None:
        """Take another bound where it is lower; it is made in chunks of one shape."""
        columns = self.form, self.a, self.b
        for start in range(0, len(self), PAIR_CHUNK):
            if clock.expired:
                return
            rows = np.minimum(np.arange(start, start + PAIR_CHUNK), len(self) - 1)
            values = np.asarray(bound(*(part[rows] for part in columns)))
            here = slice(start, start + PAIR_CHUNK)
            self.value[here] = np.minimum(self.value[here], values[: len(self) - start])

    def take(self, rows: np.ndarray) -> "SomePairs":
        """Some of the pairs."""
        return SomePairs(self.form[rows], self.a[rows], self.b[rows], self.value[rows])
