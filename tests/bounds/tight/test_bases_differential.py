"""The tight search with other bases than |N|, against every formula there is."""

from fractions import Fraction

import numpy as np
from helpers.objective_cases import places, some_unit
from helpers.search_cases import seeds
from helpers.support import as_users_run_it, examples
from helpers.tight_cases import N
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.counts.scores import PivotScore, Score
from optexp_jax.search.driver import Search
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.search.problem import Problem
from optexp_jax.search.stopping import StoppingCriteria
from optexp_jax.testing import Case


def some_base(rng: np.random.Generator, case: Case) -> Fraction:
    """The two ends, and anything from a millionth of |N| to a million times as much."""
    size, total = case.neuron.size, case.table.n_locations
    kind = rng.integers(5)
    if kind < 2:
        return (Fraction(1, size + 1), Fraction(size * total + 1))[kind]
    if kind == 2:
        numerator, denominator = rng.integers(1, 2**40, 2).tolist()
        return Fraction(numerator, denominator)
    return size * Fraction(float(10.0 ** rng.uniform(-6, 6)))


def search(problem: Problem, batch_size: int | None = None) -> Search[object]:
    return Search(
        lambda: TightBounds().open(problem, batch_size),
        problem.neuron.size,
        Incumbent(),
        highest=problem.highest,
    )


@examples(60, in_thorough=5000)
@given(seed=seeds)
def test_agrees_with_enumeration(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(1, 5))
    base = some_base(rng, case)
    problem = Problem(case.table, case.neuron, length, ox.DEFAULT_OPERATORS, base)
    with as_users_run_it():
        found = search(problem).run(StoppingCriteria())
    values = {Fraction(p.i) / (base + p.e) for p in places(case, length)}
    best = max(values, default=Fraction(0))
    extras = found.union - case.neuron.size
    assert Fraction(found.intersection) / (base + extras) == best
    assert found.status == "optimal"


@examples(20)
@given(seed=seeds)
def test_bounds_hold_all_the_way(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(3, 5))
    base = some_base(rng, case)
    problem = Problem(case.table, case.neuron, length, ox.DEFAULT_OPERATORS, base)
    told: list[float] = []
    limits = StoppingCriteria(callback=lambda progress: told.append(progress.upper_bound))
    with as_users_run_it():
        search(problem, 1).run(limits)
    best = max((Fraction(p.i) / (base + p.e) for p in places(case, length)), default=0)
    # The bound is rounded up, or the value of the best formula, rounded to nearest.
    assert all(Fraction(bound) >= best or bound == float(best) for bound in told)


def test_scores_are_compared_exactly():
    base = Fraction(2**80 + 1, 3**40)
    shift = base - 7
    first, second = (
        PivotScore(i, 7 + e, shift) for i, e in ((10**15, 10**15), (10**15, 10**15 + 1))
    )
    assert first.ratio == Fraction(10**15) / (base + 10**15)
    assert first.ahead_of(second) > 0 > second.ahead_of(first)
    assert first.value == float(first.ratio)
    plain, same = Score(10**15, 7 + 10**15), PivotScore(10**15, 7 + 10**15, Fraction(0))
    assert plain.value == same.value
    assert plain.ratio == same.ratio
