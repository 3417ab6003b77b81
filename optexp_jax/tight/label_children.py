"""Exact scores of labels joined with every concept, a batch of labels in one call."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.labels import LabelCounts
from optexp_jax.tight.pair_scores import Decided
from optexp_jax.tight.region import NEVER
from optexp_jax.tracing import note_trace


@pytree
class Surroundings:
    """What labels of one place are joined with."""

    own_inside: Int64[Array, " concepts"]
    own_outside: Int64[Array, " concepts"]
    """Counts of every concept, where nothing is decided."""
    allowed: Bool[Array, " concepts"]
    decided: Decided


@partial(jax.jit, static_argnames=("forms",))
def score_children(
    around: Surroundings,
    labels: LabelCounts,
    inner: Int32[Array, "labels length"],
    *,
    forms: Forms,
) -> Float64[Array, "labels forms concepts"]:
    """IoUs in floating point (to be compared exactly); −1 for children that are not needed."""
    note_trace("score_children")
    iou = around.decided.iou(*_joined(around, labels))
    return jnp.where(_needed(around, labels, inner, forms), iou, -1.0)


@partial(jax.jit, static_argnames=("forms",))
def highest_w(
    around: Surroundings,
    labels: LabelCounts,
    inner: Int32[Array, "labels length"],
    v: Float64[Array, ""],
    *,
    forms: Forms,
) -> Float64[Array, " labels"]:
    """The highest W of a child of each label, over what is undecided; −∞ if there is none."""
    note_trace("highest_w")
    inside, outside = _joined(around, labels)
    w = inside.astype(jnp.float64) - v * outside.astype(jnp.float64)
    return jnp.where(_needed(around, labels, inner, forms), w, NEVER).max((1, 2))


def _joined(
    around: Surroundings, labels: LabelCounts
) -> tuple[Int64[Array, "labels forms concepts"], Int64[Array, "labels forms concepts"]]:
    """Counts of `P OR x`, `P AND x` and `P AND NOT x`, inside the neuron and outside."""

    inside = labels.inside[:, None] - labels.shared_inside
    outside = labels.outside[:, None] - labels.shared_outside
    return (
        jnp.stack([inside + around.own_inside[None, :], labels.shared_inside, inside], axis=1),
        jnp.stack([outside + around.own_outside[None, :], labels.shared_outside, outside], axis=1),
    )


def _needed(
    around: Surroundings, labels: LabelCounts, inner: Int32[Array, "labels length"], forms: Forms
) -> Bool[Array, "labels forms concepts"]:
    """Children of another allowed concept; not those that exist with fewer concepts.

    Such are the ones that are empty, or equal to one of their sides.
    """
    usable = around.allowed[None, :] & not_in(inner, len(around.allowed))
    common = labels.shared_inside + labels.shared_outside
    apart = (common != (around.own_inside + around.own_outside)[None, :]) & usable
    left = common != (labels.inside + labels.outside)[:, None]
    meets = common > 0
    return jnp.stack(
        [
            apart & left & forms.union,
            apart & left & meets & forms.intersection,
            usable & left & meets & forms.difference,
        ],
        axis=1,
    )


def not_in(inner: Int32[Array, "labels length"], n_concepts: int) -> Bool[Array, "labels concepts"]:
    """Which concepts are not in each label."""
    every = jnp.arange(n_concepts, dtype=inner.dtype)
    return (inner[:, :, None] != every[None, None, :]).all(1)
