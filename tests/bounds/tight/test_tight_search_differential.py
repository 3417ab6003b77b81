"""The tight search against the oracle, against plain enumeration, and against itself."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.search_cases import DEFAULT, SUBSETS, seeds
from helpers.strategies import NAMES, XOR, WeightedCase, farey_case
from helpers.support import examples, thorough, x64_setting
from helpers.tight_cases import DIRECTED, N, any_case, flat, tiny_unit
from helpers.tight_helpers import assert_optimal, oracle, solve
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.bounds.tight.search.nodes import TightNodes
from optexp_jax.bounds.tight.search.space import TightSpace
from optexp_jax.bounds.tight.search.subproblem import Prefix
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.operators import Operator
from optexp_jax.search import Progress
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case, check_admissible, random_case


@dataclass(frozen=True)
class Bucket:
    """What decides which programs are compiled, and how they are called."""

    n_concepts: int
    length: int
    operators: tuple[Operator, ...] = DEFAULT
    batch_size: int = 16
    beam: int = 6

    @property
    def method(self) -> ox.Optimal:
        return ox.Optimal(
            self.length,
            bounds=TightBounds(beam=self.beam),
            operators=self.operators,
            batch_size=self.batch_size,
        )

    def __str__(self) -> str:
        names = "+".join(operator.name for operator in self.operators)
        return f"{self.n_concepts}-{self.length}-{names}-{self.batch_size}-{self.beam}"


QUICK = (
    Bucket(6, 1),
    Bucket(6, 2),
    Bucket(6, 3),
    Bucket(6, 3, beam=0, batch_size=1),
    Bucket(6, 4),
    Bucket(6, 4, beam=0, batch_size=4),
    Bucket(6, 5, beam=1),
    Bucket(3, 5),
    Bucket(1, 3),
    *(Bucket(6, 3 + len(subset) // 2, subset, beam=0) for subset in SUBSETS if len(subset) < 3),
)
SLOW = (
    *(Bucket(6, length, subset) for length in (1, 2, 3, 5) for subset in SUBSETS),
    *(Bucket(6, 4, subset, beam=0) for subset in SUBSETS),
    Bucket(6, 5, beam=0, batch_size=1),
    Bucket(6, 4, beam=2, batch_size=1),
    Bucket(6, 6, beam=0),
)
buckets = pytest.mark.parametrize("bucket", (*QUICK, *SLOW) if thorough() else QUICK, ids=str)


def ties(rng: np.random.Generator, n_concepts: int) -> Case:
    """Many formulas that are level: few distinct masks, and a neuron made of them."""
    columns = int(rng.integers(2, 13))
    distinct = rng.random((int(rng.integers(1, 4)), columns)) < 0.5
    masks = distinct[rng.integers(len(distinct), size=n_concepts)]
    bitmap = masks[rng.integers(n_concepts)].copy()
    for k in rng.integers(n_concepts, size=rng.integers(0, 3)):
        bitmap = (bitmap | masks[k], bitmap & masks[k], bitmap & ~masks[k])[rng.integers(3)]
    if rng.random() < 0.5 or not bitmap.any():
        bitmap[rng.integers(columns)] ^= True
    bitmap[0] |= not bitmap.any()
    factor = int(rng.choice([1, 1, 3, 2**20, 2**36]))
    return flat(masks, bitmap * factor, ~bitmap * factor)


def some_case(rng: np.random.Generator, n_concepts: int) -> Case:
    kind = rng.integers(4)
    if kind == 0:
        return ties(rng, n_concepts)
    if kind == 1:
        return any_case(rng, n_concepts)
    if kind == 2:
        return tiny_unit(rng, n_concepts)
    return random_case(rng, n_concepts, int(rng.integers(1, 4)))


# Against the oracle.


@buckets
@examples(10)
@given(seed=seeds)
def test_agrees_with_the_oracle(bucket: Bucket, seed: int):
    case = some_case(np.random.default_rng(seed), bucket.n_concepts)
    found = solve(case.table, case.neuron, bucket.method, as_large=seed % 2 == 1)
    assert_optimal(found, oracle(case, bucket.length, bucket.operators), case.neuron.size)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("length", [3, 4])
def test_directed_cases(name: str, length: int):
    case = DIRECTED[name]
    # The one test with the type checks on, which make a search seven times slower.
    found = ox.explain(case.table, case.neuron, Bucket(N, length, beam=0).method)
    assert_optimal(found, oracle(case, length), case.neuron.size)


NEED_ALL_OF_A_BOUND = [
    ("a third each", 3, (ox.OR,), Score(30, 45)),
    ("half each", 3, (ox.OR, ox.AND), Score(30, 50)),
    ("counted once", 3, (ox.OR, ox.AND), Score(23, 34)),
    ("three filters", 4, (ox.AND_NOT,), Score(10, 18)),
]
"""Cases whose best formula is lost where a bound is a little too low, with few operators."""


@pytest.mark.parametrize(("name", "length", "operators", "score"), NEED_ALL_OF_A_BOUND)
@pytest.mark.parametrize("as_large", [False, True])
def test_optima_that_need_all_of_a_bound(
    name: str, length: int, operators: tuple[Operator, ...], score: Score, as_large: bool
):
    case = DIRECTED[name]
    method = Bucket(N, length, operators, beam=0).method
    found = solve(case.table, case.neuron, method, as_large)
    assert_optimal(found, oracle(case, length, operators), case.neuron.size)
    every = ox.explain(case.table, case.neuron, ox.Exhaustive(length, operators=operators))
    assert found.score == every.score == score


@examples(10)
@given(seed=seeds)
def test_ratios_that_no_floating_point_number_tells_apart(seed: int):
    rng = np.random.default_rng(seed)
    names = tuple(NAMES[k] for k in rng.permutation(len(NAMES))[:N])
    case: WeightedCase = farey_case(
        rng, int(rng.integers(12, 41)), names, bool(rng.random() < 0.5), bool(rng.random() < 0.25)
    )
    for length in (1, 2, 3, 4):
        found = solve(case.table, case.neuron, Bucket(N, length).method)
        assert_optimal(found, case.optimum(length), case.neuron.size)


def test_nothing_overlaps_the_neuron():
    case = flat(np.zeros((N, 3), bool), np.array([1, 2, 0]), np.array([0, 1, 5]))
    found = solve(case.table, case.neuron, Bucket(N, 4).method)
    assert found.formula is None
    assert found.status == "optimal"
    assert found.upper_bound == 0


@examples(10)
@given(seed=seeds)
def test_the_upper_bound_always_holds(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(3, 6))
    true = oracle(case, length)
    optimum = true.intersection / (case.neuron.size + true.extras)
    told: list[Progress] = []
    method = replace(Bucket(N, length, beam=0, batch_size=1).method, callback=told.append)
    found = solve(case.table, case.neuron, method)
    assert all(progress.upper_bound >= optimum for progress in told)
    falling = [progress.upper_bound for progress in told]
    assert falling == sorted(falling, reverse=True)
    assert_optimal(found, true, case.neuron.size)


@examples(6)
@given(seed=seeds)
def test_stopping_early_never_claims_too_much(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(3, 6))
    true = oracle(case, length)
    optimum = true.intersection / (case.neuron.size + true.extras)
    method = replace(Bucket(N, length, beam=0, batch_size=1).method, gap=float(rng.random()))
    found = solve(case.table, case.neuron, method)
    assert found.iou <= optimum <= found.upper_bound
    if found.status == "optimal":
        assert_optimal(found, true, case.neuron.size)
    else:
        assert found.gap <= method.gap
    stopped = solve(case.table, case.neuron, replace(method, gap=0.0, time_limit=1e-9))
    assert stopped.iou <= optimum <= stopped.upper_bound


# Against itself and the published bounds.


@examples(4)
@given(seed=seeds)
def test_settings_do_not_change_the_result(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(3, 6 if thorough() else 5))
    true = oracle(case, length)
    for beam in range(7):
        batch_size = (1, 4, 16)[beam % 3]
        bucket = Bucket(N, length, beam=beam, batch_size=batch_size)
        with x64_setting(beam % 2 == 1):
            found = solve(case.table, case.neuron, bucket.method)
        assert_optimal(found, true, case.neuron.size)


@examples(5)
@given(seed=seeds)
def test_the_order_of_concepts_does_not_change_the_result(seed: int):
    rng = np.random.default_rng(seed)
    case, length = some_case(rng, N), int(rng.integers(2, 6))
    results = set()
    for _ in range(3):
        order = rng.permutation(N)
        # The same sets under the same names, numbered in another way.
        sets = [np.flatnonzero(column).tolist() for column in case.columns[order].T]
        sizes = (case.inside + case.outside).reshape(-1)
        table = ox.ConceptTable.from_signatures(sets, sizes, [case.names[k] for k in order])
        neuron = ox.NeuronCounts.from_signatures(table, case.inside.reshape(-1))
        found = solve(table, neuron, Bucket(N, length).method)
        results.add((found.formula, found.intersection, found.union))
    assert len(results) == 1


@examples(6)
@given(seed=seeds)
def test_same_as_the_published_bounds(seed: int):
    case = some_case(np.random.default_rng(seed), N)
    case = flat(case.columns, case.inside.reshape(-1), case.outside.reshape(-1))
    tight = solve(case.table, case.neuron, Bucket(N, 3).method)
    paper = solve(case.table, case.neuron, ox.Optimal(3, bounds=ox.PaperBounds()))
    assert (tight.formula, tight.score, tight.status) == (paper.formula, paper.score, paper.status)


@examples(4)
@given(seed=seeds)
def test_other_operators_are_handed_to_the_published_bounds(seed: int):
    case = some_case(np.random.default_rng(seed), 3)
    operators = (*DEFAULT, XOR)
    method = ox.Optimal(2, bounds=TightBounds(), operators=operators)
    found = solve(case.table, case.neuron, method)
    assert_optimal(found, oracle(case, 2, operators), case.neuron.size)
    problem = Problem(case.table, case.neuron, 2, operators)
    assert not isinstance(TightBounds().open(problem), TightSpace)
    problem = Problem(case.table, case.neuron, 2, DEFAULT)
    assert isinstance(TightBounds().open(problem), TightSpace)


@pytest.mark.parametrize("operators", SUBSETS if thorough() else [DEFAULT], ids=str)
def test_every_claim_of_a_search(operators: tuple[Operator, ...], fresh_seed: int):
    # The short run keeps to length 3, for which nothing else has to be compiled.
    cases, lengths = (1000, (1, 2, 3, 4)) if thorough() else (25, (3,))
    report = check_admissible(
        TightBounds(beam=0), cases=cases, seed=fresh_seed, lengths=lengths, operators=operators
    )
    assert report.admissible, str(report)
    if len(operators) == 3:
        assert report.nodes > cases


def test_from_w_to_iou(fresh_seed: int):
    # A node is queued with an IoU that no formula of it exceeds: W <= w means IoU <= w / |N|, or
    # IoU below the v at which w was made.
    rng = np.random.default_rng(fresh_seed)
    for _ in range(300):
        case = some_case(rng, 3)
        space = TightSpace(Problem(case.table, case.neuron, 3, DEFAULT), 1, 0)
        space.root(Incumbent())
        size = case.neuron.size
        held = rng.random(case.columns.shape[1]) < rng.random()
        intersection = int(held @ case.inside.reshape(-1))
        extras = int(held @ case.outside.reshape(-1))
        v = float(rng.random() ** 2)
        w = weight(float(intersection), v * extras)
        none = np.empty(0, np.int32)
        nodes = TightNodes.outer(3, Prefix(), np.zeros(1, np.int32), np.zeros(1, np.int32), v)
        assert len(TightNodes.outer(3, Prefix(), none, none, v)) == 0
        (upper,) = space.branching._queue(nodes, np.array([w])).upper
        assert upper * (size + extras) >= intersection or intersection < v * (size + extras)
