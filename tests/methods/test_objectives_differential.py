"""The best formulas by F1, cosine and phi, against every formula there is."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers.objective_cases import best_of_all, key_of, some_unit
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import DIRECTED, N, by_sets, flat
from helpers.tight_helpers import solve
from hypothesis import given

import optexp_jax as ox
from optexp_jax.counts.metrics import Margins, Objective
from optexp_jax.search import Progress
from optexp_jax.testing import Case

OBJECTIVES = ("iou", "f1", "cosine", "phi")
each_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def assert_best(found: ox.Explanation, case: Case, objective: str, length: int) -> None:
    true = best_of_all(case, objective, length)
    assert found.status == "optimal"
    assert found.objective == objective
    if true is None:
        assert found.formula is None
        assert found.upper_bound == 0
        return
    assert found.formula == true.formula
    assert (found.intersection, found.union) == (
        true.intersection,
        case.neuron.size + true.extras,
    )
    assert found.upper_bound == found.value
    assert found.gap == 0


@each_objective
@examples(25, in_thorough=5000)
@given(seed=seeds)
def test_agrees_with_enumeration(objective: str, seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(1, 5))
    method = ox.Optimal(length, objective=objective)
    found = solve(case.table, case.neuron, method, as_large=seed % 4 == 1)
    assert_best(found, case, objective, length)


BEYOND_32_BITS = 2**33 + 7


@each_objective
@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("factor", [1, BEYOND_32_BITS])
def test_directed_cases(objective: str, name: str, factor: int):
    plain = DIRECTED[name]
    case = flat(
        plain.columns, plain.inside.reshape(-1) * factor, plain.outside.reshape(-1) * factor
    )
    found = solve(case.table, case.neuron, ox.Optimal(3, objective=objective))
    assert_best(found, case, objective, 3)


SMALL = {
    "a neuron that is active everywhere": by_sets(N, {"a": (5, 0), "b": (3, 0), "": (2, 0)}),
    "signatures without locations": by_sets(N, {"a": (0, 0), "ab": (4, 1), "b": (0, 3)}),
    "nothing overlaps": by_sets(N, {"a": (0, 5), "": (3, 3)}),
    "all that there is": by_sets(N, {"abcdef": (4, 0)}),
    "level on an edge": by_sets(N, {"a": (10, 0), "b": (10, 5), "c": (10, 5), "": (0, 50)}),
    "two vertices of one cosine": by_sets(N, {"a": (4, 0), "b": (12, 48), "": (4, 900)}),
}


@each_objective
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_small_cases(objective: str, name: str, length: int):
    case = SMALL[name]
    found = solve(case.table, case.neuron, ox.Optimal(length, objective=objective))
    assert_best(found, case, objective, length)


def test_where_phi_is_not_quasi_convex():
    # The best of three negative ones, (6, 6), lies below the line from (4, 1) to (9, 15).
    case = by_sets(3, {"abc": (1, 4), "ab": (5, 2), "a": (9, 3), "": (21, 0)})
    assert case.neuron.size == 36
    assert case.table.n_locations == 45
    key = key_of("phi", case.neuron)
    assert key(6, 6) > key(15, 9) > key(1, 4)
    assert key(6, 6) < 0
    assert 1 + (6 - 4) * Fraction(15 - 1, 9 - 4) > 6
    found = ox.explain(case.table, case.neuron, ox.Optimal(1, objective="phi"))
    assert found.formula is None
    assert found.status == "optimal"
    assert found.upper_bound == 0
    assert "no formula has a phi above 0" in str(found)


@each_objective
@examples(6)
@given(seed=seeds)
def test_what_is_stopped_holds_and_goes_on(objective: str, seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(3, 5))
    true = best_of_all(case, objective, length)
    key = key_of(objective, case.neuron)
    highest = Fraction(0) if true is None else key(true.intersection, true.extras)
    chains = ox.TightBounds(way="chains")
    method = ox.Optimal(length, objective=objective, bounds=chains, time_limit=1e-9, batch_size=1)
    found = solve(case.table, case.neuron, method)
    for _ in range(3):
        if found.status == "optimal":
            break
        assert found.stats.stopped_by == "time_limit"
        assert found.value <= found.upper_bound
        assert highest <= squared(objective, Fraction(found.upper_bound))
        found = ox.explain(case.table, case.neuron, method, resume=found.state)
    if found.status != "optimal":
        last = replace(method, time_limit=None)
        found = ox.explain(case.table, case.neuron, last, resume=found.state)
    assert_best(found, case, objective, length)


def squared(objective: str, value: Fraction) -> Fraction:
    """A value as `plain_key` has it."""
    return value * value if objective in ("cosine", "phi") else value


@pytest.mark.parametrize("objective", ["cosine", "phi"])
@examples(10)
@given(seed=seeds)
def test_progress_tells_falling_bounds_that_hold(objective: str, seed: int):
    rng = np.random.default_rng(seed)
    case = some_unit(rng, N)
    told: list[Progress] = []
    found = solve(case.table, case.neuron, ox.Optimal(3, objective=objective, callback=told.append))
    bounds = [progress.upper_bound for progress in told]
    assert bounds == sorted(bounds, reverse=True)
    assert all(bound >= found.value for bound in bounds)
    values = [progress.value for progress in told]
    assert values == sorted(values)


@examples(50)
@given(seed=seeds)
def test_gaps_stop_early(seed: int):
    case = some_unit(np.random.default_rng(seed), N)
    found = solve(case.table, case.neuron, ox.Optimal(3, objective="cosine", gap=0.3))
    true = best_of_all(case, "cosine", 3)
    if true is None:
        return
    assert found.gap <= 0.3
    margins = Margins(case.neuron.size, case.table.n_locations)
    best = margins.value(
        Objective.COSINE, margins.key(Objective.COSINE, true.extras, true.intersection)
    )
    assert found.value <= best <= found.upper_bound
