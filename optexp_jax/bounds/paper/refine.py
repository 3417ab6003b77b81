"""Estimates of a batch of nodes, each of the one path that it stands for, in one device call."""

from functools import partial

import equinox as eqx
import jax
from jaxtyping import Array, Float64, Int, Int32

from optexp_jax.bounds.paper.chains import View, estimate_chains, label_batch, label_bounds
from optexp_jax.bounds.paper.discards import useless_next
from optexp_jax.bounds.paper.packing import PackedRows
from optexp_jax.bounds.paper.path import Estimates, estimate_final, estimate_path
from optexp_jax.internal.chunks import map_chunks
from optexp_jax.internal.tracing import note_trace


class Refined(eqx.Module):
    """What the host needs of estimates."""

    upper: Float64[Array, "nodes *kinds"]
    lower: Float64[Array, ""]
    """The highest lower estimate."""


@partial(jax.jit, static_argnames="chunk")
def estimate_nodes(
    view: View,
    packed: Int32[Array, "rows columns"],
    row: Int32[Array, " nodes"],
    n_chunks: Int[Array, ""],
    *,
    chunk: int,
) -> Refined:
    """dIoU_max of each node's path, and the highest dIoU_min.

    Nodes stand in `row`s of the packed matrix. All rows of a chunk must have the same task.
    """
    note_trace("estimate_nodes")
    requests = PackedRows.unpack(packed)
    longest = requests.chains.concepts.shape[1]

    def final(rows: PackedRows, rewrite: bool) -> Estimates:
        label = label_bounds(view, rows.chains, rows.pairs if rewrite else None)
        return estimate_final(label, view.neuron)

    def path(rows: PackedRows, rewrite: bool) -> Estimates:
        further = longest - rows.chains.lengths
        label = label_bounds(view, rows.chains, rows.pairs if rewrite else None)
        estimates = estimate_path(
            label,
            view.vectors.of_labels(view.prepared, label_batch(view, rows.chains, label)),
            further,
            rows.kind,
            view.neuron,
            view.operators,
            longest - 1,
        )
        if not view.discards:
            return estimates
        return estimates.without(useless_next(label, view.operators, rows.kind))

    # By task. What can be rewritten has three concepts, and room for a fourth if it is a path.
    tasks = [partial(final, rewrite=False), partial(path, rewrite=False)]
    if longest > 2:
        tasks.append(partial(final, rewrite=True))
    if longest > 3:
        tasks.append(partial(path, rewrite=True))

    def estimate(rows: PackedRows) -> Estimates:
        return jax.lax.switch(rows.task[0], tasks, rows)

    estimates = map_chunks(estimate, requests, n_chunks, chunk)
    return Refined(estimates.upper[row], estimates.lower.max())


@partial(jax.jit, static_argnames="chunk")
def estimate_all_paths(
    view: View,
    packed: Int32[Array, "rows columns"],
    n_chunks: Int[Array, ""],
    *,
    chunk: int,
) -> Refined:
    """dIoU_max of every path from each node's label, and of the label itself."""
    note_trace("estimate_all_paths")
    requests = PackedRows.unpack(packed)

    def estimate(rows: PackedRows) -> Estimates:
        return estimate_chains(view, rows.chains)

    estimates = map_chunks(estimate, requests, n_chunks, chunk)
    return Refined(estimates.upper, estimates.lower.max())
