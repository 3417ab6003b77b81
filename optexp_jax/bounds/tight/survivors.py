"""What of an array of bounds reaches what is needed.

Few do. On the host they are looked for where the array is. From a device they are fetched alone:
the array stays there, and a few thousand bytes come back however large it is.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.tuning import COUNTED_TOGETHER, FEW_SURVIVORS, SURVIVORS_AT_ONCE
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, fetch_all, run


@dataclass(frozen=True, eq=False)
class Survivors:
    """Where the values stand that reach what is needed, in the order of the array."""

    at: tuple[Int32[np.ndarray, " kept"], ...]
    """Their position along each axis."""
    value: Float64[np.ndarray, " kept"]


def survivors(
    values: Float64[Array | np.ndarray, "rows *rest"],
    need: Float64[np.ndarray, " rows"],
    on_host: bool,
) -> Survivors:
    """The values that are not below what their row needs."""
    if on_host or isinstance(values, np.ndarray):
        found = fetch(values)
        reached = found >= need.reshape(-1, *[1] * (found.ndim - 1))
        # One dimension: numpy finds what is not zero in others several times slower.
        flat = np.flatnonzero(reached.reshape(-1))
        return Survivors(_positions(flat, found.shape), found.reshape(-1)[flat])
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    count, start = 1, 0
    while start < count:
        some, rest = run(_survivors_from, values, need, np.int32(start))
        fetched, flat, value = fetch_all(some.count, some.at, some.value)
        count = int(fetched)
        parts.append((flat[: count - start], value[: count - start]))
        if count - start > len(flat):
            flat, value = fetch_all(rest.at, rest.value)
            left = count - start - len(parts[-1][0])
            parts.append((flat[:left], value[:left]))
        start += SURVIVORS_AT_ONCE
    flat = np.concatenate([part[0] for part in parts])
    return Survivors(_positions(flat, values.shape), np.concatenate([part[1] for part in parts]))


def _positions(flat: np.ndarray, shape: tuple[int, ...]) -> tuple[Int32[np.ndarray, " kept"], ...]:
    return tuple(part.astype(np.int32) for part in np.unravel_index(flat, shape))


@pytree
class Some:
    """Some of the survivors, and how many there are in all."""

    count: Int32[Array, ""]
    at: Int32[Array, " some"]
    value: Float64[Array, " some"]


@jax.jit
def _survivors_from(
    values: Float64[Array, "rows *rest"], need: Float64[Array, " rows"], start: Int32[Array, ""]
) -> tuple[Some, Some]:
    """The survivors from the `start`-th on, the first few by themselves."""
    note_trace("survivors")
    some = survivors_from(values, need, start)
    parts = (slice(0, FEW_SURVIVORS), slice(FEW_SURVIVORS, SURVIVORS_AT_ONCE))
    few, rest = (Some(some.count, some.at[part], some.value[part]) for part in parts)
    return few, rest


def survivors_from(
    values: Float64[Array, "rows *rest"], need: Float64[Array, " rows"], start: Int32[Array, ""]
) -> Some:
    """The survivors from the `start`-th on; what comes after the last has no meaning."""
    reached = values >= need.reshape(-1, *[1] * (values.ndim - 1))
    flat, n = values.reshape(-1), values.size
    groups = jnp.pad(reached.reshape(-1), (0, -n % COUNTED_TOGETHER)).reshape(-1, COUNTED_TOGETHER)
    count = groups.sum(1, dtype=jnp.int32)
    until = jnp.cumsum(count, dtype=jnp.int32)
    rank = jnp.arange(SURVIVORS_AT_ONCE, dtype=jnp.int32) + start
    group = jnp.searchsorted(until, rank, side="right").astype(jnp.int32)
    group = jnp.minimum(group, len(count) - 1)
    within = jnp.cumsum(groups[group], axis=1, dtype=jnp.int32)
    before = rank - (until[group] - count[group])
    lane = jnp.argmax(within > before[:, None], axis=1).astype(jnp.int32)
    at = jnp.minimum(group * COUNTED_TOGETHER + lane, n - 1)
    return Some(until[-1], at, flat[at])


def highest(
    values: Float64[Array | np.ndarray, "rows *rest"], n_rows: int, k: int, on_host: bool
) -> Survivors:
    """The k highest values of the first rows as far as they are positive; of equals the first."""
    if on_host or isinstance(values, np.ndarray):
        found = fetch(values)[:n_rows]
        flat = found.reshape(-1)
        # All that reach the k-th highest, and then the first k of them in order.
        least = np.partition(flat, -k)[-k] if k < len(flat) else -np.inf
        some = np.flatnonzero(flat >= max(float(least), np.finfo(float).tiny))
        some = some[np.argsort(-flat[some], kind="stable")[:k]]
        return Survivors(_positions(some, found.shape), flat[some])
    at, value = fetch_all(*run(_highest, values, np.int32(n_rows), k=min(k, values.size)))
    kept = value > 0
    return Survivors(_positions(at[kept], values.shape), value[kept])


@partial(jax.jit, static_argnames="k")
def _highest(
    values: Float64[Array, "rows *rest"],
    n_rows: Int32[Array, ""],
    *,
    k: int,
) -> tuple[Int64[Array, " k"], Float64[Array, " k"]]:
    note_trace("highest")
    rows = jnp.arange(values.shape[0], dtype=jnp.int32)
    real = (rows < n_rows).reshape(-1, *[1] * (values.ndim - 1))
    value, at = jax.lax.top_k(jnp.where(real, values, -1.0).reshape(-1), k)
    return at.astype(jnp.int64), value
