"""The forms of a step: which of the three operators it is."""

from collections.abc import Sequence

import equinox as eqx

from optexp_jax.operators import AND, AND_NOT, OR, Operator

UNION, INTERSECTION, DIFFERENCE = 0, 1, 2
"""The forms of a pair: a OR b, a AND b, a AND NOT b."""

OPERATORS = (OR, AND, AND_NOT)
"""The operator of each form."""


class Forms(eqx.Module):
    """Which operators may be used."""

    union: bool = eqx.field(static=True)
    intersection: bool = eqx.field(static=True)
    difference: bool = eqx.field(static=True)

    @classmethod
    def of(cls, operators: Sequence[Operator]) -> "Forms":
        return cls(*(operator in operators for operator in OPERATORS))
