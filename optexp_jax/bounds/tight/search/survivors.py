"""What of an array of bounds reaches what is needed.

Few do. On the host they are looked for where the array is. From a device they are fetched alone:
the array stays there, and a few thousand bytes come back however large it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.tuning import (
    COUNTED_TOGETHER,
    FEW_SURVIVORS,
    PAIR_CHUNK,
    SURVIVORS_AT_ONCE,
)
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, fetch_all, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.frontier import take


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


PairBound = Callable[..., Float64[Array, " chunk"]]
"""Of pairs given by their subproblem, operator, a and b."""


@pytree
class PairColumns:
    """Some pairs; those that fill up the last chunk have no meaning."""

    at: Int32[Array, " pairs"]
    """Where they stand in the array that they survived in."""
    sub: Int32[Array, " pairs"]
    op: Int32[Array, " pairs"]
    a: Int32[Array, " pairs"]
    b: Int32[Array, " pairs"]
    value: Float64[Array, " pairs"]


@dataclass(frozen=True, eq=False)
class PairBlock:
    """The pairs from one on that some rows of an array have left, in chunks."""

    chunks: tuple[PairColumns, ...]
    count: int
    """How many there are."""
    need: Float64[Array, " subs"]


@dataclass(frozen=True, eq=False)
class Kept:
    """What is left of a block."""

    at: Int32[np.ndarray, " pairs"]
    value: Float64[np.ndarray, " pairs"]


def pair_blocks(
    values: Float64[Array, "rows ops concepts"],
    needed: Float64[np.ndarray, " rows"],
    sub: Int32[np.ndarray, " rows"],
    a: Int32[np.ndarray, " rows"],
    need: Float64[Array, " subs"],
) -> list[PairBlock]:
    """The pairs of some rows that are not below what each row needs."""
    blocks: list[PairBlock] = []
    count, start = 1, 0
    while start < count:
        found, chunks = run(_columns, values, needed, sub, a, np.int32(start))
        count = int(fetch(found))
        if count > start:
            blocks.append(PairBlock(chunks, min(count - start, SURVIVORS_AT_ONCE), need))
        start += SURVIVORS_AT_ONCE
    return blocks


@jax.jit
def _columns(
    values: Float64[Array, "rows ops concepts"],
    needed: Float64[Array, " rows"],
    sub: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    start: Int32[Array, ""],
) -> tuple[Int32[Array, ""], tuple[PairColumns, ...]]:
    note_trace("pair_columns")
    some = survivors_from(values, needed, start)
    row, op, b = (part.astype(jnp.int32) for part in jnp.unravel_index(some.at, values.shape))
    columns = PairColumns(some.at, sub[row], op, a[row], b, some.value)
    parts = [slice(k, k + PAIR_CHUNK) for k in range(0, SURVIVORS_AT_ONCE, PAIR_CHUNK)]
    return some.count, tuple(take(columns, part) for part in parts)


def lower_block(block: PairBlock, bound: PairBound | None, clock: Clock) -> Kept:
    """What another bound leaves of a block, if one is given and there is time for it."""
    uppers: list[Array] = []
    for k, chunk in enumerate(block.chunks):
        if bound is not None and k * PAIR_CHUNK < block.count and not clock.expired:
            uppers.append(bound(chunk.sub, chunk.op, chunk.a, chunk.b))
        else:
            uppers.extend(put(np.full(PAIR_CHUNK, np.inf)))
    few, rest = run(_keep, block.chunks, uppers, np.int32(block.count), block.need)
    count, at, value = fetch_all(*few)
    kept = Kept(at[:count], value[:count])
    if count <= FEW_SURVIVORS:
        return kept
    at, value = fetch_all(*rest)
    left = int(count) - FEW_SURVIVORS
    return Kept(np.concatenate([kept.at, at[:left]]), np.concatenate([kept.value, value[:left]]))


@jax.jit
def _keep(
    chunks: tuple[PairColumns, ...],
    uppers: list[Float64[Array, " chunk"]],
    count: Int32[Array, ""],
    need: Float64[Array, " subs"],
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
    """The lower of both bounds where it is not below what is needed; the first few apart."""
    note_trace("pair_keep")
    columns = jax.tree.map(lambda *parts: jnp.concatenate(parts), *chunks)
    value = jnp.minimum(columns.value, jnp.concatenate(uppers))
    kept = jnp.arange(SURVIVORS_AT_ONCE, dtype=jnp.int32) < count
    kept &= value >= need[columns.sub]
    order = jnp.argsort(~kept, stable=True)
    at, value = columns.at[order], value[order]
    few = kept.sum(dtype=jnp.int32), at[:FEW_SURVIVORS], value[:FEW_SURVIVORS]
    return few, (at[FEW_SURVIVORS:], value[FEW_SURVIVORS:])
