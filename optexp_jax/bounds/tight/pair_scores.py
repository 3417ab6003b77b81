"""Exact scores of all pairs of concepts over the whole table, from the Gram matrices.

Pairs inside of outer steps were bounded where those steps came from, as three concepts.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.region import NEVER, Block, BoundInputs, diagonals
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class PairScores:
    """IoUs in floating point, to be compared exactly."""

    single: Float64[Array, "places concepts"]
    highest: Float64[Array, "places concepts forms"]
    """Of all pairs with the same first concept."""


@pytree
class AllScores:
    """The same with every pair; −∞ for pairs that are not proper."""

    single: Float64[Array, "places concepts"]
    pairs: Float64[Array, "places concepts forms concepts"]


@partial(jax.jit, static_argnames=("forms",))
def score_pairs(
    regions: BoundInputs, neuron_sizes: Int64[Array, " places"], *, forms: Forms
) -> PairScores:
    """IoUs of every concept, and the highest ones of proper pairs."""
    note_trace("score_pairs")
    highest = _scores(regions.all_rows(), neuron_sizes, forms).max(-1)
    return PairScores(_single(regions, neuron_sizes), highest)


def all_scores(
    regions: BoundInputs, neuron_sizes: Int64[Array, " places"], forms: Forms
) -> AllScores:
    """IoUs of every concept and every proper pair."""
    pairs = _scores(regions.all_rows(), neuron_sizes, forms)
    return AllScores(_single(regions, neuron_sizes), pairs)


@jax.jit
def single_scores(
    regions: BoundInputs, neuron_sizes: Int64[Array, " places"]
) -> Float64[Array, "places concepts"]:
    """IoUs of every concept."""
    note_trace("single_scores")
    return _single(regions, neuron_sizes)


def _single(
    regions: BoundInputs, neuron_sizes: Int64[Array, " places"]
) -> Float64[Array, "places concepts"]:
    inside, outside = diagonals(regions.gram.inside), diagonals(regions.gram.outside)
    return jnp.where(regions.allowed, iou(inside, outside, neuron_sizes[:, None]), NEVER)


@partial(jax.jit, static_argnames=("forms",))
def scores_of_rows(
    regions: BoundInputs,
    neuron_sizes: Int64[Array, " places"],
    place: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    *,
    forms: Forms,
) -> Float64[Array, "rows forms concepts"]:
    """IoUs of the proper pairs of some concepts with every other; of the rest, −∞."""
    note_trace("scores_of_rows")
    return _scores(regions.rows(place, a), neuron_sizes, forms)


@jax.jit
def highest_of_rows(
    scores: Float64[Array, "rows forms concepts"],
) -> Float64[Array, "rows forms"]:
    """The highest of each row, by form."""
    note_trace("highest_of_rows")
    return scores.max(-1)


def _scores(
    block: Block, neuron_sizes: Int64[Array, " places"], forms: Forms
) -> Float64[Array, "*rows forms concepts"]:
    def counts(pairs: Int64[Array, "places n n"]) -> Int64[Array, "*rows forms n"]:
        own, both = diagonals(pairs), block.of_pairs(pairs)
        left = block.mine(own) - both
        return jnp.stack([left + block.theirs(own), both, left], axis=-2)

    gram = block.regions.gram
    union = block.of_place(neuron_sizes)[..., None]
    scores = iou(counts(gram.inside), counts(gram.outside), union)
    return jnp.where(block.usable(forms) & block.proper(), scores, NEVER)


def iou(
    inside: Int64[Array, "*shape"], outside: Int64[Array, "*shape"], union: Int64[Array, "..."]
) -> Float64[Array, "*shape"]:
    """IoUs in floating point; `union` is what is in the union anyway."""
    return inside.astype(jnp.float64) / (outside + union).astype(jnp.float64)
