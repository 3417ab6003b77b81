"""Our family of bounds: exact counts of pairs, and the outermost steps first."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx

from optexp_jax.bounds.base import AbstractBounds
from optexp_jax.bounds.paper.space import PaperBounds
from optexp_jax.bounds.tight.place_scores import prepare
from optexp_jax.bounds.tight.space import TightSpace
from optexp_jax.formulas.operators import DEFAULT_OPERATORS
from optexp_jax.search.driver import AbstractSpace
from optexp_jax.search.problem import Problem


class TightBounds(AbstractBounds):
    """Bounds from exact counts of pairs.

    They are made for OR, AND and AND NOT. A problem with other operators is handed to
    `PaperBounds`, whose estimates hold for every operator.
    """

    beam: int | None = eqx.field(default=None, kw_only=True)
    """Labels of each length whose children are scored first, to start with a good incumbent.

    None leaves it to the problem: 6, or none where the search itself is over as soon.
    """

    def prepare(self, problems: Sequence[Problem]) -> None:
        if _covers(problems[0]):
            prepare(problems)

    def open(self, problem: Problem, batch_size: int | None = None) -> AbstractSpace[Any]:
        if not _covers(problem):
            return PaperBounds().open(problem, batch_size)
        return TightSpace(problem, batch_size, self.beam)


def _covers(problem: Problem) -> bool:
    return all(operator in DEFAULT_OPERATORS for operator in problem.operators)
