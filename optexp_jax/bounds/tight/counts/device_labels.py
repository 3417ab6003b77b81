"""What labels share with every concept, counted on the device and left there.

Only signatures that a label holds are looked at, a block of them after another: how many there are
is not compiled in. Of pairs `a∘b` those of `a AND b` suffice, which the lists of the table name;
the rest follows from the Gram matrices.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, UInt32

from optexp_jax.bounds.tight.counts.device_lists import NeuronLists
from optexp_jax.bounds.tight.counts.gram import Gram
from optexp_jax.bounds.tight.operator_set import joined
from optexp_jax.bounds.tight.tuning import SIGNATURE_BLOCK
from optexp_jax.counts.device_table import LANES
from optexp_jax.counts.scores import evaluate_chains
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class LabelCounts:
    """Counts of labels, and of what they share with every concept of a subproblem.

    On the host or on the device, where they were counted.
    """

    inside: Int64[Array | np.ndarray, " labels"]
    outside: Int64[Array | np.ndarray, " labels"]
    shared_inside: Int64[Array | np.ndarray, "labels concepts"]
    shared_outside: Int64[Array | np.ndarray, "labels concepts"]


@pytree
class SubproblemOnDevice:
    """What programs have to know of a subproblem."""

    counted: NeuronLists
    region: UInt32[Array, " words"]
    """The signatures that are residual."""
    number: Int32[Array, " all_concepts"]
    """The number of each concept there; those that are left out have the next one."""
    gram: Gram


@pytree
class PairLabels:
    """Pairs `a∘b`, with the part of the table's list of pairs that names their signatures."""

    start: Int64[Array | np.ndarray, " labels"]
    count: Int64[Array | np.ndarray, " labels"]
    op: Int32[Array | np.ndarray, " labels"]
    a: Int32[Array | np.ndarray, " labels"]
    """As the subproblem numbers it."""
    b: Int32[Array | np.ndarray, " labels"]


@jax.jit
def count_pair_labels(sub: SubproblemOnDevice, labels: PairLabels) -> LabelCounts:
    """Counts of pairs over what is residual at a subproblem."""
    note_trace("count_pair_labels")
    table, count = sub.counted.table, jnp.asarray(labels.count)
    until = jnp.cumsum(count)
    n_labels, n = len(count), sub.gram.inside.shape[1]
    shift = jnp.asarray(labels.start) - (until - count)
    holder = table.holder.reshape(-1)
    last = len(holder) - 1

    def add_block(block: Int64[Array, ""], sums: Int64[Array, "cells two"]) -> Array:
        at = block * SIGNATURE_BLOCK + jnp.arange(SIGNATURE_BLOCK)
        label = jnp.minimum(jnp.searchsorted(until, at, side="right"), n_labels - 1)
        held = at < until[-1]
        signature = jnp.where(held, holder[jnp.clip(at + shift[label], 0, last)], 0)
        return _add(sums, sub, signature, held, label.astype(jnp.int32) * n)

    sums = _in_blocks(until[-1], add_block, jnp.zeros((n_labels * n, 2), jnp.int64))
    common = sums.reshape(n_labels, n, 2)
    op, a, b = (jnp.asarray(part) for part in (labels.op, labels.a, labels.b))

    def complete(
        pairs: Int64[Array, "one n n"], common: Int64[Array, "labels n"]
    ) -> tuple[Int64[Array, " labels"], Int64[Array, "labels n"]]:
        """Counts of pairs, and of what they share, from what `a AND b` shares."""
        own = jnp.diagonal(pairs[0])
        held = joined(op, own[a], own[b], pairs[0, a, b], jnp)
        return held, joined(op[:, None], pairs[0, a], pairs[0, b], common, jnp)

    inside, shared_inside = complete(sub.gram.inside, common[:, :, 0])
    outside, shared_outside = complete(sub.gram.outside, common[:, :, 1])
    return LabelCounts(inside, outside, shared_inside, shared_outside)


@jax.jit
def count_chain_labels(
    sub: SubproblemOnDevice,
    membership: UInt32[Array, "all_concepts words"],
    concepts: Int32[Array | np.ndarray, "labels length"],
    operators: Int32[Array | np.ndarray, "labels length"],
    bits: Bool[Array | np.ndarray, "operators three"],
    real: Bool[Array | np.ndarray, " labels"],
) -> LabelCounts:
    """The same for chains of any length; `real` are those that are asked for."""
    note_trace("count_chain_labels")
    n = sub.gram.inside.shape[1]
    held = evaluate_chains(
        membership, jnp.asarray(concepts), jnp.asarray(operators), jnp.asarray(bits)
    )
    held = jnp.where(jnp.asarray(real)[:, None], held & sub.region[None, :], jnp.uint32(0))
    weights = sub.counted.inside, sub.counted.outside

    def one(
        packed: UInt32[Array, " words"],
    ) -> tuple[Int64[Array, " two"], Int64[Array, "n two"]]:
        ones = jax.lax.population_count(packed).astype(jnp.int64)
        until = jnp.cumsum(ones)

        def add_block(
            block: Int64[Array, ""], found: tuple[Array, Array]
        ) -> tuple[Int64[Array, " two"], Int64[Array, "n two"]]:
            own, sums = found
            at = block * SIGNATURE_BLOCK + jnp.arange(SIGNATURE_BLOCK)
            word = jnp.minimum(jnp.searchsorted(until, at, side="right"), len(packed) - 1)
            lane = _lane(packed[word], at - (until[word] - ones[word]))
            signature, held = word.astype(jnp.int32) * LANES + lane, at < until[-1]
            counts = jnp.stack([part[signature] for part in weights], axis=1)
            own += jnp.where(held[:, None], counts, 0).sum(0)
            return own, _add(sums, sub, signature, held, jnp.zeros(SIGNATURE_BLOCK, jnp.int32))

        none = jnp.zeros(2, jnp.int64), jnp.zeros((n, 2), jnp.int64)
        return _in_blocks(until[-1], add_block, none)

    own, shared = jax.lax.map(one, held)
    return LabelCounts(own[:, 0], own[:, 1], shared[:, :, 0], shared[:, :, 1])


def _in_blocks(n: Int64[Array, ""], add_block: Callable[..., Any], start: Any) -> Any:
    return jax.lax.fori_loop(jnp.int64(0), -(-n // SIGNATURE_BLOCK), add_block, start)


def _lane(word: UInt32[Array, " rows"], rank: Int64[Array, " rows"]) -> Int32[Array, " rows"]:
    """Where the bit of a word stands that has so many set bits below it."""
    lanes = jnp.arange(LANES, dtype=jnp.uint32)
    below = jax.lax.population_count(
        word[:, None] & (jnp.uint32(0xFFFFFFFF) >> (jnp.uint32(LANES - 1) - lanes))[None, :]
    )
    above = below > rank[:, None].astype(jnp.uint32)
    return jnp.argmax(above, axis=1).astype(jnp.int32)


def _add(
    sums: Int64[Array, "cells two"],
    sub: SubproblemOnDevice,
    signature: Int32[Array, " rows"],
    held: Bool[Array, " rows"],
    first: Int32[Array, " rows"],
) -> Int64[Array, "cells two"]:
    """Add the counts of signatures to the cells of their concepts, which begin at `first`."""
    table, n = sub.counted.table, sub.gram.inside.shape[1]
    word = sub.region[signature // LANES]
    lane = (signature % LANES).astype(jnp.uint32)
    held &= (word >> lane) & jnp.uint32(1) != 0
    start = table.indptr[signature]
    length = jnp.where(held, table.indptr[signature + 1] - start, 0)
    counts = jnp.stack([sub.counted.inside[signature], sub.counted.outside[signature]], axis=1)
    nowhere, last = jnp.int32(len(sums)), len(table.concepts) - 1

    def add_concept(k: Int64[Array, ""], sums: Int64[Array, "cells two"]) -> Array:
        number = sub.number[table.concepts[jnp.minimum(start + k, last)]]
        cell = jnp.where((k < length) & (number < n), first + number, nowhere)
        return sums.at[cell].add(counts, mode="drop")

    return jax.lax.fori_loop(jnp.int64(0), length.max(), add_concept, sums)


@jax.jit
def merge_counts(
    counts: LabelCounts, others: LabelCounts, taken: Bool[Array | np.ndarray, " labels"]
) -> LabelCounts:
    """The counts of some labels from elsewhere."""
    note_trace("merge_counts")

    def pick(mine: Array, other: Array) -> Array:
        return jnp.where(jnp.asarray(taken).reshape(-1, *[1] * (mine.ndim - 1)), other, mine)

    return jax.tree.map(pick, counts, others)
