"""Pairs that a bound leaves, on the device until a second bound has spoken as well.

The second one rules out nearly all that the first one leaves, so that what comes back is little.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32

from optexp_jax.bounds.tight.survivors import survivors_from
from optexp_jax.bounds.tight.tuning import FEW_SURVIVORS, PAIR_CHUNK, SURVIVORS_AT_ONCE
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, fetch_all, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.frontier import take

PairBound = Callable[..., Float64[Array, " chunk"]]
"""Of pairs given by their place, form, a and b."""


@pytree
class PairColumns:
    """Some pairs; those that fill up the last chunk have no meaning."""

    at: Int32[Array, " pairs"]
    """Where they stand in the array that they survived in."""
    place: Int32[Array, " pairs"]
    form: Int32[Array, " pairs"]
    a: Int32[Array, " pairs"]
    b: Int32[Array, " pairs"]
    value: Float64[Array, " pairs"]


@dataclass(frozen=True, eq=False)
class PairBlock:
    """The pairs from one on that some rows of an array have left, in chunks."""

    chunks: tuple[PairColumns, ...]
    count: int
    """How many there are."""
    need: Float64[Array, " places"]


@dataclass(frozen=True, eq=False)
class Kept:
    """What is left of a block."""

    at: Int32[np.ndarray, " pairs"]
    value: Float64[np.ndarray, " pairs"]


def pair_blocks(
    values: Float64[Array, "rows forms concepts"],
    needed: Float64[np.ndarray, " rows"],
    place: Int32[np.ndarray, " rows"],
    a: Int32[np.ndarray, " rows"],
    need: Float64[Array, " places"],
) -> list[PairBlock]:
    """The pairs of some rows that are not below what each row needs."""
    blocks: list[PairBlock] = []
    count, start = 1, 0
    while start < count:
        found, chunks = run(_columns, values, needed, place, a, np.int32(start))
        count = int(fetch(found))
        if count > start:
            blocks.append(PairBlock(chunks, min(count - start, SURVIVORS_AT_ONCE), need))
        start += SURVIVORS_AT_ONCE
    return blocks


@jax.jit
def _columns(
    values: Float64[Array, "rows forms concepts"],
    needed: Float64[Array, " rows"],
    place: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    start: Int32[Array, ""],
) -> tuple[Int32[Array, ""], tuple[PairColumns, ...]]:
    note_trace("pair_columns")
    some = survivors_from(values, needed, start)
    row, form, b = (part.astype(jnp.int32) for part in jnp.unravel_index(some.at, values.shape))
    columns = PairColumns(some.at, place[row], form, a[row], b, some.value)
    parts = [slice(k, k + PAIR_CHUNK) for k in range(0, SURVIVORS_AT_ONCE, PAIR_CHUNK)]
    return some.count, tuple(take(columns, part) for part in parts)


def lower_block(block: PairBlock, bound: PairBound | None, clock: Clock) -> Kept:
    """What another bound leaves of a block, if one is given and there is time for it."""
    uppers: list[Array] = []
    for k, chunk in enumerate(block.chunks):
        if bound is not None and k * PAIR_CHUNK < block.count and not clock.expired:
            uppers.append(bound(chunk.place, chunk.form, chunk.a, chunk.b))
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
    need: Float64[Array, " places"],
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
    """The lower of both bounds where it is not below what the place needs; the first few apart."""
    note_trace("pair_keep")
    columns = jax.tree.map(lambda *parts: jnp.concatenate(parts), *chunks)
    value = jnp.minimum(columns.value, jnp.concatenate(uppers))
    kept = jnp.arange(SURVIVORS_AT_ONCE, dtype=jnp.int32) < count
    kept &= value >= need[columns.place]
    order = jnp.argsort(~kept, stable=True)
    at, value = columns.at[order], value[order]
    few = kept.sum(dtype=jnp.int32), at[:FEW_SURVIVORS], value[:FEW_SURVIVORS]
    return few, (at[FEW_SURVIVORS:], value[FEW_SURVIVORS:])
