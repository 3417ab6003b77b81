"""All children of a batch of frontier nodes, generated and estimated in one device call."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int, Int32, Int64

from optexp_jax.bounds.paper.chains import (
    View,
    disjoint_after,
    disjoint_from,
    label_bounds,
    row_bits,
    without_useless_paths,
)
from optexp_jax.bounds.paper.chunk_sizes import ChunkSize
from optexp_jax.bounds.paper.discards import useless_steps
from optexp_jax.bounds.paper.label import LabelBounds, OperatorBits, join
from optexp_jax.bounds.paper.packing import PackedRows
from optexp_jax.bounds.paper.path import IMPOSSIBLE, Estimates, estimate_final, estimate_paths
from optexp_jax.bounds.paper.problem_view import LabelBatch
from optexp_jax.formulas.operators import Operator, operator_bits
from optexp_jax.internal.chunks import map_blocks, map_chunks
from optexp_jax.internal.tracing import note_trace


class Children(eqx.Module):
    """For each node and concept the bounds of the child's paths, and how many children count."""

    counted: Int64[Array, " nodes"]
    upper: Float64[Array, "nodes concepts kinds"]
    lower: Float64[Array, " nodes"]
    """The highest lower estimate of any child's path."""


def order_table(
    operators: tuple[Operator, ...],
) -> Bool[np.ndarray, "operators_plus_one operators"]:
    """Where a step must have a higher concept index than the step before it.

    `table[a, b]` is for operator b after operator a; the last row is for b after the leaf. Of two
    steps that may swap, only one order is made: smaller operators first, and ascending indices
    where they are equal. For AND after AND NOT the published rule is kept, which makes one order
    too many, never one too few.
    """
    after_step = [[b.commutes_with(a) and b <= a for b in operators] for a in operators]
    return np.array([*after_step, [b.symmetric for b in operators]])


@partial(jax.jit, static_argnames=("chunk", "index_order", "final", "published_counters"))
def expand_nodes(
    view: View,
    packed: Int32[Array, "nodes columns"],
    n_chunks: Int[Array, ""],
    *,
    chunk: ChunkSize,
    index_order: bool,
    final: bool,
    published_counters: bool,
) -> Children:
    """Append every concept to each label with its next operator, and estimate what results.

    Children are `final` if all have full length; their only kind then is the final one. Those that
    are made count; with `published_counters`, those that cannot pay and those that are nothing new
    do, too.
    """
    note_trace("expand_nodes")
    requests = PackedRows.unpack(packed)

    def expand(rows: PackedRows) -> Children:
        apart = disjoint_from(view, rows.chains)
        parents = _Parent(
            label_bounds(view, rows.chains),
            row_bits(view.operators, rows.kind),
            apart,
            rows.chains.concepts,
            rows.chains.operators,
            rows.kind,
            rows.chains.lengths,
        )
        written = _written(view, rows, index_order)
        made = written & ~_degenerate(view, rows, apart)
        grown = jax.vmap(lambda parent: _grow(parent, view, chunk.concepts, final))(parents)
        made &= ~grown.useless
        estimates = grown.estimates
        possible = made[:, :, None] & (estimates.upper != IMPOSSIBLE)
        return Children(
            (written if published_counters else made).sum(1, dtype=jnp.int64),
            jnp.where(possible, estimates.upper, IMPOSSIBLE),
            jnp.where(possible, estimates.lower, 0.0).max((1, 2)),
        )

    return map_chunks(expand, requests, n_chunks, chunk.nodes)


class _Parent(eqx.Module):
    """Labels to expand, one a row: what is known of them and which operator goes on from them."""

    bounds: LabelBounds
    operator: OperatorBits
    apart: Bool[Array, "*nodes concepts"]
    """Concepts that the label is disjoint from."""
    chain: Int32[Array, "*nodes length"]
    steps: Int32[Array, "*nodes length"]
    """The operators of the chain."""
    kind: Int32[Array, "*nodes"]
    """The operator that goes on from it."""
    length: Int32[Array, "*nodes"]


class _Grown(eqx.Module):
    """A parent with each concept appended."""

    estimates: Estimates
    useless: Bool[Array, "*nodes concepts"]
    """Concepts that cannot pay with the parent and its operator."""


def _label_batch(
    parent: _Parent, view: View, concepts: Int32[Array, " concepts"], grown: LabelBounds
) -> LabelBatch:
    """One parent with each of some concepts appended, as Top/Bott vectors see it."""
    n_rows, longest = len(concepts), len(parent.chain)
    chains, steps = (
        jnp.broadcast_to(part, (n_rows, longest)) for part in (parent.chain, parent.steps)
    )
    needs_left, needs_right = (bit[None] == 0 for bit in (parent.operator.q, parent.operator.p))
    apart = disjoint_after(parent.apart[None], view.disjoint[concepts], needs_left, needs_right)
    return LabelBatch(
        chains.at[:, parent.length].set(concepts),
        steps.at[:, parent.length].set(parent.kind),
        jnp.full(n_rows, longest - 1 - parent.length),
        grown,
        apart,
    )


def _grow(parent: _Parent, view: View, at_once: int, final: bool) -> _Grown:
    """Estimates of one parent with each concept appended; nothing of `parent` has a row axis."""

    n_concepts = len(view.disjoint)

    def grow(concepts: Int32[Array, " concepts"]) -> _Grown:
        left, bits = _repeat(parent, len(concepts))
        right = view.concepts if at_once >= n_concepts else view.concepts[concepts]
        useless = jnp.zeros(len(concepts), bool)
        if view.discards:
            useless = useless_steps(left, right, bits, view.neuron)
        grown = join(left, right, bits, parent.apart[concepts], view.neuron)
        if final:
            estimates = estimate_final(grown, view.neuron)
            return _Grown(jax.tree.map(lambda part: part[:, None], estimates), useless)
        return _Grown(_estimate_grown(parent, view, concepts, grown), useless)

    return map_blocks(grow, n_concepts, at_once)


def _estimate_grown(
    parent: _Parent, view: View, concepts: Int32[Array, " concepts"], grown: LabelBounds
) -> Estimates:
    """Estimates of all paths from children that are not of full length."""
    labels = _label_batch(parent, view, concepts, grown)
    estimates = estimate_paths(
        grown,
        view.vectors.of_labels(view.prepared, labels),
        labels.further,
        view.neuron,
        view.operators,
        len(parent.chain) - 2,
    )
    return without_useless_paths(view, grown, estimates)


def _repeat(parent: _Parent, times: int) -> tuple[LabelBounds, OperatorBits]:
    """A parent's bounds and operator, once for each concept."""

    def repeat(part: Array) -> Array:
        return jnp.broadcast_to(part, (times, *part.shape))

    return jax.tree.map(repeat, (parent.bounds, parent.operator))


def _degenerate(
    view: View, parents: PackedRows, apart: Bool[Array, "nodes concepts"]
) -> Bool[Array, "nodes concepts"]:
    """Children that are nothing new: with disjoint sides `P AND c` is empty, `P AND NOT c` is P."""
    bits = jnp.asarray(operator_bits(view.operators))
    adds = (bits[:, 0] & bits[:, 1])[parents.kind]
    return apart & ~adds[:, None]


def _written(view: View, parents: PackedRows, index_order: bool) -> Bool[Array, "nodes concepts"]:
    """Children that are chains of distinct concepts, and in one of the orders that are made."""
    chains, next_operator = parents.chains, parents.kind
    every = jnp.arange(len(view.disjoint), dtype=jnp.int32)
    unused = (chains.concepts[:, :, None] != every[None, None, :]).all(1)
    if not index_order:
        return unused
    last = chains.lengths - 1
    rows = jnp.arange(len(last))
    before = jnp.where(last > 0, chains.operators[rows, last], len(view.operators))
    ordered = jnp.asarray(order_table(view.operators))[before, next_operator]
    return unused & (~ordered[:, None] | (every[None, :] > chains.concepts[rows, last][:, None]))
