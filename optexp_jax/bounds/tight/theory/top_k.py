"""The few largest values of each row.

XLA sorts whole rows for `jax.lax.top_k` in float64 on a CPU. A maximum below the last one, k times,
takes a twentieth of the time for the few that are wanted here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int, Int32


class _Last(NamedTuple):
    """The value found last in each row, and how many further entries equal it."""

    value: Float64[Array, " rows"]
    copies: Int32[Array, " rows"]

    @classmethod
    def none(cls, rows: int) -> "_Last":
        return cls(jnp.full(rows, jnp.inf), jnp.zeros(rows, jnp.int32))

    def next(self, values: Float64[Array, "rows n"]) -> "_Last":
        below = jnp.where(values < self.value[:, None], values, -jnp.inf).max(1)
        count = (values == below[:, None]).sum(1, dtype=jnp.int32)
        again = self.copies > 0
        return _Last(jnp.where(again, self.value, below), jnp.where(again, self.copies, count) - 1)


def top_k(values: Float64[Array, "rows n"], k: int) -> Float64[Array, "rows k"]:
    """The k largest values of each row, descending: `jax.lax.top_k`, fast in float64."""

    def step(last: _Last, _: None) -> tuple[_Last, Float64[Array, " rows"]]:
        last = last.next(values)
        return last, last.value

    return jax.lax.scan(step, _Last.none(values.shape[0]), length=k)[1].T


def sum_of_top_k(values: Float64[Array, "rows n"], k: Int32[Array, ""]) -> Float64[Array, " rows"]:
    """The sum of the k largest of each row, or of all that there are; k is not compiled in."""

    def step(
        _: Int[Array, ""] | int, state: tuple[_Last, Float64[Array, " rows"]]
    ) -> tuple[_Last, Float64[Array, " rows"]]:
        last, total = state
        last = last.next(values)
        return last, total + last.value

    rows, n = values.shape
    start = _Last.none(rows), jnp.zeros(rows)
    return jax.lax.fori_loop(jnp.zeros((), k.dtype), jnp.minimum(k, n), step, start)[1]


def sums_of_top_k(values: Float64[Array, "rows n"], longest: int) -> Float64[Array, "counts rows"]:
    """The sums of the k largest of each row, for k = 0, 1, …, `longest`."""
    rows, n = values.shape
    sums = jnp.cumsum(top_k(values, min(longest, n)), axis=1).T
    return jnp.concatenate([jnp.zeros((1, rows)), sums])
