"""The search over sets by shares against the oracle, and where its pruning is deep."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.search_cases import DEFAULT, SUBSETS, seeds
from helpers.share_cases import all_sets, crowded, plain_cells, some_case
from helpers.strategies import NAMES, WeightedCase, farey_case
from helpers.support import as_users_run_it, examples, thorough
from helpers.tight_cases import DIRECTED, N, flat
from helpers.tight_helpers import assert_optimal, oracle
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.formulas.operators import Operator
from optexp_jax.search import Progress
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case


def method(length: int, operators: tuple[Operator, ...] = DEFAULT, beam: int = 0) -> ox.Optimal:
    return ox.Optimal(length, bounds=TightBounds(beam=beam, way="shares"), operators=operators)


def solve(table: ox.ConceptTable, neuron: ox.NeuronCounts, asked: ox.Optimal) -> ox.Explanation:
    with as_users_run_it():
        return ox.explain(table, neuron, asked)


def level(rng: np.random.Generator, n_concepts: int) -> Case:
    """Many formulas that are level, of different lengths: few distinct masks."""
    columns = int(rng.integers(3, 13))
    distinct = rng.random((int(rng.integers(2, 5)), columns)) < 0.5
    masks = distinct[rng.integers(len(distinct), size=n_concepts)]
    bitmap = masks[rng.integers(n_concepts)].copy()
    for k in rng.integers(n_concepts, size=rng.integers(0, 4)):
        bitmap = (bitmap | masks[k], bitmap & masks[k], bitmap & ~masks[k])[rng.integers(3)]
    if rng.random() < 0.5 or not bitmap.any():
        bitmap[rng.integers(columns)] ^= True
    bitmap[0] |= not bitmap.any()
    factor = int(rng.choice([1, 3, 2**20, 2**36]))
    return flat(masks, bitmap * factor, ~bitmap * factor)


@pytest.mark.parametrize("length", [3, 4, 5, 6])
@examples(60)
@given(seed=seeds)
def test_agrees_with_the_oracle(length: int, seed: int):
    rng = np.random.default_rng(seed)
    case = level(rng, N) if rng.random() < 0.3 else some_case(rng, N)
    found = solve(case.table, case.neuron, method(length, beam=int(rng.choice([0, 6]))))
    assert_optimal(found, oracle(case, length), case.neuron.size)


@pytest.mark.parametrize("operators", SUBSETS, ids=str)
@examples(8)
@given(seed=seeds)
def test_agrees_with_few_operators(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(3, 6))
    found = solve(case.table, case.neuron, method(length, operators))
    assert_optimal(found, oracle(case, length, operators), case.neuron.size)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("length", [3, 4, 5])
def test_directed_cases(name: str, length: int):
    case = DIRECTED[name]
    found = ox.explain(case.table, case.neuron, method(length))
    assert_optimal(found, oracle(case, length), case.neuron.size)


@examples(10)
@given(seed=seeds)
def test_ratios_that_no_floating_point_number_tells_apart(seed: int):
    rng = np.random.default_rng(seed)
    names = tuple(NAMES[k] for k in rng.permutation(len(NAMES))[:N])
    case: WeightedCase = farey_case(
        rng, int(rng.integers(12, 41)), names, bool(rng.random() < 0.5), bool(rng.random() < 0.25)
    )
    for length in (3, 4):
        found = solve(case.table, case.neuron, method(length))
        assert_optimal(found, case.optimum(length), case.neuron.size)


@examples(10)
@given(seed=seeds)
def test_order_batches_and_stops_do_not_change_the_result(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(3, 6))
    true = oracle(case, length)
    optimum = true.intersection / (case.neuron.size + true.extras)
    told: list[Progress] = []
    for order in (ox.BestFirst(), ox.DepthFirst(), ox.BreadthFirst()):
        batch_size = int(rng.integers(1, 9))
        asked = replace(method(length), order=order, batch_size=batch_size, callback=told.append)
        assert_optimal(solve(case.table, case.neuron, asked), true, case.neuron.size)
        assert all(progress.upper_bound >= optimum for progress in told)
        falling = [progress.upper_bound for progress in told]
        assert falling == sorted(falling, reverse=True)
        told.clear()
    stopped = solve(case.table, case.neuron, replace(method(length), time_limit=1e-9))
    assert stopped.iou <= optimum <= stopped.upper_bound
    if stopped.status != "optimal":
        again = ox.explain(case.table, case.neuron, method(length), resume=stopped.state)
        assert_optimal(again, true, case.neuron.size)


# Where pruning is deep: sets are enumerated, chains of each by a plain recursion in whole numbers.


def highest_chains(inside: np.ndarray, outside: np.ndarray, p: int, q: int) -> int:
    """The highest q·I − p·E of a chain, over all sets `[set, cell]`."""
    n = inside.shape[1].bit_length() - 1
    w = q * inside - p * outside
    known: dict[tuple[int, int], np.ndarray] = {}

    def weight(asked: int, held: int) -> np.ndarray:
        return w[:, [c for c in range(2**n) if c & asked == held]].sum(1)

    def best(asked: int, held: int) -> np.ndarray:
        if (asked, held) not in known:
            value = np.zeros(len(w), np.int64)
            for x in (1 << j for j in range(n)):
                if asked & x:
                    continue
                fails, holds = best(asked | x, held), best(asked | x, held | x)
                union = weight(asked | x, held | x) + fails
                value = np.maximum.reduce([value, union, fails, holds])
            known[asked, held] = value
        return known[asked, held]

    return int(best(0, 0).max())


@pytest.mark.parametrize("length", [4, 5])
def test_many_concepts(length: int, fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    n_concepts = 22 if length == 5 else 30
    for _ in range(20 if thorough() else 2):
        case = crowded(rng, n_concepts, int(rng.integers(40, 200)))
        sizes = (case.inside + case.outside).reshape(-1)
        held = [np.flatnonzero(column).tolist() for column in case.columns.T]
        names = [f"concept {k}" for k in range(n_concepts)]
        table = ox.ConceptTable.from_signatures(held, sizes, names)
        neuron = ox.NeuronCounts.from_signatures(table, case.inside.reshape(-1))
        found = solve(table, neuron, method(length, beam=int(rng.choice([0, 6]))))
        assert found.status == "optimal"
        sets = all_sets(np.arange(n_concepts), length)
        highest = highest_chains(*plain_cells(case, sets), found.intersection, found.union)
        assert highest == found.intersection * neuron.size


def test_the_way_is_chosen_and_told():
    rng = np.random.default_rng(0)
    masks = rng.random((40, 300)) < 0.1
    table = ox.ConceptTable.from_masks(masks)
    neuron = table.count(masks[0] | masks[1] & ~masks[2])
    one = ox.Optimal(3, bounds=TightBounds(way="shares"))
    assert str(solve(table, neuron, one).stats.way).startswith("shares: asked for")
    with pytest.raises(ValueError, match="way='auto'"):
        ox.explain(table, neuron, replace(one, top_k=2))
    many = ox.ConceptTable.from_masks(rng.random((300, 40)) < 0.1)

    def chosen(length: int, *, only_best: bool = True, operators=DEFAULT) -> str:
        problem = Problem(
            many, many.count(rng.random(40) < 0.5), length, operators, only_best=only_best
        )
        return str(TightBounds().open(problem).way).split(":")[0]

    assert chosen(4) == chosen(5) == chosen(6) == "shares"
    assert chosen(3) == chosen(5, only_best=False) == chosen(5, operators=(ox.OR,)) == "chains"
