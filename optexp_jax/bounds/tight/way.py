"""Which way a search goes: over chains or over sets of concepts, by a count of the work."""

import enum
from dataclasses import dataclass

from optexp_jax.bounds.tight.sets.cells import MOST_CONCEPTS
from optexp_jax.bounds.tight.sets.every_set import SetsCost
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.formulas.operators import DEFAULT_OPERATORS
from optexp_jax.search.problem import Problem


class Way(enum.StrEnum):
    """How the tight search goes about a problem; compares equal to its string."""

    AUTO = "auto"
    """The one that takes least, by a count of the work."""
    CHAINS = "chains"
    """Chains, from the outermost step inward."""
    SETS = "sets"
    """Sets of concepts, those ruled out of which no function is good enough."""
    ENUMERATION = "enumeration"
    """Sets of concepts, all of them."""
    SHARES = "shares"
    """Sets of concepts, one concept at a time: for large tables."""


@dataclass(frozen=True)
class ChosenWay:
    """A way, and why it was taken."""

    way: Way
    why: str

    def __str__(self) -> str:
        return f"{self.way}: {self.why}"

    @classmethod
    def of(cls, problem: Problem, tuning: Tuning, asked: Way) -> "ChosenWay":
        """What was asked for, or what takes least. Too much memory is refused beforehand."""
        if problem.base is not None:
            if asked not in (Way.AUTO, Way.CHAINS):
                raise ValueError(
                    f"way={str(asked)!r} compares formulas by IoU alone. Use way='auto' for other "
                    "objectives."
                )
            return cls(Way.CHAINS, "formulas are not compared by IoU")
        n = problem.depth
        cost = SetsCost.of(problem.table.n_concepts, problem.table.signatures.lengths, n)
        megabytes = -(-cost.bytes // 2**20)
        if asked is Way.SHARES and not problem.only_best:
            raise ValueError(
                "way='shares' finds the best formula alone, without runners-up. Use way='auto'."
            )
        if asked is Way.SHARES and n > MOST_CONCEPTS:
            raise ValueError(
                f"way='shares' is for formulas of at most {MOST_CONCEPTS} concepts; got {n}. "
                "Use way='auto' or shorter formulas."
            )
        if asked in (Way.CHAINS, Way.SHARES):
            return cls(asked, "asked for")
        too_much = n > MOST_CONCEPTS or cost.bytes > tuning.sets_bytes
        if asked is not Way.AUTO:
            if too_much:
                raise ValueError(
                    f"way={str(asked)!r} would take {megabytes} MB for formulas of {n} of "
                    f"{problem.table.n_concepts} concepts, and at most "
                    f"{tuning.sets_bytes // 2**20} MB and {MOST_CONCEPTS} concepts are allowed. "
                    "Use way='auto', shorter formulas or fewer concepts."
                )
            return cls(asked, "asked for")
        counted = f"{cost.sets} sets of {n} concepts have {cost.cells} cells, {megabytes} MB"
        if too_much or cost.cells > tuning.sets_cells:
            way = Way.SHARES if _suits_shares(problem, tuning) else Way.CHAINS
            return cls(way, f"{counted}, too many to look at each")
        if n < SHORTEST and not problem.any_shape:
            return cls(Way.CHAINS, f"formulas of {n} concepts are few")
        return cls(Way.SETS, counted)


SHORTEST = 4
"""Formulas of fewer concepts are found as soon by chains."""


def _suits_shares(problem: Problem, tuning: Tuning) -> bool:
    """Whether shares are faster than chains.

    Shares bound all Boolean functions: where an operator is missing, or no concepts meet, that is
    far more than there is to find.
    """
    every = all(operator in problem.operators for operator in DEFAULT_OPERATORS)
    overlapping = bool((problem.table.signatures.lengths > 1).any())
    long = tuning.shortest_by_shares <= problem.depth <= MOST_CONCEPTS
    return problem.only_best and every and overlapping and long
