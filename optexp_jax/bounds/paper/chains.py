"""Estimates of whole batches of chains, from what is known of their concepts and prefixes.

A label's bounds are rebuilt from its chain whenever they are needed, so queued nodes hold no
quantities: a node is a few small integers.
"""

from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, PyTree

from optexp_jax.bounds.paper.discards import useless_paths
from optexp_jax.bounds.paper.label import LabelBounds, OperatorBits, distribute, join
from optexp_jax.bounds.paper.path import Estimates, estimate_paths
from optexp_jax.bounds.paper.problem_view import LabelBatch, ProblemView
from optexp_jax.bounds.paper.vectors import AbstractVectors
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.formulas.operators import Operator, operator_bits
from optexp_jax.internal.tracing import note_trace
from optexp_jax.search.problem import Problem

UNKNOWN = -1


class View(eqx.Module):
    """A neuron and its concepts as one of the two computations sees them: per sample, or summed."""

    concepts: Quantities
    neuron: NeuronQuantities
    known: Quantities
    """Exact quantities of sub-labels found so far, `[slot, sample]`."""
    disjoint: Bool[Array, "concepts concepts"]
    prepared: PyTree[Array]
    """What the Top/Bott vectors have prepared."""
    vectors: AbstractVectors
    operators: tuple[Operator, ...] = eqx.field(static=True)
    discards: bool = eqx.field(static=True, default=False)
    """Leave out steps that cannot pay (see `discards.py`); all operators are monotone then."""


def make_view(
    vectors: AbstractVectors, problem: Problem, known: Quantities, *, aggregated: bool
) -> View:
    """The view of one computation. It computes in the integers of `known`."""
    concepts, neuron = _convert(problem.concepts, problem.whole, aggregated, known.ic.dtype)
    seen = ProblemView(
        concepts,
        neuron,
        problem.disjoint,
        problem.operators,
        problem.depth,
        aggregated,
        count_pairs=lambda: problem.pairs,
    )
    prepared = vectors.prepare(seen)
    return View(concepts, neuron, known, problem.disjoint, prepared, vectors, problem.operators)


@partial(jax.jit, static_argnames=("aggregated", "dtype"))
def _convert(
    concepts: Quantities, neuron: NeuronQuantities, aggregated: bool, dtype: np.dtype[Any]
) -> tuple[Quantities, NeuronQuantities]:
    note_trace("make_view")
    if aggregated:
        concepts, neuron = concepts.aggregate(), neuron.aggregate()
    return jax.tree.map(lambda part: part.astype(dtype), (concepts, neuron))


class Chains(eqx.Module):
    """A batch of labels, padded with -1 on the right (see `FormulaBatch`)."""

    concepts: Int32[Array, "rows length"]
    operators: Int32[Array, "rows length"]
    known_slot: Int32[Array, " rows"]
    """Where the exact quantities of the row's longest known prefix are, or UNKNOWN."""
    known_length: Int32[Array, " rows"]
    """How many concepts that prefix has; 1 (the leaf) where nothing else is known."""

    @property
    def lengths(self) -> Int32[Array, " rows"]:
        return (self.concepts >= 0).sum(1, dtype=jnp.int32)


class KnownPairs(eqx.Module):
    """For rows `(A OR B)∘c...`: slots of the exact quantities of `A∘c` and `B∘c`, or UNKNOWN."""

    first: Int32[Array, " rows"]
    second: Int32[Array, " rows"]


def label_bounds(view: View, chains: Chains, pairs: KnownPairs | None = None) -> LabelBounds:
    """Bounds of each label, step by step along its chain from the longest prefix known exactly.

    With `pairs`, the first three concepts `(A OR B)∘c` are also bounded as `(A∘c) OR (B∘c)`.
    """
    leaf = view.concepts[chains.concepts[:, 0]]
    known = view.known[jnp.maximum(chains.known_slot, 0)]
    is_known = (chains.known_slot != UNKNOWN)[:, None]
    bounds = LabelBounds.exact(jax.tree.map(partial(jnp.where, is_known), known, leaf))
    apart = view.disjoint[chains.concepts[:, 0]]
    for step in range(1, chains.concepts.shape[1]):
        concept = jnp.maximum(chains.concepts[:, step], 0)
        bits = row_bits(view.operators, chains.operators[:, step])
        rows = jnp.arange(len(concept))
        grown = join(bounds, view.concepts[concept], bits, apart[rows, concept], view.neuron)
        if step == 2 and pairs is not None:
            grown = _distribute(view, chains, pairs, bits, grown)
        present = chains.concepts[:, step] >= 0
        fresh = (present & (step >= chains.known_length))[:, None]
        bounds = jax.tree.map(partial(jnp.where, fresh), grown, bounds)
        joined = disjoint_after(apart, view.disjoint[concept], bits.q == 0, bits.p == 0)
        apart = jnp.where(present[:, None], joined, apart)
    return bounds


_Flags = TypeVar("_Flags", Bool[Array, "..."], Bool[np.ndarray, "..."])


def disjoint_after(left: _Flags, right: _Flags, needs_left: _Flags, needs_right: _Flags) -> _Flags:
    """Which concepts are disjoint from `P∘c`, given those disjoint from P and from c.

    What holds only where both sides do is apart from what either is apart from; what holds only
    where one side does, from what that side is; else from what both are. An operator needs its
    left side where `o(0,1) = 0`, its right side where `o(1,0) = 0`.
    """
    return (left & needs_left) | (right & needs_right) | (left & right)


def disjoint_from(view: View, chains: Chains) -> Bool[Array, "rows concepts"]:
    """Which concepts each label is known to be disjoint from."""
    apart = view.disjoint[chains.concepts[:, 0]]
    for step in range(1, chains.concepts.shape[1]):
        concept = jnp.maximum(chains.concepts[:, step], 0)
        bits = row_bits(view.operators, chains.operators[:, step])
        joined = disjoint_after(apart, view.disjoint[concept], bits.q == 0, bits.p == 0)
        apart = jnp.where((chains.concepts[:, step] >= 0)[:, None], joined, apart)
    return apart


def label_batch(view: View, chains: Chains, bounds: LabelBounds) -> LabelBatch:
    """Labels as Top/Bott vectors see them; what those do not read is not computed."""
    further = chains.concepts.shape[1] - chains.lengths
    apart = disjoint_from(view, chains)
    return LabelBatch(chains.concepts, chains.operators, further, bounds, apart)


def row_bits(operators: tuple[Operator, ...], codes: Int32[Array, " rows"]) -> OperatorBits:
    """The bits of each row's operator."""
    table = jnp.asarray(operator_bits(operators).astype("int64"))
    p, q, r = (table[jnp.maximum(codes, 0), k][:, None] for k in range(3))
    return OperatorBits(p, q, r, monotone=all(operator.monotone for operator in operators))


def estimate_chains(view: View, chains: Chains, pairs: KnownPairs | None = None) -> Estimates:
    """Upper and lower estimates of every path from each label, and of the label itself."""
    longest = chains.concepts.shape[1]
    further = longest - chains.lengths
    label = label_bounds(view, chains, pairs)
    estimates = estimate_paths(
        label,
        view.vectors.of_labels(view.prepared, label_batch(view, chains, label)),
        further,
        view.neuron,
        view.operators,
        longest - 1,
    )
    return without_useless_paths(view, label, estimates)


def without_useless_paths(view: View, label: LabelBounds, estimates: Estimates) -> Estimates:
    """Estimates of all paths, with those that cannot pay marked as impossible."""
    if not view.discards:
        return estimates
    useless = useless_paths(label, view.operators)
    final = jnp.zeros((len(useless), 1), bool)
    return estimates.without(jnp.concatenate([useless, final], axis=1))


def _distribute(
    view: View, chains: Chains, pairs: KnownPairs, bits: OperatorBits, own: LabelBounds
) -> LabelBounds:
    """`own` tightened by the distributed form, in the rows for which `pairs` was looked up."""
    c = jnp.maximum(chains.concepts[:, 2], 0)

    def with_c(column: int, slot: Int32[Array, " rows"]) -> LabelBounds:
        atom = jnp.maximum(chains.concepts[:, column], 0)
        estimated = join(
            LabelBounds.exact(view.concepts[atom]),
            view.concepts[c],
            bits,
            view.disjoint[atom, c],
            view.neuron,
        )
        exact = LabelBounds.exact(view.known[jnp.maximum(slot, 0)])
        return jax.tree.map(partial(jnp.where, (slot != UNKNOWN)[:, None]), exact, estimated)

    return distribute(own, with_c(0, pairs.first), with_c(1, pairs.second))
