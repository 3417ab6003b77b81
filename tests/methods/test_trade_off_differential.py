"""The hull of all formulas, against every formula there is."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from helpers.objective_cases import Place, first_in_order, places, plain_hull, some_unit
from helpers.search_cases import seeds
from helpers.support import as_users_run_it, examples
from helpers.tight_cases import DIRECTED, N, flat
from hypothesis import given

import optexp_jax as ox
from optexp_jax.testing import Case


def run(case: Case, method: ox.TradeOff, resume: object = None) -> ox.TradeOffCurve:
    with as_users_run_it():
        return ox.trade_off(case.table, case.neuron, method, resume=resume)


def at(curve: ox.TradeOffCurve) -> list[Place]:
    return [Place(vertex.extras, vertex.intersection) for vertex in curve.vertices]


def assert_hull(curve: ox.TradeOffCurve, case: Case, length: int) -> None:
    formulas = places(case, length)
    assert at(curve) == plain_hull(set(formulas))
    assert curve.status == "optimal"
    assert all(segment.proved for segment in curve.segments)
    for vertex, place in zip(curve.vertices, at(curve), strict=True):
        assert vertex.proved
        assert vertex.formula == first_in_order(case, formulas[place])
        for slope in (vertex.lowest, vertex.highest):
            if slope is not None:
                most = max(p.i - slope * p.e for p in formulas)
                assert vertex.intersection - slope * vertex.extras == max(most, 0)
    for before, after in zip(curve.vertices[1:], curve.vertices, strict=False):
        assert before.highest == after.lowest


@examples(25, in_thorough=1500)
@given(seed=seeds)
def test_agrees_with_enumeration(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(1, 5))
    assert_hull(run(case, ox.TradeOff(length)), case, length)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("factor", [1, 2**33 + 7])
def test_directed_cases(name: str, factor: int):
    plain = DIRECTED[name]
    counts = plain.inside.reshape(-1) * factor, plain.outside.reshape(-1) * factor
    case = flat(plain.columns, *counts)
    assert_hull(run(case, ox.TradeOff(3)), case, 3)


RANGES = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 10.0, float("inf"))


@examples(15, in_thorough=600)
@given(seed=seeds)
def test_a_range_of_lambdas(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(1, 4))
    low, high = sorted(rng.choice(RANGES, 2, replace=False).tolist())
    curve = run(case, ox.TradeOff(length, lambdas=(low, high)))
    assert curve.status == "optimal"
    whole = run(case, ox.TradeOff(length))
    inside = [
        vertex
        for vertex in whole.vertices
        if vertex.lowest < high and (vertex.highest is None or vertex.highest > Fraction(low))
    ]
    assert [vertex.formula for vertex in curve.vertices] == [vertex.formula for vertex in inside]


@examples(10)
@given(seed=seeds)
def test_what_is_stopped_holds_and_goes_on(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_unit(rng, N), int(rng.integers(2, 5))
    formulas = places(case, length)
    limit = float(rng.choice([1e-9, 0.01, 0.03]))
    method = ox.TradeOff(length, time_limit=limit)
    curve = run(case, method)
    for _ in range(3):
        if curve.status == "optimal":
            break
        assert_fenced(curve, formulas)
        curve = run(case, method, curve.state)
    if curve.status != "optimal":
        curve = run(case, ox.TradeOff(length), curve.state)
    assert_hull(curve, case, length)


def assert_fenced(curve: ox.TradeOffCurve, formulas: Iterable[Place]) -> None:
    """No formula is above the fence, nor above what a segment says."""
    fence = [(Fraction(point.extras), Fraction(point.intersection)) for point in curve.fence]
    for place in formulas:
        ahead = [k for k, corner in enumerate(fence) if corner[0] >= place.e]
        if not ahead:
            highest = fence[-1][1]
        elif ahead[0] == 0:
            highest = fence[0][1]
        else:
            (e0, i0), (e1, i1) = fence[ahead[0] - 1], fence[ahead[0]]
            highest = i0 + (i1 - i0) * (place.e - e0) / (e1 - e0)
        assert place.i <= highest
    for segment in curve.segments:
        assert all(place.i - segment.slope * place.e <= segment.upper for place in formulas)
        assert segment.weight <= segment.upper


def test_metrics_are_best_on_the_hull():
    rng = np.random.default_rng(1)
    for _ in range(5):
        case = some_unit(rng, N)
        curve = run(case, ox.TradeOff(3))
        for objective in ox.Objective:
            found = ox.explain(case.table, case.neuron, ox.Optimal(3, objective=objective))
            best = curve.best(objective)
            assert (best is None) == (found.formula is None)
            if best is not None:
                assert best.overlap.value(objective) == found.value


def test_print():
    case = DIRECTED["disjoint"]
    text = str(run(case, ox.TradeOff(2)))
    titles = "λ from to I E IoU F1 cosine phi precision recall formula"
    assert text.splitlines()[0].split() == titles.split()
    assert text.endswith("optimal, no formula is above this hull")


def test_refused():
    case = DIRECTED["disjoint"]
    with pytest.raises(ValueError, match="lambdas must be a lower and a higher"):
        ox.TradeOff(3, lambdas=(1.0, 0.5))
    with pytest.raises(ValueError, match="time_limit must be positive"):
        ox.TradeOff(3, time_limit=0.0)
    silent = ox.NeuronCounts.from_patches(case.table, *np.empty((2, 0), np.int64))
    with as_users_run_it():
        with pytest.raises(TypeError, match="state"):
            ox.trade_off(case.table, case.neuron, resume="nothing")
        with pytest.raises(TypeError, match="TradeOff"):
            ox.trade_off(case.table, case.neuron, ox.Optimal(3))  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="never fires"):
            ox.trade_off(case.table, silent)
