"""Runners-up and equivalents of the tight search, and searches that stop and go on."""

import pickle

import numpy as np
import pytest
from helpers.level_sets import every_set, first_equivalents, sets_within, told
from helpers.search_cases import Bucket, seeds
from helpers.support import examples, thorough
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.counts.scores import Score
from optexp_jax.search.incumbent import Candidate, Incumbent, PoolCriteria
from optexp_jax.testing import Case

BUCKETS = (Bucket(4, 3, 3), *([Bucket(6, 3, 3)] if thorough() else []))


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
    wanted = sets_within(within, every_set(case, bucket))
    assert told(found) == first_equivalents(wanted)
    assert not found.within_truncated


BOUNDS = (ox.TightBounds(), ox.PaperBounds())


@examples(12)
@given(
    seed=seeds,
    bounds=st.sampled_from(BOUNDS),
    within=st.sampled_from([0.0, 0.1, 0.5]),
    max_within=st.integers(1, 6),
)
def test_most_sets_within_a_share(
    seed: int, bounds: ox.AbstractBounds, within: float, max_within: int
):
    bucket = BUCKETS[0]
    case = bucket.case(seed)
    method = ox.Optimal(bucket.length, bounds=bounds, within=within, max_within=max_within)
    found = ox.explain(case.table, case.neuron, method)
    wanted = sets_within(within, every_set(case, bucket))
    assert told(found) == first_equivalents(wanted[:max_within])
    assert found.within_truncated == (len(wanted) > max_within)


@examples(12)
@given(seed=seeds, top_k=st.integers(2, 12))
def test_the_k_best_sets_by_published_bounds(seed: int, top_k: int):
    bucket = BUCKETS[0]
    case = bucket.case(seed)
    method = ox.Optimal(bucket.length, bounds=ox.PaperBounds(), batch_size=1, top_k=top_k)
    found = ox.explain(case.table, case.neuron, method)
    assert told(found) == first_equivalents(every_set(case, bucket)[:top_k])


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_nothing_outside_the_share_is_listed(bounds: ox.AbstractBounds):
    table = ox.ConceptTable.from_signatures([[0], [1], [2], [3]], [10] * 4, list("abcd"))
    neuron = ox.NeuronCounts.from_signatures(table, [5, 6, 7, 10])
    found = ox.explain(table, neuron, ox.Optimal(3, bounds=bounds, within=0.0, max_within=2))
    assert (found.intersection, found.union) == (23, 35)
    assert found.runners_up == ()
    assert not found.within_truncated


def test_a_share_is_meant_as_it_is_written():
    # b is three tenths below a. As a binary number 0.3 is less than that, and 1 - 0.3 as well.
    table = ox.ConceptTable.from_signatures([[0], [1]], [10, 7], ["a", "b"])
    neuron = ox.NeuronCounts.from_signatures(table, [10, 7])
    shares = ox.explain(table, neuron, ox.Optimal(1, within=0.3))
    assert [str(r.formula) for r in shares.runners_up] == ["b"]
    below = ox.explain(table, neuron, ox.Optimal(1, within=0.2999999))
    assert below.runners_up == ()


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("asked", [{"top_k": 6}, {"within": 0.9}], ids=str)
def test_signatures_without_locations_do_not_tell_sets_apart(
    bounds: ox.AbstractBounds, asked: dict
):
    # a and b differ only where there is nothing.
    table = ox.ConceptTable.from_signatures([[0, 1], [0], [2]], [10, 0, 5], list("abc"))
    neuron = ox.NeuronCounts.from_signatures(table, [8, 0, 1])
    found = ox.explain(table, neuron, ox.Optimal(2, bounds=bounds, **asked))
    masks = {(r.intersection, r.union) for r in found.runners_up}
    assert str(found.formula) == "a"
    assert [str(f) for f in found.equivalents] == ["b"]
    # What is left are {a, c} and {c}.
    assert masks == {(9, 15), (1, 13)}
    assert len(found.runners_up) == 2


def test_a_set_that_a_tie_pushed_out_keeps_its_formulas():
    """Sets A and B are level; A has two formulas, one before B's only one, one after it."""
    offered = [
        ("A", "b OR z"),  # known first, then pushed out by B, whose formula is smaller
        ("B", "a OR z"),
        ("A", "a OR b"),  # brings A back
    ]
    identity = {ox.Formula.parse(text): name.encode() for name, text in offered}
    incumbent = Incumbent(PoolCriteria(top_k=2), identity.__getitem__)
    best = ox.Formula.concept("m")
    identity[best] = b"M"
    incumbent.offer(Candidate(best, Score(2, 3)))
    for _, text in offered:
        incumbent.offer(Candidate(ox.Formula.parse(text), Score(1, 3)))
    second = incumbent.leaders[1]
    assert second.identity == b"A"
    assert second.candidate.formula == ox.Formula.parse("a OR b")
    assert second.equivalents == (ox.Formula.parse("b OR z"),)
    assert len(incumbent.leaders) == 2


def hard_case() -> Case:
    """Nodes wait after the first turn, and many sets are nearly as good as the best."""
    rng = np.random.default_rng(0)
    masks = rng.random((6, 3, 40)) < 0.4
    inside = (rng.random((3, 40)) < 0.4).astype(np.int64)
    return Case(masks, inside, 1 - inside)


def test_the_limit_of_sets_is_told():
    case = hard_case()
    found = ox.explain(case.table, case.neuron, ox.Optimal(3, within=0.9, max_within=2))
    assert found.within_truncated
    assert told(found) == first_equivalents(every_set(case, Bucket(6, 3, 3))[:2])


@pytest.mark.parametrize("bounds", [ox.PaperBounds(), ox.TightBounds(beam=0)])
def test_a_stopped_search_goes_on(bounds: ox.AbstractBounds):
    case = hard_case()
    table, neuron, length = case.table, case.neuron, 3
    whole = ox.explain(table, neuron, ox.Optimal(length, bounds=bounds, batch_size=1))
    stopped = ox.explain(
        table, neuron, ox.Optimal(length, bounds=bounds, batch_size=1, max_nodes=1)
    )
    assert stopped.status == "feasible"
    assert stopped.stats.stopped_by is ox.StoppedBy.MAX_NODES
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
    with pytest.raises(ValueError, match=r"for another length, bounds\. Only its limits"):
        ox.explain(table, neuron, ox.Optimal(length - 1), resume=stopped.state)
    with pytest.raises(TypeError, match="state"):
        ox.explain(table, neuron, ox.Optimal(length), resume="something")
    for method in (ox.NetDissect(), ox.Beam(), ox.Exhaustive()):
        with pytest.raises(TypeError, match="always runs to its end, so there is nothing to res"):
            ox.explain(table, neuron, method, resume=stopped.state)


def test_the_family_is_told():
    case = hard_case()
    table, neuron = case.table, case.neuron
    assert ox.explain(table, neuron).stats.bounds == "TightBounds"
    xor = ox.Operator("XOR", p=True, q=True, r=False)
    other = ox.Optimal(2, operators=(ox.OR, xor))
    assert ox.explain(table, neuron, other).stats.bounds == "PaperBounds"
