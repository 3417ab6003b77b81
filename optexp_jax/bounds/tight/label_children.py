"""Exact scores of labels joined with every concept, a batch of labels in one call."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.forms import INTERSECTION, UNION, Forms
from optexp_jax.bounds.tight.grams import Gram
from optexp_jax.bounds.tight.label_counts import LabelCounts
from optexp_jax.bounds.tight.pair_scores import iou
from optexp_jax.bounds.tight.region import NEVER, diagonals
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class Surroundings:
    """What the labels of some places are joined with."""

    own_inside: Int64[Array | np.ndarray, "places concepts"]
    own_outside: Int64[Array | np.ndarray, "places concepts"]
    """Counts of every concept, where nothing is decided."""
    allowed: Bool[Array | np.ndarray, "places concepts"]
    decided_inside: Int64[Array | np.ndarray, " places"]
    """Locations that the outer steps have decided to be positive."""
    decided_union: Int64[Array | np.ndarray, " places"]
    """Those outside of the neuron, and the neuron itself."""

    def of(self, place: Int32[Array | np.ndarray, " labels"]) -> "Surroundings":
        """Those of each label's place."""
        return jax.tree.map(lambda part: part[place], self)


@pytree
class LabelsThere:
    """Labels of some places, with what they share with every concept there."""

    place: Int32[Array | np.ndarray, " labels"]
    inner: Int32[Array | np.ndarray, "labels length"]
    """Their concepts, as their place numbers them."""
    counts: LabelCounts


@jax.jit
def surroundings_of(
    grams: Sequence[Gram],
    allowed: Bool[Array | np.ndarray, "places concepts"],
    decided_inside: Int64[Array | np.ndarray, " places"],
    decided_union: Int64[Array | np.ndarray, " places"],
) -> Surroundings:
    """From the Gram matrices of each place."""
    note_trace("surroundings_of")
    own = (
        jnp.concatenate([diagonals(part) for part in parts])
        for parts in ([gram.inside for gram in grams], [gram.outside for gram in grams])
    )
    rest = (jnp.asarray(part) for part in (allowed, decided_inside, decided_union))
    return Surroundings(*own, *rest)


@partial(jax.jit, static_argnames=("forms",))
def score_children(
    places: Surroundings, labels: LabelsThere, *, forms: Forms
) -> Float64[Array, "labels forms concepts"]:
    """IoUs in floating point (to be compared exactly); −1 for children that are not needed."""
    note_trace("score_children")
    around = places.of(labels.place)
    inside, outside = _joined(around, labels.counts)
    inside += around.decided_inside[:, None, None]
    scores = iou(inside, outside, jnp.asarray(around.decided_union)[:, None, None])
    return jnp.where(_needed(around, labels, forms), scores, -1.0)


@jax.jit
def highest_score(
    scores: Float64[Array, "labels forms concepts"],
    n_labels: Int32[Array, ""],
) -> Float64[Array, ""]:
    """Of the first labels."""
    note_trace("highest_score")
    real = jnp.arange(len(scores), dtype=jnp.int32) < n_labels
    return jnp.where(real, scores.max((1, 2)), -1.0).max()


@jax.jit
def counts_of_children(
    places: Surroundings,
    labels: LabelsThere,
    row: Int32[Array | np.ndarray, " children"],
    form: Int32[Array | np.ndarray, " children"],
    x: Int32[Array | np.ndarray, " children"],
) -> Int64[Array, "two children"]:
    """Exact counts of some children, inside the neuron and outside."""
    note_trace("counts_of_children")
    return joined_counts(places, labels, jnp.asarray(row), jnp.asarray(form), jnp.asarray(x), jnp)


def joined_counts(
    places: Surroundings, labels: LabelsThere, row: Any, form: Any, x: Any, numpy: Any
) -> Any:
    """The same, for arrays of numpy or of jax.numpy."""
    counts, place = labels.counts, labels.place[row]

    def joined(first: Any, second: Any, common: Any) -> Any:
        wider = first - common + numpy.where(form == UNION, second, numpy.zeros_like(second))
        return numpy.where(form == INTERSECTION, common, wider)

    inside = joined(counts.inside[row], places.own_inside[place, x], counts.shared_inside[row, x])
    outside = joined(
        counts.outside[row], places.own_outside[place, x], counts.shared_outside[row, x]
    )
    return numpy.stack([inside, outside])


@partial(jax.jit, static_argnames=("forms",))
def highest_w(
    places: Surroundings, labels: LabelsThere, v: Float64[Array, ""], *, forms: Forms
) -> Float64[Array, " labels"]:
    """The highest W of a child of each label, over what is undecided, rounded up; −∞ if none."""
    note_trace("highest_w")
    around = places.of(labels.place)
    inside, outside = _joined(around, labels.counts)
    w = weight(inside.astype(jnp.float64), v * outside.astype(jnp.float64))
    return jnp.where(_needed(around, labels, forms), w, NEVER).max((1, 2))


def _joined(
    around: Surroundings, labels: LabelCounts
) -> tuple[Int64[Array, "labels forms concepts"], Int64[Array, "labels forms concepts"]]:
    """Counts of `P OR x`, `P AND x` and `P AND NOT x`, inside the neuron and outside."""
    inside = labels.inside[:, None] - labels.shared_inside
    outside = labels.outside[:, None] - labels.shared_outside
    return (
        jnp.stack([inside + around.own_inside, labels.shared_inside, inside], axis=1),
        jnp.stack([outside + around.own_outside, labels.shared_outside, outside], axis=1),
    )


def _needed(
    around: Surroundings, labels: LabelsThere, forms: Forms
) -> Bool[Array, "labels forms concepts"]:
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
            apart & left & forms.union,
            apart & left & meets & forms.intersection,
            usable & left & meets & forms.difference,
        ],
        axis=1,
    )


def not_in(
    inner: Int32[Array | np.ndarray, "labels length"], n_concepts: int
) -> Bool[Array, "labels concepts"]:
    """Which concepts are not in each label."""
    every = jnp.arange(n_concepts, dtype=inner.dtype)
    return (jnp.asarray(inner)[:, :, None] != every[None, None, :]).all(1)
