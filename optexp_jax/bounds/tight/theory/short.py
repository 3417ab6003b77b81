"""How much short formulas of a subproblem can be worth: limits for parts of longer ones.

They are exact (Proposition 2), and stand in for a part of each split of Proposition 13.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64

from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.theory.bound_inputs import NEVER, BoundInputs
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class ShortFormulaBounds:
    """The highest W of short formulas in a subproblem."""

    light: Float64[Array, " subs"]
    """Of a light concept."""
    light_union: Float64[Array, " subs"]
    """Of light concepts x OR y."""
    two: Float64[Array, " subs"]
    """Of at most two concepts, or none at all."""
    three: Float64[Array, " subs"]
    """Of at most three."""


@partial(jax.jit, static_argnames=("ops",))
def short_formulas(inputs: BoundInputs, *, ops: OperatorSet) -> ShortFormulaBounds:
    """Limits of all but three concepts, which are left infinite."""
    note_trace("short_formulas")
    light, every = inputs.allowed & inputs.light, inputs.all_rows()
    usable = every.mine(inputs.allowed)

    def where(
        kept: Bool[Array, "#subs #n #m"], values: Float64[Array, "subs n m"]
    ) -> Float64[Array, "subs n m"]:
        return jnp.where(kept, values, NEVER)

    unions, light_unions, intersections, differences = every.most_of_each(
        where(usable & ops.union, every.union),
        where(every.mine(light) & every.theirs(light), every.union),
        where(usable & ops.intersection, every.both),
        where(usable & ops.difference, every.without),
    )
    single = jnp.where(inputs.allowed, inputs.own, NEVER)
    two = jnp.stack([single, unions, intersections, differences]).max((0, 2))
    return ShortFormulaBounds(
        light=jnp.where(light, inputs.own, NEVER).max(1),
        light_union=light_unions.max(1),
        two=jnp.maximum(two, 0.0),
        three=jnp.full_like(two, jnp.inf),
    )
