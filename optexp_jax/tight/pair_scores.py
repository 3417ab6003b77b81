"""Exact scores of all pairs of concepts, from the Gram matrices."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.region import NEVER, Block, Region
from optexp_jax.tracing import note_trace


@pytree
class Decided:
    """Locations outside of a region: what the outer steps have decided to be positive."""

    inside: Int64[Array, ""]
    union: Int64[Array, ""]
    """Those outside of the neuron, and the neuron itself."""

    def iou(self, inside: Int64[Array, "..."], outside: Int64[Array, "..."]) -> Array:
        """The IoU, in floating point, of what has so many locations in the region."""
        intersection = (self.inside + inside).astype(jnp.float64)
        return intersection / (self.union + outside).astype(jnp.float64)


@pytree
class PairScores:
    """IoUs in floating point, to be compared exactly."""

    single: Float64[Array, " concepts"]
    highest: Float64[Array, "concepts forms"]
    """Of all pairs with the same first concept."""


@pytree
class AllScores:
    """The same with every pair; −∞ for pairs that are not proper."""

    single: Float64[Array, " concepts"]
    pairs: Float64[Array, "concepts forms concepts"]


@partial(jax.jit, static_argnames=("forms",))
def score_pairs(region: Region, decided: Decided, *, forms: Forms) -> PairScores:
    """IoUs of every concept, and the highest ones of proper pairs."""
    note_trace("score_pairs")
    highest = _scores(region.all_rows(), decided, forms).max(2)
    return PairScores(_single(region, decided), highest)


@partial(jax.jit, static_argnames=("forms",))
def score_all(region: Region, decided: Decided, *, forms: Forms) -> AllScores:
    """IoUs of every concept and every proper pair."""
    note_trace("score_all")
    pairs = _scores(region.all_rows(), decided, forms)
    return AllScores(_single(region, decided), pairs)


def _single(region: Region, decided: Decided) -> Float64[Array, " concepts"]:
    own = jnp.diagonal(region.gram.inside), jnp.diagonal(region.gram.outside)
    return jnp.where(region.allowed, decided.iou(*own), NEVER)


@partial(jax.jit, static_argnames=("forms",))
def scores_of_rows(
    region: Region, decided: Decided, a: Int32[Array, " rows"], *, forms: Forms
) -> Float64[Array, "rows forms concepts"]:
    """IoUs of the proper pairs of some concepts with every other; of the rest, −∞."""
    note_trace("scores_of_rows")
    return _scores(region.rows(a), decided, forms)


def _scores(block: Block, decided: Decided, forms: Forms) -> Float64[Array, "rows forms concepts"]:
    gram, a = block.region.gram, block.a

    def counts(
        pairs: Int64[Array, "n n"], both: Int64[Array, "rows n"]
    ) -> Int64[Array, "rows forms n"]:
        own = jnp.diagonal(pairs)
        left = own[a][:, None] - both
        return jnp.stack([left + own[None, :], both, left], axis=1)

    iou = decided.iou(counts(gram.inside, block.inside), counts(gram.outside, block.outside))
    return jnp.where(block.usable(forms) & block.proper(), iou, NEVER)
