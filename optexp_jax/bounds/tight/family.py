"""Our family of bounds: exact counts of pairs, and the outermost steps first."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx

from optexp_jax.bounds.base import AbstractBounds, Prepared
from optexp_jax.bounds.paper.space import PaperBounds
from optexp_jax.bounds.tight.search.root import PreparedRoots
from optexp_jax.bounds.tight.search.space import TightSpace
from optexp_jax.bounds.tight.sets.prepared import PreparedSets
from optexp_jax.bounds.tight.sets.space import SetsSpace
from optexp_jax.bounds.tight.shares.space import SharesSpace
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.bounds.tight.way import ChosenWay, Way
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

    way: str = eqx.field(default="auto", kw_only=True)
    """Whether the search goes over "chains" or "sets" of concepts; "auto" counts the work.

    "enumeration" is over sets and rules none of them out; "shares" builds sets one concept at a
    time, for large tables and the best formula alone. `stats.way` tells which way was taken.
    """

    def __check_init__(self) -> None:
        if self.way not in tuple(Way):
            raise ValueError(f"way must be one of {', '.join(Way)}; got {self.way!r}.")

    def prepare(self, problems: Sequence[Problem]) -> Prepared | None:
        if not _covers(problems[0]):
            return None
        tuning = self.tuning(problems[0])
        way = ChosenWay.of(problems[0], tuning, Way(self.way)).way
        if way in (Way.SETS, Way.ENUMERATION):
            return PreparedSets.of(problems)
        return PreparedRoots.of(problems, tuning)

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> AbstractSpace[Any]:
        if not _covers(problem):
            return PaperBounds().open(problem, batch_size)
        tuning = self.tuning(problem)
        chosen = ChosenWay.of(problem, tuning, Way(self.way))
        if chosen.way in (Way.SETS, Way.ENUMERATION):
            shared = prepared.shared(problem) if isinstance(prepared, PreparedSets) else None
            screens = chosen.way is not Way.ENUMERATION
            return SetsSpace(
                problem, batch_size, way=str(chosen), tuning=tuning, shared=shared, screens=screens
            )
        counted = prepared.counted(problem) if isinstance(prepared, PreparedRoots) else None
        opened = SharesSpace if chosen.way is Way.SHARES else TightSpace
        space = opened(problem, batch_size, self.beam, tuning=tuning, counted=counted)
        space.way = str(chosen)
        return space

    def tuning(self, problem: Problem) -> Tuning:
        """How a search goes about the problem. It changes no result."""
        return Tuning.of(problem.table.n_concepts)


def _covers(problem: Problem) -> bool:
    return all(operator in DEFAULT_OPERATORS for operator in problem.operators)
