"""Checking that a family of bounds is admissible, on many small problems solved by enumeration."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optexp_jax.bounds.base import AbstractBounds
from optexp_jax.counts.unverified import formula_order
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.methods.base import check_count
from optexp_jax.search.driver import InadmissibleBoundError, best_first
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.search.problem import Problem
from optexp_jax.search.stopping import Progress, StoppingCriteria
from optexp_jax.testing.cases import random_case
from optexp_jax.testing.checked_space import CheckedSpace, Claim, FalseClaimError
from optexp_jax.testing.truth import Trial, Truth

SHAPES: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 3), (1, 1)),
    2: ((6, 3),),
    3: ((6, 3), (6, 1)),
}
"""Concepts and samples of the cases by formula length: few, since every shape is compiled anew."""
LONG_SHAPES = ((4, 3), (3, 1))
"""For longer formulas; with three concepts, formulas cannot get as long as they may."""
SHRINKING_STEPS = 100


@dataclass(frozen=True)
class Counterexample:
    """A problem, and a claim that the family makes in it which is not true."""

    trial: Trial
    claim: Claim

    def __str__(self) -> str:
        return f"{self.claim}\n\nin a search for {self.trial}"


@dataclass(frozen=True)
class AdmissibilityReport:
    """How much was checked, and the first thing that was wrong."""

    cases: int
    """Problems searched."""
    nodes: int
    """Nodes whose bounds were checked."""
    bounds: int
    """Formulas that those bounds were compared with, summed over nodes."""
    counterexample: Counterexample | None = None

    @property
    def admissible(self) -> bool:
        """Whether nothing was found, which is no proof."""
        return self.counterexample is None

    def __str__(self) -> str:
        work = (
            f"{self.cases} cases, {self.nodes} nodes, "
            f"{self.bounds} comparisons of a bound with a formula"
        )
        if self.counterexample is None:
            return f"No counterexample in {work}."
        return f"NOT ADMISSIBLE, found after {work}.\n{self.counterexample}"


BoundsOrFactory = AbstractBounds | Callable[[Problem], AbstractBounds]
"""A family of bounds, or what makes one for each problem."""


def check_admissible(
    bounds: BoundsOrFactory,
    *,
    cases: int = 200,
    seed: int = 0,
    lengths: Sequence[int] = (1, 2, 3, 4),
    operators: Iterable[Operator] = DEFAULT_OPERATORS,
    batch_size: int = 8,
) -> AdmissibilityReport:
    """Look for a problem in which a family of bounds claims something that is not true.

    Searches generated problems small enough to enumerate. In every turn of every search it compares
    each node's upper bound with the best formula that the node stands for, lower bounds with the
    optimum, and exact scores with the truth; in the end, the result with the optimum. It stops at
    the first difference and makes the problem smaller as long as something is wrong in it.

    `bounds` is a family, or a function that makes one for a problem, for families that hold
    something of the problem, such as a table learned from it.
    """
    _check_bounds(bounds)
    for length in lengths:
        check_count(length, "length")
    chosen = check_operators(operators)
    rng = np.random.default_rng(seed)
    nodes = comparisons = 0
    for number, plan in enumerate(_plan(rng, cases, lengths), start=1):
        length, case = plan.length, random_case(rng, plan.n_concepts, plan.n_samples)
        outcome = _try(bounds, Trial(case, length, chosen, batch_size, bool(rng.random() < 0.5)))
        nodes += outcome.nodes
        comparisons += outcome.bounds
        if outcome.counterexample is not None:
            found = _shrink(bounds, outcome.counterexample)
            return AdmissibilityReport(number, nodes, comparisons, found)
    return AdmissibilityReport(cases, nodes, comparisons)


@dataclass(frozen=True)
class _Plan:
    """The size of one problem."""

    length: int
    n_concepts: int
    n_samples: int


def _plan(rng: np.random.Generator, cases: int, lengths: Sequence[int]) -> list[_Plan]:
    """Sizes of all problems; those of one size together, as each takes seconds to compile.

    Most mistakes show with three concepts and several samples, so these come first.
    """
    plans: list[_Plan] = []
    for _ in range(cases):
        length = int(rng.choice(np.asarray(lengths)))
        shapes = SHAPES.get(length, LONG_SHAPES)
        plans.append(_Plan(length, *shapes[rng.integers(len(shapes))]))
    return sorted(plans, key=lambda plan: (abs(plan.length - 3), plan.length, -plan.n_samples))


def _check_bounds(bounds: object) -> None:
    # A class is callable, too; called with a problem it would fail later, and oddly.
    if isinstance(bounds, AbstractBounds) or (callable(bounds) and not isinstance(bounds, type)):
        return
    raise TypeError(
        "bounds must be a family such as PaperBounds(), or a function from a Problem to a family; "
        f"got {bounds!r}. Vectors are checked as PaperBounds(vectors=...)."
    )


def _family(bounds: BoundsOrFactory, problem: Problem) -> AbstractBounds:
    if isinstance(bounds, AbstractBounds):
        return bounds
    made = bounds(problem)
    if not isinstance(made, AbstractBounds):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"the function must return a family of bounds such as PaperBounds(); got {made!r}"
        )
    return made


def _try(bounds: BoundsOrFactory, trial: Trial) -> AdmissibilityReport:
    """Search one problem with every claim checked."""
    truth = Truth(trial)
    problem = trial.problem
    space: CheckedSpace[Any] = CheckedSpace(
        _family(bounds, problem).open(problem, trial.batch_size), truth, trial.blind
    )
    optimum = truth.best_score.ratio

    def check_progress(progress: Progress) -> None:
        if Fraction(progress.upper_bound) < Fraction(truth.best_score.iou):
            raise FalseClaimError(
                Claim(
                    "the search's upper bound for all formulas",
                    progress.upper_bound,
                    truth.best.formula,
                    truth.best_score,
                )
            )

    wrong: Claim | None = None
    try:
        incumbent = Incumbent(order=formula_order(problem.table))
        limits = StoppingCriteria(callback=check_progress)
        found = best_first(space, truth.neuron_size, limits, incumbent)
        same = found.formula == truth.best.formula and found.score.ratio == optimum
        if found.status is not Status.OPTIMAL or not same:
            wrong = _wrong_result(found, truth)
    except FalseClaimError as error:
        wrong = error.claim
    except InadmissibleBoundError as error:
        wrong = Claim(f"the search failed: {error}", np.nan, truth.best.formula, truth.best_score)
    counterexample = None if wrong is None else Counterexample(trial, wrong)
    return AdmissibilityReport(1, space.nodes_checked, space.bounds_checked, counterexample)


def _wrong_result(found: Explanation, truth: Truth) -> Claim:
    return Claim(
        f"the search's result, {found.formula} ({found.status})",
        found.iou,
        truth.best.formula,
        truth.best_score,
    )


def _shrink(bounds: BoundsOrFactory, found: Counterexample) -> Counterexample:
    """The counterexample with concepts and cells taken out while something is still wrong."""
    steps = 0
    smaller: Counterexample | None = found
    while smaller is not None:
        found, smaller = smaller, None
        for trial in found.trial.shrunk():
            steps += 1
            smaller = _try(bounds, trial).counterexample
            if smaller is not None or steps >= SHRINKING_STEPS:
                break
    return found
