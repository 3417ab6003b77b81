"""Searches over sets of concepts against plain enumeration: IoU, form, ties, runners-up."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers.level_sets import every_set, first_equivalents, sets_within, told
from helpers.search_cases import SUBSETS, Bucket, seeds
from helpers.strategies import Case as MaskCase
from helpers.strategies import WeightedCase, cases, weighted_cases
from helpers.support import as_users_run_it, examples, thorough
from helpers.tight_cases import DIRECTED
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.bounds.tight.way import Way
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import best_formula
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case

WAYS = ("sets", "enumeration")
each_way = pytest.mark.parametrize("way", WAYS)
LONGEST = {1: 6, 2: 6, 3: 6, 4: 6, 5: 6 if thorough() else 5, 6: 4, 7: 3}
"""The longest formulas that enumeration takes no longer than a moment for, by concepts."""


class FewAtOnce(ox.TightBounds):
    """Solves so few sets at once that thresholds rise in between."""

    def tuning(self, problem: Problem) -> Tuning:
        return replace(super().tuning(problem), sets_at_once=2)


def solve(case: MaskCase | WeightedCase | Case, method: ox.Optimal) -> ox.Explanation:
    with as_users_run_it():
        return ox.explain(case.table, case.neuron, method)


def check(case: MaskCase | WeightedCase, length: int, subset: tuple[Operator, ...], way: str):
    """The optimum in its first form, its exact counts, and that it is proved."""
    length = min(length, LONGEST[len(case.names)])
    wanted = case.optimum(length, subset)
    for bounds in (ox.TightBounds(way=way), FewAtOnce(way=way)):
        found = solve(case, ox.Optimal(length, operators=subset, bounds=bounds))
        assert found.status == "optimal"
        assert found.stats.way == f"{way}: asked for"
        assert found.formula == wanted.formula
        assert found.intersection == wanted.intersection
        assert found.union == case.neuron.size + wanted.extras
        assert found.upper_bound == found.iou


lengths = st.integers(1, 6)
subsets = st.one_of(st.just(SUBSETS[-1]), st.sampled_from(SUBSETS))
most = 7 if thorough() else 6


@each_way
@examples(200)
@given(case=cases(max_concepts=most), length=lengths, subset=subsets)
def test_the_optimum(way: str, case: MaskCase, length: int, subset: tuple[Operator, ...]):
    check(case, length, subset, way)


@each_way
@examples(100)
@given(case=weighted_cases(), length=lengths, subset=subsets)
def test_counts_that_are_huge_or_hardly_differ(
    way: str, case: WeightedCase, length: int, subset: tuple[Operator, ...]
):
    check(case, length, subset, way)


@each_way
@pytest.mark.parametrize("length", [3, 4, 5])
@pytest.mark.parametrize("name", DIRECTED)
def test_directed_cases(name: str, length: int, way: str):
    case = DIRECTED[name]
    wanted = best_formula(
        case.columns,
        case.inside.reshape(-1),
        case.outside.reshape(-1),
        case.names,
        length,
        ox.Optimal().operators,
    )
    found = ox.explain(case.table, case.neuron, ox.Optimal(length, bounds=ox.TightBounds(way=way)))
    assert (found.formula, found.intersection) == (wanted.formula, wanted.intersection)


BUCKETS = (Bucket(4, 3, 3), Bucket(4, 1, 4), *([Bucket(5, 3, 4)] if thorough() else []))


@examples(30)
@given(seed=seeds, bucket=st.sampled_from(BUCKETS), top_k=st.integers(2, 12))
def test_the_k_best_sets(seed: int, bucket: Bucket, top_k: int):
    case = bucket.case(seed)
    bounds = (ox.TightBounds, FewAtOnce)[seed % 2](way="sets")
    method = ox.Optimal(bucket.length, bounds=bounds, operators=bucket.operators, top_k=top_k)
    found = solve(case, method)
    assert told(found) == first_equivalents(every_set(case, bucket)[:top_k])


@examples(30)
@given(seed=seeds, bucket=st.sampled_from(BUCKETS), within=st.sampled_from([0.0, 0.01, 0.1, 0.5]))
def test_all_sets_within_a_share(seed: int, bucket: Bucket, within: float):
    case = bucket.case(seed)
    method = ox.Optimal(
        bucket.length,
        bounds=ox.TightBounds(way="sets"),
        operators=bucket.operators,
        within=within,
    )
    assert told(solve(case, method)) == first_equivalents(
        sets_within(within, every_set(case, bucket))
    )


@examples(20)
@given(case=cases(max_concepts=5))
def test_the_optimum_of_every_shorter_length(case: MaskCase):
    length = min(4, len(case.names))
    found = solve(case, ox.Optimal(length, bounds=ox.TightBounds(way="sets")))
    shorter = [case.optimum(k) for k in range(1, length + 1)]
    if found.formula is None or length == 1:
        assert found.by_length == ()
        return
    told_of = [(o.length, o.formula, o.intersection) for o in found.by_length]
    wanted = [(k, o.formula, o.intersection) for k, o in enumerate(shorter, start=1)]
    assert told_of == [each for each in wanted if each[1] is not None]


def test_shorter_lengths_that_are_asked_for():
    """Chains do not tell them by the way; searches of their own do, while there is time."""
    case = Bucket(6, 3, 3).case(3)
    chains, sets = (ox.TightBounds(way=way) for way in ("chains", "sets"))
    alone = ox.explain(case.table, case.neuron, ox.Optimal(3, bounds=chains))
    asked = ox.explain(case.table, case.neuron, ox.Optimal(3, bounds=chains, by_length=True))
    wanted = ox.explain(case.table, case.neuron, ox.Optimal(3, bounds=sets))
    assert alone.by_length == ()
    assert asked.by_length == wanted.by_length
    assert [optimum.length for optimum in asked.by_length] == [1, 2, 3]
    late = ox.Optimal(3, bounds=chains, by_length=True, time_limit=1e-9)
    assert ox.explain(case.table, case.neuron, late).by_length == ()


@examples(40)
@given(case=cases(max_concepts=5), length=st.integers(1, 3))
def test_no_function_of_any_shape_is_better(case: MaskCase, length: int):
    """Every union of cells of every set, one after another."""
    length = min(length, len(case.names))
    found = solve(case, ox.Optimal(length, any_shape=True))
    masks = case.masks.reshape(len(case.names), -1)
    neuron, highest = case.bitmap.reshape(-1), 0.0
    for chosen in combinations(range(len(masks)), length):
        cell = (1 << np.arange(length)) @ masks[list(chosen)]
        for function in range(0, 2 ** (2**length), 2):  # bit 0 is where no concept holds
            held = (function >> cell) & 1 == 1
            iou = (held & neuron).sum() / (held | neuron).sum()
            highest = max(highest, float(iou))
    assert found.any_shape is not None
    assert highest <= found.any_shape <= highest * (1 + 1e-9)
    assert found.iou <= found.any_shape


def test_device_kernels_find_the_same():
    rng = np.random.default_rng(5)
    for length in (2, 4):
        case = Bucket(6, 3, 3).case(int(rng.integers(2**32)))
        method = ox.Optimal(length, bounds=ox.TightBounds(way="sets"), any_shape=True)
        found = []
        for kernels in ("host", "device"):
            with ox.kernels(kernels):
                found.append(ox.explain(case.table, case.neuron, method))
        host, device = found
        assert (host.formula, host.score, host.by_length) == (
            device.formula,
            device.score,
            device.by_length,
        )
        assert host.any_shape == pytest.approx(device.any_shape, rel=1e-9)


def test_the_way_is_told_and_can_be_asked_for():
    case = Bucket(6, 3, 3).case(1)
    long, short = (ox.explain(case.table, case.neuron, ox.Optimal(n)) for n in (4, 3))
    assert long.stats.way == "sets: 15 sets of 4 concepts have 240 cells, 1 MB"
    assert short.stats.way == "chains: formulas of 3 concepts are few"
    chains = ox.explain(case.table, case.neuron, ox.Optimal(4, bounds=ox.TightBounds(way="chains")))
    assert chains.stats.way == "chains: asked for"
    assert (chains.formula, chains.score) == (long.formula, long.score)
    wrong = pytest.raises(ValueError, match="way must be one of auto, chains, sets, enumeration")
    with as_users_run_it(), wrong:
        ox.TightBounds(way="masks")  # pyright: ignore[reportArgumentType]
    assert {str(way) for way in Way} == {"auto", "chains", *WAYS}


def test_too_much_memory_is_refused_beforehand():
    sets = [[k] for k in range(300)]
    table = ox.ConceptTable.from_signatures(sets, [3] * 300, [f"c{k}" for k in range(300)])
    neuron = ox.NeuronCounts.from_signatures(table, [1] * 300)
    with pytest.raises(ValueError, match=r"would take \d+ MB for formulas of 5 of 300 concepts"):
        ox.explain(table, neuron, ox.Optimal(5, bounds=ox.TightBounds(way="sets")))
