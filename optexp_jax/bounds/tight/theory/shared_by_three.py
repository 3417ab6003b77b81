"""What a label P shares with two further concepts at once: limits of `W(P ∩ x ∩ y)`.

Once P is expanded, P, x, y and what each two of them share are exact. Then W of every `(P∘x)∘y` is
a sum of exact numbers, and of `W(P ∩ x ∩ y)` with a sign (Proposition 16). Limits of this one
number are all that is left to bound.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32

from optexp_jax.bounds.tight.operator_set import common_to_three
from optexp_jax.bounds.tight.theory.bound_inputs import GramRows
from optexp_jax.internal.pytrees import pytree


@pytree
class LabelOverlaps:
    """How many locations labels have, and share with every concept, on one side of the neuron."""

    own: Float64[Array, "labels one"]
    shared: Float64[Array, "labels concepts"]


@pytree
class WeightLimits:
    """The least and the most that a W can be, next to W of a larger set: that rounds for both."""

    low: Float64[Array, "labels concepts"]
    high: Float64[Array, "labels concepts"]


def shared_by_three(
    inside: LabelOverlaps, outside: LabelOverlaps, block: GramRows, x: Int32[Array, " labels"]
) -> WeightLimits:
    """Limits of `W(P ∩ x ∩ y)` for every y; `block` has the rows of each label's x."""

    def limits(
        label: LabelOverlaps,
        own: Float64[Array, "subs concepts"],
        with_x: Float64[Array, "labels concepts"],
    ) -> tuple[Array, Array]:
        in_x = jnp.take_along_axis(label.shared, x[:, None], axis=1)
        sizes = label.own, block.mine(own), block.theirs(own)
        return common_to_three(*sizes, in_x, label.shared, with_x, jnp)

    least_i, most_i = limits(inside, block.inputs.own_i, block.i)
    least_e, most_e = limits(outside, block.inputs.own_e, block.e)
    return WeightLimits(low=least_i - block.v * most_e, high=most_i - block.v * least_e)
