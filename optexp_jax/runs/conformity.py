"""Whether a stored result is one that the run's own method can give, before anything is counted."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation, RunnerUp, Status
from optexp_jax.formula import Formula
from optexp_jax.methods import AbstractMethod, Beam, Exhaustive, NetDissect, Optimal
from optexp_jax.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.oracle import count_unverified
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.results import UnitResult
from optexp_jax.scores import Score
from optexp_jax.search.incumbent import MOST_EQUIVALENTS
from optexp_jax.unverified import unverified_steps


@dataclass(frozen=True)
class Space:
    """The formulas that a method's claim is about, and how many of them it is to list."""

    length: int
    operators: tuple[Operator, ...]
    most: int = 1
    """Formulas that a result lists at most, the best one included."""
    within: float | None = None
    """How far, as a share, the last one may be below the best."""

    @property
    def lists(self) -> bool:
        """Whether runners-up are asked for."""
        return self.most > 1 or self.within is not None


def space_of(method: AbstractMethod) -> Space:
    """What a method may use, from its settings."""
    if isinstance(method, NetDissect):
        return Space(1, DEFAULT_OPERATORS)
    length = getattr(method, "length", None)
    operators = getattr(method, "operators", None)
    if length is None or operators is None:
        raise ValueError(f"It is not known which formulas {method!r} is about.")
    if not isinstance(method, Optimal):
        return Space(length, operators)
    most = method.top_k if method.within is None else method.limit
    return Space(length, operators, most, method.within)


@dataclass(frozen=True)
class Ranked:
    """One of the sets of locations of a result: its formula, others for the same set, its score."""

    formula: Formula
    equivalents: tuple[Formula, ...]
    score: Score

    @property
    def formulas(self) -> tuple[Formula, ...]:
        return (self.formula, *self.equivalents)


def ranking(found: Explanation) -> list[Ranked]:
    """All that a result lists, best first; nothing if no concept overlaps the unit."""
    if found.formula is None:
        return []
    best = RunnerUp(found.formula, found.intersection, found.union, found.equivalents)
    return [
        Ranked(each.formula, each.equivalents, Score(each.intersection, each.union))
        for each in (best, *found.runners_up)
    ]


def conformity_faults(
    result: UnitResult, found: Explanation, asked: Configuration, table: ConceptTable
) -> list[str]:
    """What in a result cannot come of the run's configuration."""
    space = space_of(asked.method)
    ranked, names = ranking(found), set(table.names)
    faults = [
        fault
        for each in ranked
        for formula in each.formulas
        for fault in _formula_faults(formula, space, names)
    ]
    if not faults:  # else not all of them can be compared
        faults += _ranking_faults(found, ranked, space, _order(table))
        faults += _unverified_faults(found, table)
    faults += _status_faults(found, asked.method)
    drawn, wanted = (0 if null is None else null.n for null in (result.null, asked.null))
    if drawn != wanted:
        faults.append(f"{drawn} draws of the null model, where the run asks for {wanted}")
    return faults


def _formula_faults(formula: Formula, space: Space, names: set[str]) -> list[str]:
    faults: list[str] = []
    if len(formula) > space.length:
        faults.append(f"{formula} has {len(formula)} concepts, the run allows {space.length}")
    foreign = [op for op in formula.operators if op not in space.operators]
    if foreign:
        faults.append(f"{formula} has the operator {foreign[0]}, which the run does not allow")
    unknown = [name for name in formula.concepts if name not in names]
    if unknown:
        faults.append(f"{formula} has the concept {unknown[0]!r}, which the table does not")
    return faults


def _order(table: ConceptTable) -> Callable[[Formula], Any]:
    """The order of formulas that are level, as the oracle has it."""
    there = table.sizes > 0

    def key(formula: Formula) -> tuple[int, int, Formula]:
        held = {
            name: table.signatures.membership(table.concept_id(name)) & there
            for name in formula.concepts
        }
        return len(formula), count_unverified(formula, held), formula

    return key


def _unverified_faults(found: Explanation, table: ConceptTable) -> list[str]:
    steps = () if found.formula is None else unverified_steps(table, found.formula)
    return [] if steps == found.unverified else ["other unverified steps than the formula has"]


def _ranking_faults(
    found: Explanation,
    ranked: Sequence[Ranked],
    space: Space,
    order: Callable[[Formula], Any],
) -> list[str]:
    faults: list[str] = []
    if found.formula is None and (found.equivalents or found.runners_up):
        faults.append("no formula, but others after it")
    if len(ranked) > space.most:
        faults.append(f"{len(ranked)} formulas, where the run asks for {space.most}")
    if not space.lists and any(each.equivalents for each in ranked):
        faults.append("equivalent formulas, which the run does not ask for")
    if found.limit_hit and (space.within is None or len(ranked) < space.most):
        faults.append("the limit is said to be hit, and is not")
    ranks = [(-each.score.ratio, order(each.formula)) for each in ranked]
    if any(not first < second for first, second in itertools.pairwise(ranks)):
        faults.append("a runner-up is above what it comes after, or stands there twice")
    if space.within is not None and any(
        each.score.ratio < found.score.ratio * (1 - Fraction(repr(space.within))) for each in ranked
    ):
        faults.append(f"a runner-up is further below the best than the share {space.within}")
    for each in ranked:
        if any(len(other) != len(each.formula) for other in each.equivalents):
            faults.append(f"an equivalent of {each.formula} has another length")
        if not _ascending(map(order, each.formulas)) or len(each.equivalents) > MOST_EQUIVALENTS:
            faults.append(f"the equivalents of {each.formula} are not in order, or too many")
    return faults


def _ascending(keys: Iterable[Any]) -> bool:
    return all(first < second for first, second in itertools.pairwise(keys))


def _status_faults(found: Explanation, method: AbstractMethod) -> list[str]:
    """What is wrong with the status and the bound, as this kind of method gives them."""
    faults: list[str] = []
    optimal = found.status is Status.OPTIMAL
    if found.upper_bound < found.iou:
        faults.append(f"the upper bound {found.upper_bound} is below the IoU {found.iou}")
    if optimal and found.upper_bound != found.iou:
        faults.append(f"optimal, but with the upper bound {found.upper_bound}")
    if isinstance(method, Beam) and optimal and found.formula is not None:
        faults.append("optimal, which a beam search cannot know")
    if isinstance(method, Exhaustive | NetDissect) and not optimal:
        faults.append("feasible, from a method that looks at everything")
    if isinstance(method, Optimal) and optimal != (found.stats.stopped_by is None):
        faults.append(f"{found.status}, but stopped by {found.stats.stopped_by}")
    return faults
