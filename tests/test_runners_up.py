"""Runners-up and equivalents of the tight search, and searches that stop and go on."""

import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import Bucket, seeds

import optexp_jax as ox
from optexp_jax.oracle import enumerate_formulas
from optexp_jax.testing import Case
from support import examples, thorough

BUCKETS = (Bucket(4, 3, 3), *([Bucket(6, 3, 3)] if thorough() else []))


@dataclass(frozen=True)
class Kept:
    """A set of locations: its shortest formulas, the smallest first."""

    ratio: Fraction
    formulas: tuple[ox.Formula, ...]


def every_set(case: Case, bucket: Bucket) -> list[Kept]:
    """All sets of locations that overlap the neuron, best first, by plain enumeration."""
    inside, outside = case.inside.reshape(-1), case.outside.reshape(-1)
    size = int(inside.sum())
    found: dict[bytes, tuple[Fraction, set[ox.Formula]]] = {}
    # Columns without locations do not tell sets apart.
    there = inside + outside > 0
    for scored in enumerate_formulas(
        case.columns, inside, outside, bucket.length, bucket.operators
    ):
        for row in range(len(scored.intersections)):
            if scored.intersections[row]:
                formula = scored.formula(row, case.names, bucket.operators)
                ratio = Fraction(int(scored.intersections[row]), size + int(scored.extras[row]))
                key = scored.masks[row][there].tobytes()
                found.setdefault(key, (ratio, set()))[1].add(formula)
    kept: list[Kept] = []
    for ratio, formulas in found.values():
        shortest = min(map(len, formulas))
        kept.append(Kept(ratio, tuple(sorted(f for f in formulas if len(f) == shortest))))
    return sorted(kept, key=lambda each: (-each.ratio, each.formulas[0]))


def told(found: ox.Explanation) -> list[Kept]:
    """What an explanation lists, in the same form."""
    if found.formula is None:
        return []
    best = Kept(found.score.ratio, (found.formula, *found.equivalents))
    others = (
        Kept(Fraction(r.intersection, r.union), (r.formula, *r.equivalents))
        for r in found.runners_up
    )
    return [best, *others]


def first_equivalents(sets: list[Kept]) -> list[Kept]:
    return [Kept(each.ratio, each.formulas[:21]) for each in sets]


@examples(12)
@given(seed=seeds, bucket=st.sampled_from(BUCKETS), top_k=st.integers(2, 12))
def test_the_k_best_sets(seed: int, bucket: Bucket, top_k: int):
    case = bucket.case(seed)
    method = ox.Optimal(bucket.length, operators=bucket.operators, top_k=top_k)
    found = ox.explain(case.table, case.neuron, method)
    assert found.status == "optimal"
    assert told(found) == first_equivalents(every_set(case, bucket)[:top_k])


@examples(12)
@given(seed=seeds, bucket=st.sampled_from(BUCKETS), within=st.sampled_from([0.0, 0.01, 0.1, 0.5]))
def test_all_sets_within_a_share(seed: int, bucket: Bucket, within: float):
    case = bucket.case(seed)
    method = ox.Optimal(bucket.length, operators=bucket.operators, within=within)
    found = ox.explain(case.table, case.neuron, method)
    sets = every_set(case, bucket)
    wanted = [each for each in sets if float(each.ratio) >= float(sets[0].ratio) * (1 - within)]
    assert told(found) == first_equivalents(wanted)
    assert not found.limit_hit


def hard_case() -> Case:
    """Nodes wait after the first turn, and many sets are nearly as good as the best."""
    rng = np.random.default_rng(0)
    masks = rng.random((6, 3, 40)) < 0.4
    inside = (rng.random((3, 40)) < 0.4).astype(np.int64)
    return Case(masks, inside, 1 - inside)


def test_the_limit_of_sets_is_told():
    case = hard_case()
    found = ox.explain(case.table, case.neuron, ox.Optimal(3, within=0.9, limit=2))
    assert found.limit_hit
    assert told(found) == first_equivalents(every_set(case, Bucket(6, 3, 3))[:2])


@pytest.mark.parametrize("bounds", [ox.PaperBounds(), ox.TightBounds(beam=0)])
def test_a_stopped_search_goes_on(bounds: ox.Bounds):
    case = hard_case()
    table, neuron, length = case.table, case.neuron, 3
    whole = ox.explain(table, neuron, ox.Optimal(length, bounds=bounds, batch_size=1))
    stopped = ox.explain(
        table, neuron, ox.Optimal(length, bounds=bounds, batch_size=1, max_nodes=1)
    )
    assert stopped.status == "feasible"
    assert stopped.stats.stopped_by == "frontier full"
    assert stopped.upper_bound >= whole.iou
    assert pickle.loads(pickle.dumps(stopped)).state is None
    resumed = ox.explain(
        table,
        neuron,
        ox.Optimal(length, bounds=bounds, batch_size=1, time_limit=60.0),
        resume=stopped.state,
    )
    assert (resumed.formula, resumed.score, resumed.status) == (
        whole.formula,
        whole.score,
        "optimal",
    )
    assert resumed.state is None
    assert resumed.stats.visited == whole.stats.visited


def test_only_the_same_question_goes_on():
    case = hard_case()
    table, neuron, length = case.table, case.neuron, 3
    bounds = ox.TightBounds(beam=0)
    stopped = ox.explain(table, neuron, ox.Optimal(length, bounds=bounds, max_nodes=1))
    assert stopped.status == "feasible"
    with pytest.raises(ValueError, match="another table, neuron or question"):
        ox.explain(table, neuron, ox.Optimal(length - 1), resume=stopped.state)
    with pytest.raises(TypeError, match="state"):
        ox.explain(table, neuron, ox.Optimal(length), resume="something")
    with pytest.raises(TypeError, match="Only Optimal"):
        ox.explain(table, neuron, ox.NetDissect(), resume=stopped.state)


def test_the_family_is_told():
    case = hard_case()
    table, neuron = case.table, case.neuron
    assert ox.explain(table, neuron).stats.bounds == "TightBounds"
    xor = ox.Operator("XOR", p=True, q=True, r=False)
    other = ox.Optimal(2, operators=(ox.OR, xor))
    assert ox.explain(table, neuron, other).stats.bounds == "PaperBounds"
