"""The three operators of a step, by number: which of them may be used, and what a step counts.

Counts of sets follow from counts of smaller ones: of `P∘x`, and limits of what three sets share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Shaped

from optexp_jax.formulas.operators import AND, AND_NOT, OR, Operator
from optexp_jax.search.problem import Problem

UNION, INTERSECTION, DIFFERENCE = 0, 1, 2
"""The numbers of a OR b, a AND b and a AND NOT b."""

OPERATORS = (OR, AND, AND_NOT)
"""The operator of each number."""


@dataclass(frozen=True)
class OperatorSet:
    """Which operators may be used."""

    union: bool
    intersection: bool
    difference: bool

    @classmethod
    def of_problem(cls, problem: Problem) -> "OperatorSet":
        """None where formulas have one concept only."""
        return cls.of(problem.operators if problem.depth > 1 else ())

    @classmethod
    def of(cls, operators: Sequence[Operator]) -> "OperatorSet":
        return cls(*(operator in operators for operator in OPERATORS))


def joined(op: Shaped[Any, "*#shape"], first: Any, second: Any, common: Any, numpy: Any) -> Any:
    """How many locations `first∘second` has (Proposition 2); arrays of numpy or jax.numpy."""
    wider = first - common + numpy.where(op == UNION, second, 0)
    return numpy.where(op == INTERSECTION, common, wider)


def joined_by_all(first: Any, second: Any, common: Any, numpy: Any, axis: int) -> Any:
    """The same for OR, AND and AND NOT, along a further axis."""
    left = first - common
    return numpy.stack([left + second, common, left], axis=axis)


def common_to_three(
    a: Any, b: Any, x: Any, ab: Any, ax: Any, bx: Any, numpy: Any
) -> tuple[Any, Any]:
    """The least and the most that |a ∩ b ∩ x| can be, from what each two share (Proposition 4)."""
    low = numpy.maximum(ab + ax - a, ab + bx - b)
    low = numpy.maximum(numpy.maximum(low, ax + bx - x), 0)
    return low, numpy.minimum(numpy.minimum(ax, bx), ab)
