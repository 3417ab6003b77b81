"""Exact scores, from counts: of all pairs over the whole table, and of labels with every concept.

Both are Proposition 2 of `docs/explanation/tight_bounds.md`.

Pairs inside of outer steps were bounded where those steps came from, as three concepts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.counts.device_labels import LabelCounts
from optexp_jax.bounds.tight.counts.gram import Gram
from optexp_jax.bounds.tight.operator_set import OperatorSet, joined, joined_by_all
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.bounds.tight.theory.bound_inputs import NEVER, BoundInputs, GramRows, diagonals
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class PairScores:
    """IoUs in floating point, to be compared exactly."""

    single: Float64[Array, "subs concepts"]
    highest: Float64[Array, "subs concepts ops"]
    """Of all pairs with the same first concept."""


@pytree
class AllScores:
    """The same with every pair; −∞ for pairs that are not proper."""

    single: Float64[Array, "subs concepts"]
    pairs: Float64[Array, "subs concepts ops concepts"]


@partial(jax.jit, static_argnames=("ops",))
def score_pairs(
    inputs: BoundInputs, bases: Float64[Array, " subs"], *, ops: OperatorSet
) -> PairScores:
    """IoUs of every concept, and the highest ones of proper pairs."""
    note_trace("score_pairs")
    highest = _scores(inputs.all_rows(), bases, ops).max(-1)
    return PairScores(_single(inputs, bases), highest)


def all_scores(inputs: BoundInputs, bases: Float64[Array, " subs"], ops: OperatorSet) -> AllScores:
    """IoUs of every concept and every proper pair."""
    pairs = _scores(inputs.all_rows(), bases, ops)
    return AllScores(_single(inputs, bases), pairs)


@jax.jit
def single_scores(
    inputs: BoundInputs, bases: Float64[Array, " subs"]
) -> Float64[Array, "subs concepts"]:
    """IoUs of every concept."""
    note_trace("single_scores")
    return _single(inputs, bases)


def _single(inputs: BoundInputs, bases: Float64[Array, " subs"]) -> Float64[Array, "subs concepts"]:
    inside, outside = diagonals(inputs.gram.inside), diagonals(inputs.gram.outside)
    return jnp.where(inputs.allowed, iou(inside, outside, bases[:, None]), NEVER)


@partial(jax.jit, static_argnames=("ops",))
def scores_of_rows(
    inputs: BoundInputs,
    bases: Float64[Array, " subs"],
    sub: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    *,
    ops: OperatorSet,
) -> Float64[Array, "rows ops concepts"]:
    """IoUs of the proper pairs of some concepts with every other; of the rest, −∞."""
    note_trace("scores_of_rows")
    return _scores(inputs.rows(sub, a), bases, ops)


@jax.jit
def highest_of_rows(
    scores: Float64[Array, "rows ops concepts"],
) -> Float64[Array, "rows ops"]:
    """The highest of each row, by operator."""
    note_trace("highest_of_rows")
    return scores.max(-1)


def _scores(
    block: GramRows, bases: Float64[Array, " subs"], ops: OperatorSet
) -> Float64[Array, "*rows ops concepts"]:
    def counts(pairs: Int64[Array, "subs n n"]) -> Int64[Array, "*rows ops n"]:
        own, both = diagonals(pairs), block.of_pairs(pairs)
        return joined_by_all(block.mine(own), block.theirs(own), both, jnp, axis=-2)

    gram = block.inputs.gram
    union = block.of_sub(bases)[..., None]
    scores = iou(counts(gram.inside), counts(gram.outside), union)
    return jnp.where(block.usable(ops) & block.proper(), scores, NEVER)


def iou(
    inside: Int64[Array, "*shape"], outside: Int64[Array, "*shape"], union: Float64[Array, "..."]
) -> Float64[Array, "*shape"]:
    """IoUs in floating point; `union` is what is in the union anyway.

    That is |N|, or the base of the problem.
    """
    return inside.astype(jnp.float64) / (outside.astype(jnp.float64) + union)


@pytree
class LabelContext:
    """What the labels of some subproblems are joined with."""

    own_inside: Int64[Array | np.ndarray, "subs concepts"]
    own_outside: Int64[Array | np.ndarray, "subs concepts"]
    """Counts of every concept, where nothing is captured."""
    allowed: Bool[Array | np.ndarray, "subs concepts"]
    captured_inside: Int64[Array | np.ndarray, " subs"]
    """Locations that the outer steps have captured to be positive."""
    captured_union: Float64[Array | np.ndarray, " subs"]
    """Those outside of the neuron, and the neuron itself or the base that takes its place."""

    def of(self, sub: Int32[Array | np.ndarray, " labels"]) -> "LabelContext":
        """Those of each label's subproblem."""
        return jax.tree.map(lambda part: part[sub], self)


@pytree
class CountedLabels:
    """Labels of some subproblems, with what they share with every concept there."""

    sub: Int32[Array | np.ndarray, " labels"]
    inner: Int32[Array | np.ndarray, "labels length"]
    """Their concepts, as their subproblem numbers them."""
    counts: LabelCounts


@jax.jit
def surroundings_of(
    grams: Sequence[Gram],
    allowed: Bool[Array | np.ndarray, "subs concepts"],
    captured_inside: Int64[Array | np.ndarray, " subs"],
    captured_union: Float64[Array | np.ndarray, " subs"],
) -> LabelContext:
    """From the Gram matrices of each subproblem."""
    note_trace("surroundings_of")
    own = (
        jnp.concatenate([diagonals(part) for part in parts])
        for parts in ([gram.inside for gram in grams], [gram.outside for gram in grams])
    )
    rest = (jnp.asarray(part) for part in (allowed, captured_inside, captured_union))
    return LabelContext(*own, *rest)


@partial(jax.jit, static_argnames=("ops",))
def score_children(
    subs: LabelContext, labels: CountedLabels, *, ops: OperatorSet
) -> Float64[Array, "labels ops concepts"]:
    """IoUs in floating point (to be compared exactly); −1 for children that are not needed."""
    note_trace("score_children")
    around = subs.of(labels.sub)
    inside, outside = _joined(around, labels.counts)
    inside += around.captured_inside[:, None, None]
    scores = iou(inside, outside, jnp.asarray(around.captured_union)[:, None, None])
    return jnp.where(_needed(around, labels, ops), scores, -1.0)


@jax.jit
def highest_score(
    scores: Float64[Array, "labels ops concepts"],
    n_labels: Int32[Array, ""],
) -> Float64[Array, ""]:
    """Of the first labels."""
    note_trace("highest_score")
    real = jnp.arange(len(scores), dtype=jnp.int32) < n_labels
    return jnp.where(real, scores.max((1, 2)), -1.0).max()


@jax.jit
def counts_of_children(
    subs: LabelContext,
    labels: CountedLabels,
    row: Int32[Array | np.ndarray, " children"],
    op: Int32[Array | np.ndarray, " children"],
    x: Int32[Array | np.ndarray, " children"],
) -> Int64[Array, "two children"]:
    """Exact counts of some children, inside the neuron and outside."""
    note_trace("counts_of_children")
    return joined_counts(subs, labels, jnp.asarray(row), jnp.asarray(op), jnp.asarray(x), jnp)


def joined_counts(
    subs: LabelContext, labels: CountedLabels, row: Any, op: Any, x: Any, numpy: Any
) -> Any:
    """The same, for arrays of numpy or of jax.numpy."""
    counts, sub = labels.counts, labels.sub[row]

    inside = counts.inside[row], subs.own_inside[sub, x], counts.shared_inside[row, x]
    outside = counts.outside[row], subs.own_outside[sub, x], counts.shared_outside[row, x]
    return numpy.stack([joined(op, *part, numpy) for part in (inside, outside)])


@partial(jax.jit, static_argnames=("ops",))
def highest_w(
    subs: LabelContext, labels: CountedLabels, v: Float64[Array, ""], *, ops: OperatorSet
) -> Float64[Array, " labels"]:
    """The highest W of a child of each label, over what is residual, rounded up; −∞ if none."""
    note_trace("highest_w")
    around = subs.of(labels.sub)
    inside, outside = _joined(around, labels.counts)
    w = weight(inside.astype(jnp.float64), v * outside.astype(jnp.float64))
    return jnp.where(_needed(around, labels, ops), w, NEVER).max((1, 2))


def _joined(
    around: LabelContext, labels: LabelCounts
) -> tuple[Int64[Array, "labels ops concepts"], Int64[Array, "labels ops concepts"]]:
    """Counts of `P OR x`, `P AND x` and `P AND NOT x`, inside the neuron and outside."""
    inside = labels.inside[:, None], around.own_inside, labels.shared_inside
    outside = labels.outside[:, None], around.own_outside, labels.shared_outside
    return joined_by_all(*inside, jnp, axis=1), joined_by_all(*outside, jnp, axis=1)


def _needed(
    around: LabelContext, labels: CountedLabels, ops: OperatorSet
) -> Bool[Array, "labels ops concepts"]:
    """Children of another allowed concept; not those that exist with fewer concepts.

    Such are the ones that are empty, or equal to one of their sides.
    """
    counts = labels.counts
    usable = around.allowed & not_in(labels.inner, around.allowed.shape[1])
    common = counts.shared_inside + counts.shared_outside
    apart = (common != around.own_inside + around.own_outside) & usable
    left = common != (counts.inside + counts.outside)[:, None]
    meets = common > 0
    return jnp.stack(
        [
            apart & left & ops.union,
            apart & left & meets & ops.intersection,
            usable & left & meets & ops.difference,
        ],
        axis=1,
    )


def not_in(
    inner: Int32[Array | np.ndarray, "labels length"], n_concepts: int
) -> Bool[Array, "labels concepts"]:
    """Which concepts are not in each label."""
    every = jnp.arange(n_concepts, dtype=inner.dtype)
    return (jnp.asarray(inner)[:, :, None] != every[None, None, :]).all(1)
