"""What is known of each concept next to any other one: maxima over the rows of the Gram matrices.

They are made once for some subproblems, and bound all of their pairs at once: Propositions 3 and
13 are stated in them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64

from optexp_jax.bounds.tight.rounding import slack, weight
from optexp_jax.bounds.tight.theory.bound_inputs import NEVER, BoundInputs
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class RowMaxima:
    """Maxima over the other concepts z, for every concept a."""

    removed: Float64[Array, "subs concepts"]
    """v·E(a ∩ z): what a filter can take away of extras."""
    gain: Float64[Array, "subs concepts"]
    """W(a AND NOT z) − W(a)."""
    common: Float64[Array, "subs concepts"]
    """I(a ∩ z)."""
    half: Float64[Array, "subs concepts"]
    """I(a ∩ z) − v·E(a ∩ z) / 2."""
    added: Float64[Array, "subs concepts"]
    """W(z) + v·E(a ∩ z): z, where what it shares with a was paid for already."""
    union: Float64[Array, "subs concepts"]
    """W(a OR z)."""
    meets: Bool[Array, "subs concepts"]
    """Whether a meets any z at all."""
    two_removed: Float64[Array, "subs concepts"]
    """The two largest v·E(a ∩ z) together."""
    fresh: Float64[Array, "subs concepts"]
    """W(z \\ a) + removed(z): z next to a and a further concept."""

    def filtered(self, inputs: BoundInputs) -> Float64[Array, "subs concepts"]:
        """The highest W(a AND NOT z)."""
        return inputs.own + self.gain

    def third_share(self, inputs: BoundInputs) -> Float64[Array, "subs concepts"]:
        """How much each of three concepts can add to their union, shared locations divided equally.

        A location in m of the three counts 1/m for each, and 1/m >= 1/3 and >= 1 − (m − 1)/2
        (Proposition 6).
        """
        paid = inputs.v[:, None] * inputs.own_e
        least = jnp.maximum(paid / 3, paid - self.two_removed / 2)
        return inputs.own_i - least + slack(inputs.own_i, paid)


def row_maxima(inputs: BoundInputs) -> RowMaxima:
    """The maxima of some regions.

    They take three programs: in one, XLA holds many matrices at once, and takes three times as
    long.
    """
    removed, gain, common, half, added, union, meets = _first_maxima(inputs)
    two_removed, fresh = _two_removed(inputs, removed), _fresh(inputs, removed)
    return RowMaxima(removed, gain, common, half, added, union, meets, two_removed, fresh)


@jax.jit
def _first_maxima(inputs: BoundInputs) -> tuple[Array, ...]:
    """Those that do not build on others, as `RowMaxima` has them."""
    note_trace("rows_of")
    every = inputs.all_rows()
    own, i, ve = every.theirs(inputs.own), every.i, every.ve
    *most, meets = every.most_of_each(
        ve, ve - i, i, weight(i, ve / 2), own + ve, every.union, i + every.e
    )
    return *most, meets > 0


@jax.jit
def _two_removed(
    inputs: BoundInputs, removed: Float64[Array, "subs concepts"]
) -> Float64[Array, "subs concepts"]:
    every = inputs.all_rows()
    is_most = every.others & (every.ve == every.mine(removed))
    below = every.most(jnp.where(is_most, NEVER, every.ve))
    second = jnp.where(is_most.sum(-1) > 1, removed, below)
    return removed + jnp.maximum(second, 0.0)


@jax.jit
def _fresh(
    inputs: BoundInputs, removed: Float64[Array, "subs concepts"]
) -> Float64[Array, "subs concepts"]:
    every = inputs.all_rows()
    return every.most(every.theirs(inputs.own + removed) - every.shared)


@pytree
class TwoStepMaxima:
    """Maxima over the other concepts z, for every concept a, that `RowMaxima` does not have."""

    light_added: Float64[Array, "subs concepts"]
    """W(z) + v·E(a ∩ z) of a light z."""
    light_fresh: Float64[Array, "subs concepts"]
    """The same, with removed(z): z next to a and a further concept."""
    removed_twice: Float64[Array, "subs concepts"]
    """v·E(a ∩ z) + removed(z)."""
    gained_twice: Float64[Array, "subs concepts"]
    """v·E(a ∩ z) − I(a ∩ z) + removed(z)."""
    kept: Float64[Array, "subs concepts"]
    """The highest W(z AND NOT y), and v·E(a ∩ z)."""


@jax.jit
def two_step_maxima(inputs: BoundInputs, maxima: RowMaxima) -> TwoStepMaxima:
    """The further maxima of a region."""
    note_trace("step_rows")
    every = inputs.all_rows()
    own, removed, filtered, light = (
        every.theirs(part)
        for part in (inputs.own, maxima.removed, maxima.filtered(inputs), inputs.light)
    )
    return TwoStepMaxima(
        *every.most_of_each(
            jnp.where(light, own + every.ve, NEVER),
            jnp.where(light, own + every.ve + removed, NEVER),
            every.ve + removed,
            every.ve - every.i + removed,
            filtered + every.ve,
        )
    )
