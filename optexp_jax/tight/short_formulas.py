"""How much short formulas of a region can be worth: limits for parts of longer ones."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.region import NEVER, Region
from optexp_jax.tracing import note_trace


@pytree
class Limits:
    """The highest W of short formulas in a region."""

    light: Float64[Array, ""]
    """Of a light concept."""
    light_union: Float64[Array, ""]
    """Of light concepts x OR y."""
    two: Float64[Array, ""]
    """Of at most two concepts, or none at all."""
    three: Float64[Array, ""]
    """Of at most three."""


@partial(jax.jit, static_argnames=("forms",))
def short_formulas(region: Region, *, forms: Forms) -> Limits:
    """Limits of all but three concepts, which are left infinite."""
    note_trace("short_formulas")
    light, every = region.allowed & region.light, region.all_rows()
    usable = region.allowed[:, None]

    def where(kept: Bool[Array, "#n #m"], values: Float64[Array, "n n"]) -> Float64[Array, "n n"]:
        return jnp.where(kept, values, NEVER)

    unions, light_unions, intersections, differences = every.most_of_each(
        where(usable & forms.union, every.union),
        where(light[:, None] & light[None, :], every.union),
        where(usable & forms.intersection, every.both),
        where(usable & forms.difference, every.without),
    )
    single = jnp.where(region.allowed, region.own, NEVER)
    two = jnp.stack([single, unions, intersections, differences]).max()
    return Limits(
        light=jnp.where(light, region.own, NEVER).max(),
        light_union=light_unions.max(),
        two=jnp.maximum(two, 0.0),
        three=jnp.full((), jnp.inf),
    )
