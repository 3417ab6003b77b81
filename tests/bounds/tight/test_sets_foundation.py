"""Cells, the bound of any function and the best chain of a set, against plain enumeration."""

from fractions import Fraction
from itertools import combinations

import jax
import numpy as np
import pytest
from helpers.search_cases import SUBSETS
from helpers.tight_cases import DIRECTED, any_case, ops_of, some_v, tiny_unit
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.tight.rounding import needed
from optexp_jax.bounds.tight.sets.best_chain import SolvedSets, solve_sets, solve_sets_on_host
from optexp_jax.bounds.tight.sets.cells import (
    Cells,
    any_function,
    any_function_on_host,
    cells_of_intersections,
    count_cells,
)
from optexp_jax.bounds.tight.sets.chains_of_sets import SetsReached, chains_from
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import enumerate_formulas
from optexp_jax.testing import Case

SETS = 6
"""Sets of a case, always as many: every number is compiled anew."""


def some_case(seed: int) -> tuple[np.random.Generator, Case, float]:
    rng = np.random.default_rng(seed)
    kind = rng.random()
    if kind < 0.3:
        case = DIRECTED[str(rng.choice(list(DIRECTED)))]
    else:
        case = tiny_unit(rng) if kind < 0.5 else any_case(rng)
    return rng, case, some_v(rng)


def some_sets(rng: np.random.Generator, n: int) -> np.ndarray:
    """In any order, some of them twice."""
    every = np.array(list(combinations(range(6), n)))
    return rng.permuted(every[rng.integers(len(every), size=SETS)], axis=1)


def plain_cells(case: Case, concepts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns sorted into cells one by one."""
    found = np.zeros((2, 2 ** len(concepts)), np.int64)
    columns = case.columns[concepts]
    for k in range(columns.shape[1]):
        cell = sum(1 << j for j in range(len(concepts)) if columns[j, k])
        if cell:
            found[0, cell] += case.inside.reshape(-1)[k]
            found[1, cell] += case.outside.reshape(-1)[k]
    return found[0], found[1]


def cells_of(case: Case, sets: np.ndarray) -> Cells:
    both = [plain_cells(case, concepts) for concepts in sets]
    return Cells(np.array([i for i, _ in both]).T, np.array([e for _, e in both]).T)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5))
def test_cells_are_counted_from_signatures(seed: int, n: int):
    rng, case, _ = some_case(seed)
    sets = some_sets(rng, n)
    counted, plain = count_cells(case.table.signatures, case.neuron, sets), cells_of(case, sets)
    np.testing.assert_array_equal(counted.inside, plain.inside)
    np.testing.assert_array_equal(counted.outside, plain.outside)
    assert counted.n_concepts == n
    assert len(counted) == SETS


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4))
def test_cells_come_of_the_intersections_of_all_subsets(seed: int, n: int):
    rng, case, _ = some_case(seed)
    sets = some_sets(rng, n)
    shared = np.zeros((2, 2**n, SETS), np.int64)
    for column, concepts in enumerate(sets):
        for subset in range(2**n):  # Row 0 holds all locations, and does not matter.
            held = case.columns[[c for j, c in enumerate(concepts) if subset >> j & 1]].all(0)
            shared[0, subset, column] = case.inside.reshape(-1)[held].sum()
            shared[1, subset, column] = case.outside.reshape(-1)[held].sum()
    with jax.enable_x64(True):
        found = jax.device_get(cells_of_intersections(*map(jax.numpy.asarray, shared)))
    plain = cells_of(case, sets)
    np.testing.assert_array_equal(found.inside, plain.inside)
    np.testing.assert_array_equal(found.outside, plain.outside)


def solved(cells: Cells, v: float, operators: tuple[Operator, ...], shorter: bool) -> SolvedSets:
    ops = ops_of(operators)
    on_host = solve_sets_on_host(cells, v, ops=ops, shorter=shorter)
    with jax.enable_x64(True):
        found = jax.device_get(solve_sets(cells, v, ops=ops, shorter=shorter))
    np.testing.assert_array_equal(found.inside, on_host.inside)
    np.testing.assert_array_equal(found.outside, on_host.outside)
    np.testing.assert_allclose(found.best, on_host.best, rtol=0, atol=rounding_of(cells, v))
    return found


def rounding_of(cells: Cells, v: float) -> float:
    """What two ways to sum W may differ by: a share of all that is in it, with signs left out."""
    inside, outside = (
        float(np.asarray(part).sum(0).max()) for part in (cells.inside, cells.outside)
    )
    return 2.0**-45 * (inside + v * outside)


def exact_w(inside: int, outside: int, v: float) -> Fraction:
    return int(inside) - Fraction(v) * int(outside)


@given(seed=st.integers(0, 2**32 - 1))
def test_no_function_of_a_set_exceeds_its_bound(seed: int):
    rng, case, v = some_case(seed)
    sets = some_sets(rng, 4)
    cells = count_cells(case.table.signatures, case.neuron, sets)
    with jax.enable_x64(True):
        upper = np.asarray(any_function(cells, v))
    on_host = any_function_on_host(cells, v)
    np.testing.assert_allclose(on_host, upper, rtol=0, atol=rounding_of(cells, v))
    for k in range(SETS):
        w = [exact_w(i, e, v) for i, e in zip(cells.inside[:, k], cells.outside[:, k], strict=True)]
        highest = sum(max(part, Fraction(0)) for part in w)
        assert highest <= Fraction(float(upper[k]))
        # The bound is reached by a function, so it is no higher than rounding makes it.
        mass = float(cells.inside[:, k].sum() + v * cells.outside[:, k].sum())
        assert float(upper[k]) <= float(highest) + 2.0**-40 * mass


@pytest.mark.parametrize("shorter", [False, True])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), subset=st.sampled_from(SUBSETS))
def test_the_best_chain_of_a_set(shorter: bool, seed: int, n: int, subset: tuple[Operator, ...]):
    """No chain has more W; and what is listed are the chains that reach the threshold."""
    rng, case, v = some_case(seed)
    sets = some_sets(rng, n)
    cells = count_cells(case.table.signatures, case.neuron, sets)
    ops = ops_of(subset)
    found = solved(cells, v, subset, shorter)
    reached = SetsReached(v, case.neuron.size)
    chains = chains_from(found, ops, reached, shorter)
    listed: list[set[ox.Formula]] = [set() for _ in range(SETS)]
    for k in range(len(chains)):
        formula = chains.formula(k, sets, case.names)
        score = ox.iou(case.table, case.neuron, formula)
        assert score.intersection == chains.inside[k]
        assert score.union == case.neuron.size + chains.outside[k]
        assert formula not in listed[chains.row[k]], "a chain stands there twice"
        listed[chains.row[k]].add(formula)
    there = case.inside.reshape(-1) + case.outside.reshape(-1) > 0
    for row, concepts in enumerate(sets):
        names = [case.names[c] for c in concepts]
        shortest: dict[bytes, int] = {}
        for part in enumerate_formulas(
            case.columns[concepts],
            case.inside.reshape(-1),
            case.outside.reshape(-1),
            n,
            subset,
        ):
            length = part.concepts.shape[1]
            for k, mask in enumerate(part.masks & there):
                new = shortest.setdefault(mask.tobytes(), length) == length
                # What holds nowhere, or where a shorter chain does, is left out.
                if not new or not mask.any() or not (shorter or length == n):
                    continue
                w = exact_w(part.intersections[k], part.extras[k], v)
                assert w <= Fraction(float(found.best[-1, row]))
                if w >= needed(v, case.neuron.size):
                    assert reached.by(found)[row]
                    assert part.formula(k, names, subset) in listed[row]
        # The bound is that of a chain, but for rounding. Without shorter ones it may be that of a
        # chain that one of its orders shows to be no better than a shorter one.
        if listed[row] and shorter:
            mass = float(cells.inside[:, row].sum() + v * cells.outside[:, row].sum())
            mine = chains.row == row
            highest = (chains.inside[mine] - v * chains.outside[mine]).max()
            assert found.best[-1, row] <= highest + 2.0**-39 * mass
