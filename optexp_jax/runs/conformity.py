"""Whether a stored result is one that the run's own method can give, before anything is counted."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.counts.unverified import unverified_steps
from optexp_jax.explanation import Explanation, RunnerUp, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods import AbstractMethod, FormulaSpace, Proof
from optexp_jax.methods.oracle import count_unverified
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.null import NullModel, NullResult
from optexp_jax.runs.other_images import method_of_length
from optexp_jax.runs.other_images_check import conformity_to_other_images
from optexp_jax.runs.results import UnitResult
from optexp_jax.search.incumbent import MOST_EQUIVALENTS
from optexp_jax.validation.groups import Groups


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
    other = result.other_images
    method = method_of_length(asked.method, None if other is None else other.chosen)
    space = method.formula_space
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
    faults += _neuron_faults(found, names)
    faults += _status_faults(found, asked.method)
    if found.objective is not space.objective:
        faults.append(f"best by {found.objective}, where the run asks for {space.objective}")
    groups = Groups.of(asked.groups, table.n_samples)
    faults += conformity_to_other_images(other, found, asked.other_images, groups)
    return faults + _null_faults(result.null, asked.null)


def _null_faults(null: NullResult | None, asked: NullModel | None) -> list[str]:
    drawn, wanted = (0 if each is None else each.n for each in (null, asked))
    if null is None or asked is None or not null.stopped:
        right = drawn == wanted
    else:  # by the last draw, and by none before it
        right = drawn <= wanted and null.at_least == null.stop
    if right and (None if null is None else null.stop) == (None if asked is None else asked.stop):
        return []
    return [f"{drawn} draws of the null model, where the run asks for {wanted}"]


def _formula_faults(formula: Formula, space: FormulaSpace, names: set[str]) -> list[str]:
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


def _neuron_faults(found: Explanation, names: set[str]) -> list[str]:
    if found.neuron is None:
        return ["nothing is said of the unit's size and its best single concept"]
    concept = found.neuron.single.concept
    if concept is None or concept in names:
        return []
    return [f"the best single concept is {concept!r}, which the table does not have"]


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
    space: FormulaSpace,
    order: Callable[[Formula], Any],
) -> list[str]:
    faults: list[str] = []
    if found.formula is None and (found.equivalents or found.runners_up):
        faults.append("no formula, but others after it")
    if len(ranked) > space.most:
        faults.append(f"{len(ranked)} formulas, where the run asks for {space.most}")
    if not space.lists and any(each.equivalents for each in ranked):
        faults.append("equivalent formulas, which the run does not ask for")
    if found.within_truncated and (space.within is None or len(ranked) < space.most):
        faults.append("formulas within the share are said to be left out, and none is")
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
    if found.upper_bound < found.value:
        metric = found.objective.label
        faults.append(f"the upper bound {found.upper_bound} is below the {metric} {found.value}")
    if optimal and found.upper_bound != found.value:
        faults.append(f"optimal, but with the upper bound {found.upper_bound}")
    stopped_by = found.stats.stopped_by
    has_limits = method.proof in (Proof.UNLESS_STOPPED, Proof.UNKNOWN)
    if stopped_by is not None and (optimal or not has_limits):
        faults.append(f"{found.status}, but stopped by {stopped_by}")
    match method.proof:
        case Proof.ALWAYS if not optimal:
            faults.append("feasible, from a method that looks at everything")
        case Proof.UNLESS_STOPPED if not optimal and stopped_by is None:
            faults.append("feasible, but no limit is said to have stopped it")
        case Proof.NEVER if optimal and found.formula is not None:
            faults.append("optimal, which a method of this kind cannot know")
        case _:
            pass
    return faults
