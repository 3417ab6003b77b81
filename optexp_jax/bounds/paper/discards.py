"""Steps that cannot pay: what they lead to is no better than a shorter formula.

The published search does not compute paths where one side has no intersection with the neuron. Each
rule here leaves out a step `L∘c` because L alone, or c alone, has all of its locations inside the
neuron and none more outside, or because nothing is left inside. Operators that are monotone in
their left side keep that order whatever follows, so each formula that goes on from `L∘c` is matched
by one with fewer concepts. The proofs are in docs/explanation/paper_bounds.md. "Has none" reads the
upper end of an interval and "covers" the lower one: a lower limit of 0 proves nothing.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from optexp_jax.bounds.paper.label import LabelBounds, OperatorBits
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.formulas.operators import Operator


def useless_paths(
    label: LabelBounds, operators: tuple[Operator, ...]
) -> Bool[Array, "rows operators"]:
    """Which operators need not follow each label, whatever the concept."""
    nothing_common_inside = (label.ic.high == 0).all(-1)
    nothing_inside = nothing_common_inside & (label.iu == 0).all(-1)
    no_common_extras = (label.ec.high == 0).all(-1)
    no_extras = no_common_extras & (label.eu == 0).all(-1)
    # By bits, not by name: what holds for AND holds for an operator of the user's that equals it.
    rules = {
        0b111: nothing_inside,
        0b001: nothing_common_inside | no_extras,
        0b100: nothing_inside | no_common_extras,
    }
    return jnp.stack([rules[operator.truth_table] for operator in operators], axis=-1)


def useless_next(
    label: LabelBounds, operators: tuple[Operator, ...], kind: Int32[Array, " rows"]
) -> Bool[Array, " rows"]:
    """Whether the operator of index `kind` need not follow each label; it must be one of them."""
    every = useless_paths(label, operators)
    return jnp.take_along_axis(every, kind[:, None], axis=1)[:, 0]


def useless_steps(
    left: LabelBounds, right: Quantities, bits: OperatorBits, neuron: NeuronQuantities
) -> Bool[Array, " rows"]:
    """Which rows join two sides by OR of which one adds nothing inside the neuron to the other.

    A side adds nothing in a sample if it has no unique intersection there, and either no common
    one or the other side covers all of N^C.
    """
    everything = neuron.nc[None, :]
    right_adds_nothing = (right.iu == 0) & ((right.ic == 0) | (left.ic.low == everything))
    left_adds_nothing = (left.iu == 0) & ((left.ic.high == 0) | (right.ic == everything))
    is_or = (bits.p + bits.q + bits.r)[:, 0] == 3
    return is_or & (right_adds_nothing.all(-1) | left_adds_nothing.all(-1))
