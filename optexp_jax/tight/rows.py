"""What is known of each concept next to any other one: maxima over the rows of the Gram matrices.

They are made once for a region, and bound all of its pairs at once.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.region import NEVER, Region
from optexp_jax.tracing import note_trace


@pytree
class Rows:
    """Maxima over the other concepts z, for every concept a."""

    removed: Float64[Array, " concepts"]
    """v·E(a ∩ z): what a filter can take away of extras."""
    gain: Float64[Array, " concepts"]
    """W(a AND NOT z) − W(a)."""
    common: Float64[Array, " concepts"]
    """I(a ∩ z)."""
    half: Float64[Array, " concepts"]
    """I(a ∩ z) − v·E(a ∩ z) / 2."""
    added: Float64[Array, " concepts"]
    """W(z) + v·E(a ∩ z): z, where what it shares with a was paid for already."""
    union: Float64[Array, " concepts"]
    """W(a OR z)."""
    meets: Bool[Array, " concepts"]
    """Whether a meets any z at all."""
    two_removed: Float64[Array, " concepts"]
    """The two largest v·E(a ∩ z) together."""
    fresh: Float64[Array, " concepts"]
    """W(z \\ a) + removed(z): z next to a and a further concept."""

    def filtered(self, region: Region) -> Float64[Array, " concepts"]:
        """The highest W(a AND NOT z)."""
        return region.own + self.gain

    def third_share(self, region: Region) -> Float64[Array, " concepts"]:
        """How much each of three concepts can add to their union, shared locations divided equally.

        A location in m of the three counts 1/m for each, and 1/m >= 1/3 and >= 1 − (m − 1)/2.
        """
        paid = region.v * region.own_e
        return region.own_i - jnp.maximum(paid / 3, paid - self.two_removed / 2)


def rows_of(region: Region) -> Rows:
    """The maxima of a region.

    They take three programs: in one, XLA holds many matrices at once, and takes three times as
    long.
    """
    removed, gain, common, half, added, union, meets = _first_rows(region)
    two_removed, fresh = _two_removed(region, removed), _fresh(region, removed)
    return Rows(removed, gain, common, half, added, union, meets, two_removed, fresh)


@jax.jit
def _first_rows(region: Region) -> tuple[Array, ...]:
    """Those that do not build on others, as `Rows` has them."""
    note_trace("rows_of")
    own, every = region.own[None, :], region.all_rows()
    i, ve = every.i, every.ve
    *most, meets = every.most_of_each(ve, ve - i, i, i - ve / 2, own + ve, every.union, i + every.e)
    return *most, meets > 0


@jax.jit
def _two_removed(
    region: Region, removed: Float64[Array, " concepts"]
) -> Float64[Array, " concepts"]:
    every = region.all_rows()
    is_most = every.others & (every.ve == removed[:, None])
    below = every.most(jnp.where(is_most, NEVER, every.ve))
    second = jnp.where(is_most.sum(1) > 1, removed, below)
    return removed + jnp.maximum(second, 0.0)


@jax.jit
def _fresh(region: Region, removed: Float64[Array, " concepts"]) -> Float64[Array, " concepts"]:
    every = region.all_rows()
    return every.most((region.own + removed)[None, :] - every.both)
