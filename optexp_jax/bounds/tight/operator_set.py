"""The three operators of a step, by number, and which of them may be used."""

from collections.abc import Sequence
from dataclasses import dataclass

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
