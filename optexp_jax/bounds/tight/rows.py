"""What is known of each concept next to any other one: maxima over the rows of the Gram matrices.

They are made once for the regions of some places, and bound all of their pairs at once.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64

from optexp_jax.bounds.tight.region import NEVER, BoundInputs
from optexp_jax.bounds.tight.rounding import slack, weight
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class Rows:
    """Maxima over the other concepts z, for every concept a."""

    removed: Float64[Array, "places concepts"]
    """v·E(a ∩ z): what a filter can take away of extras."""
    gain: Float64[Array, "places concepts"]
    """W(a AND NOT z) − W(a)."""
    common: Float64[Array, "places concepts"]
    """I(a ∩ z)."""
    half: Float64[Array, "places concepts"]
    """I(a ∩ z) − v·E(a ∩ z) / 2."""
    added: Float64[Array, "places concepts"]
    """W(z) + v·E(a ∩ z): z, where what it shares with a was paid for already."""
    union: Float64[Array, "places concepts"]
    """W(a OR z)."""
    meets: Bool[Array, "places concepts"]
    """Whether a meets any z at all."""
    two_removed: Float64[Array, "places concepts"]
    """The two largest v·E(a ∩ z) together."""
    fresh: Float64[Array, "places concepts"]
    """W(z \\ a) + removed(z): z next to a and a further concept."""

    def filtered(self, regions: BoundInputs) -> Float64[Array, "places concepts"]:
        """The highest W(a AND NOT z)."""
        return regions.own + self.gain

    def third_share(self, regions: BoundInputs) -> Float64[Array, "places concepts"]:
        """How much each of three concepts can add to their union, shared locations divided equally.

        A location in m of the three counts 1/m for each, and 1/m >= 1/3 and >= 1 − (m − 1)/2.
        """
        paid = regions.v[:, None] * regions.own_e
        least = jnp.maximum(paid / 3, paid - self.two_removed / 2)
        return regions.own_i - least + slack(regions.own_i, paid)


def rows_of(regions: BoundInputs) -> Rows:
    """The maxima of some regions.

    They take three programs: in one, XLA holds many matrices at once, and takes three times as
    long.
    """
    removed, gain, common, half, added, union, meets = _first_rows(regions)
    two_removed, fresh = _two_removed(regions, removed), _fresh(regions, removed)
    return Rows(removed, gain, common, half, added, union, meets, two_removed, fresh)


@jax.jit
def _first_rows(regions: BoundInputs) -> tuple[Array, ...]:
    """Those that do not build on others, as `Rows` has them."""
    note_trace("rows_of")
    every = regions.all_rows()
    own, i, ve = every.theirs(regions.own), every.i, every.ve
    *most, meets = every.most_of_each(
        ve, ve - i, i, weight(i, ve / 2), own + ve, every.union, i + every.e
    )
    return *most, meets > 0


@jax.jit
def _two_removed(
    regions: BoundInputs, removed: Float64[Array, "places concepts"]
) -> Float64[Array, "places concepts"]:
    every = regions.all_rows()
    is_most = every.others & (every.ve == every.mine(removed))
    below = every.most(jnp.where(is_most, NEVER, every.ve))
    second = jnp.where(is_most.sum(-1) > 1, removed, below)
    return removed + jnp.maximum(second, 0.0)


@jax.jit
def _fresh(
    regions: BoundInputs, removed: Float64[Array, "places concepts"]
) -> Float64[Array, "places concepts"]:
    every = regions.all_rows()
    return every.most(every.theirs(regions.own + removed) - every.shared)
