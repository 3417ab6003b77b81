"""The paper's quantities: overlap with the neuron, split into unique and common elements.

A location is *unique* (U) if it has exactly one concept and *common* (C) if it has several. For a
formula L, `I` counts its locations inside the neuron and `E` (extras) those outside. All arrays end
in a sample axis; `aggregate` sums over it. The decomposition loses nothing:

    dIoU(L) = (I^U + I^C) / (|N| + E^U + E^C) = IoU(L)
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int32, Int64, UInt32

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import LANES, device_neuron, device_table
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import BatchScores, as_batch, evaluate_chains, pad_batch
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.internal.chunks import map_chunks
from optexp_jax.internal.padding import round_up_by_fours
from optexp_jax.internal.tracing import note_trace

FEW = 8
"""Formulas whose quantities are summed at once: there can be millions of patches."""

_Tree = TypeVar("_Tree", bound=eqx.Module)


class Quantities(eqx.Module):
    """I^U, I^C, E^U, E^C of concepts or formulas, `[..., sample]`."""

    iu: Int[Array, "*batch samples"]
    ic: Int[Array, "*batch samples"]
    eu: Int[Array, "*batch samples"]
    ec: Int[Array, "*batch samples"]

    def aggregate(self) -> "Quantities":
        """Sums over samples, kept as an axis of length one: one code serves both computations."""
        return _aggregate(self)

    def __getitem__(self, rows: Any) -> "Quantities":
        with jax.enable_x64(True):
            return jax.tree.map(lambda part: part[rows], self)


class NeuronQuantities(eqx.Module):
    """What there is to cover in each sample: |N|, N^U, N^C inside, SE^U, SE^C outside."""

    n: Int[Array, " samples"]
    nu: Int[Array, " samples"]
    nc: Int[Array, " samples"]
    seu: Int[Array, " samples"]
    sec: Int[Array, " samples"]

    def aggregate(self) -> "NeuronQuantities":
        """Sums over samples, kept as an axis of length one."""
        return _aggregate(self)


def neuron_quantities(table: ConceptTable, neuron: NeuronCounts) -> NeuronQuantities:
    """|N|, N^U, N^C, SE^U, SE^C per sample; |N| counts active locations of no concept too."""
    device, counts = device_table(table), device_neuron(table, neuron)
    with jax.enable_x64(True):
        return _sum_neuron(
            counts.patch_inside,
            counts.patch_outside,
            device.patch_is_unique,
            device.patch_is_common,
            device.patch_sample,
            table.n_samples,
        )


def concept_quantities(table: ConceptTable, neuron: NeuronCounts) -> Quantities:
    """The quantities of every concept, `[concept, sample]`."""
    device, counts = device_table(table), device_neuron(table, neuron)
    with jax.enable_x64(True):
        return _sum_concepts(
            counts.patch_inside,
            counts.patch_outside,
            device.patch_is_unique,
            device.patch_sample,
            device.entry_patch,
            device.entry_concept,
            (table.n_concepts, table.n_samples),
        )


def formula_quantities(
    table: ConceptTable, neuron: NeuronCounts, formulas: Iterable[Formula] | FormulaBatch
) -> Quantities:
    """The quantities of any formulas, `[formula, sample]`."""
    batch = as_batch(table, formulas)
    return padded_formula_quantities(table, neuron, batch)[: len(batch)]


def padded_formula_quantities(
    table: ConceptTable, neuron: NeuronCounts, batch: FormulaBatch
) -> Quantities:
    """The same in one of a few numbers of rows, so that few shapes compile; others are padding."""
    device, counts = device_table(table), device_neuron(table, neuron)
    with jax.enable_x64(True):
        padded = pad_batch(batch, round_up_by_fours(len(batch), FEW))
        return _sum_formulas(
            device.membership,
            padded.concepts,
            padded.operators,
            operator_bits(batch.operator_set),
            -(-len(batch) // FEW),
            counts.patch_inside,
            counts.patch_outside,
            device.patch_is_unique,
            device.patch_is_common,
            device.patch_signature,
            device.patch_sample,
            table.n_samples,
        )


def diou(quantities: Quantities, neuron: NeuronQuantities) -> BatchScores:
    """dIoU of a batch of formulas from their quantities, per sample or aggregated."""
    iu, ic, eu, ec = (np.asarray(part) for part in jax.tree.leaves(quantities))
    return BatchScores((iu + ic).sum(-1), (eu + ec).sum(-1), int(np.asarray(neuron.n).sum()))


@jax.jit
def _sum_over_samples(tree: Any) -> Any:
    return jax.tree.map(lambda part: part.sum(-1, keepdims=True), tree)


def _aggregate(tree: _Tree) -> _Tree:
    with jax.enable_x64(True):
        return _sum_over_samples(tree)


@partial(jax.jit, static_argnums=5)
def _sum_neuron(
    inside: Int64[Array, " patches"],
    outside: Int64[Array, " patches"],
    unique: Bool[Array, " patches"],
    common: Bool[Array, " patches"],
    sample: Int64[Array, " patches"],
    n_samples: int,
) -> NeuronQuantities:
    note_trace("sum_neuron")

    def total(part: Int64[Array, " patches"]) -> Int64[Array, " samples"]:
        return jax.ops.segment_sum(part, sample, n_samples, indices_are_sorted=True)

    return NeuronQuantities(
        n=total(inside),
        nu=total(_where(unique, inside)),
        nc=total(_where(common, inside)),
        seu=total(_where(unique, outside)),
        sec=total(_where(common, outside)),
    )


@partial(jax.jit, static_argnums=6)
def _sum_concepts(
    inside: Int64[Array, " patches"],
    outside: Int64[Array, " patches"],
    unique: Bool[Array, " patches"],
    sample: Int64[Array, " patches"],
    entry_patch: Int64[Array, " entries"],
    entry_concept: Int64[Array, " entries"],
    shape: tuple[int, int],
) -> Quantities:
    note_trace("sum_concepts")
    cell = entry_concept * shape[1] + sample[entry_patch]

    parts = [_where(kind, counts) for counts in (inside, outside) for kind in (unique, ~unique)]
    # One sum over wide rows is several times faster than one a column.
    columns = jnp.stack(parts, axis=1).at[entry_patch].get(mode="fill", fill_value=0)
    sums = jax.ops.segment_sum(columns, cell, shape[0] * shape[1])
    iu, ic, eu, ec = sums.T.reshape(len(parts), *shape)
    return Quantities(iu=iu, ic=ic, eu=eu, ec=ec)


@partial(jax.jit, static_argnums=11)
def _sum_formulas(
    membership: UInt32[Array, "concepts words"],
    concepts: Int32[Array, "batch length"],
    operators: Int32[Array, "batch length"],
    bits: Bool[Array, "operators three"],
    n_chunks: Int[Array, ""],
    inside: Int64[Array, " patches"],
    outside: Int64[Array, " patches"],
    unique: Bool[Array, " patches"],
    common: Bool[Array, " patches"],
    signature: Int64[Array, " patches"],
    sample: Int64[Array, " patches"],
    n_samples: int,
) -> Quantities:
    note_trace("sum_formulas")
    word, lane = signature // LANES, (signature % LANES).astype(jnp.uint32)
    parts = [_where(kind, counts) for counts in (inside, outside) for kind in (unique, common)]
    columns = jnp.stack(parts, axis=1)

    def few_formulas(packed: UInt32[Array, "few words"]) -> Quantities:
        here = (packed.T[word] >> lane[:, None]) & jnp.uint32(1) != 0
        counts = jnp.where(here[:, :, None], columns[:, None, :], jnp.int64(0))
        # One sum over wide rows is several times faster than one a column.
        wide = counts.reshape(len(columns), -1)
        sums = jax.ops.segment_sum(wide, sample, n_samples, indices_are_sorted=True)
        iu, ic, eu, ec = jnp.moveaxis(sums.T.reshape(len(packed), len(parts), n_samples), 1, 0)
        return Quantities(iu=iu, ic=ic, eu=eu, ec=ec)

    held = evaluate_chains(membership, concepts, operators, bits)
    return map_chunks(few_formulas, held, n_chunks, FEW)


def _where(
    chosen: Bool[Array, " patches"], counts: Int64[Array, " patches"]
) -> Int64[Array, " patches"]:
    return jnp.where(chosen, counts, jnp.int64(0))
