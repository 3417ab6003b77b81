"""The published search: against the oracle, against a plain model of itself, and its switches."""

import logging
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from helpers.level_sets import every_set, first_equivalents, sets_within, told
from helpers.published_search import PublishedSearch
from helpers.search_cases import BUCKETS, ONE_BY_ONE, SMALL, USUAL, Bucket, OnlyOne, seeds
from helpers.support import examples
from hypothesis import example, given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.paper.children import order_table
from optexp_jax.explanation import Speculative
from optexp_jax.search import Progress
from optexp_jax.testing import Case

DEVICES = ("rewriting", "recent_memory", "propagation", "min_iou", "discards")
switches = st.fixed_dictionaries({name: st.booleans() for name in DEVICES})


def assert_optimal(found: ox.Explanation, case: Case, bucket: Bucket) -> None:
    optimum = bucket.optimum(case)
    assert found.formula == optimum.formula
    assert found.intersection == optimum.intersection
    assert found.union == int(case.inside.sum()) + optimum.extras
    assert found.status == "optimal"
    assert found.upper_bound == found.iou


@examples(70, in_thorough=5250)
@given(
    bucket=st.sampled_from(BUCKETS), seed=seeds, devices=switches, frontier_reduction=st.booleans()
)
def test_equals_the_oracle(
    bucket: Bucket, seed: int, devices: dict[str, bool], frontier_reduction: bool
):
    case = bucket.case(seed)
    told: list[Progress] = []
    method = bucket.method(frontier_reduction=frontier_reduction, callback=told.append, **devices)
    found = ox.explain(case.table, case.neuron, method)
    assert_optimal(found, case, bucket)
    # At every moment: nothing is above the upper bound, and the incumbent is what it says.
    assert all(progress.upper_bound >= found.iou for progress in told)
    assert all(p.incumbent is None or p.incumbent.score.iou <= found.iou for p in told)


@examples(6)
@given(seed=seeds)
def test_the_order_of_concepts_does_not_matter(seed: int):
    case = USUAL.case(seed)
    order = np.random.default_rng(seed).permutation(USUAL.n_concepts)
    names = [case.names[k] for k in order]
    table = ox.ConceptTable.from_masks(case.masks[order], names)
    shuffled = ox.explain(table, case.inside.astype(bool), USUAL.method())
    plain = ox.explain(case.table, case.neuron, USUAL.method())
    assert shuffled.formula == plain.formula
    assert shuffled.score == plain.score


@examples(3)
@given(seed=seeds)
def test_batch_size_and_x64_do_not_matter(seed: int):
    case = USUAL.case(seed)
    found = ox.explain(case.table, case.neuron, USUAL.method())
    one = ox.explain(case.table, case.neuron, ONE_BY_ONE.method())
    assert (one.formula, one.score) == (found.formula, found.score)
    was = jax.config.read("jax_enable_x64")
    try:
        jax.config.update("jax_enable_x64", not was)
        again = Case(case.masks, case.inside, case.outside)  # with device arrays of its own
        other = ox.explain(again.table, again.neuron, USUAL.method())
    finally:
        jax.config.update("jax_enable_x64", was)
    assert (other.formula, other.score) == (found.formula, found.score)
    for counter in ("visited", "expanded", "estimated", "updated"):
        assert getattr(other.stats, counter) == getattr(found.stats, counter)


@pytest.mark.parametrize("bits", [27, 28, 29, 30, 31, 40, 50])
def test_counts_past_any_small_integer(bits: int):
    # Per-sample counts are held in 32 bits while (depth + 1) times a sample fits: about 2**29.
    size = 2**bits
    sets = [[0], [0, 1], [1, 2], [2], [0, 1, 2], []]
    masks = np.array([[[k in s for s in sets]] for k in range(3)])
    inside = np.array([[size // 8, size // 8 - 1, size // 16, 0, size // 4, 3]])
    outside = np.array([[size // 64, 0, size // 16 + 1, size // 16, 1, size // 8]])
    case = Case(masks, inside, outside)
    assert_optimal(ox.explain(case.table, case.neuron, SMALL.method()), case, SMALL)


def test_nothing_overlaps_the_neuron():
    # Without any hope there is no search.
    masks = np.random.default_rng(0).random((6, 3, 12)) < 0.3
    masks[:, :, :4] = False
    bitmap = np.repeat(np.arange(12)[None] < 4, 3, axis=0)
    found = ox.explain(ox.ConceptTable.from_masks(masks), bitmap, USUAL.method())
    assert found.formula is None
    assert (found.intersection, found.union) == (0, 12)
    assert found.status == "optimal"
    assert found.upper_bound == 0
    assert found.stats.expanded == found.stats.visited == 0


def test_a_perfect_concept_ends_the_search():
    case = USUAL.case(3)
    bitmap = case.masks[2]
    found = ox.explain(case.table, bitmap, USUAL.method())
    assert found.formula is not None
    assert (len(found.formula), found.iou) == (1, 1.0)
    assert found.stats.expanded == 0


# Several formulas.


@examples(6)
@given(
    seed=seeds,
    devices=switches,
    top_k=st.sampled_from([2, 5]),
    bucket=st.sampled_from([SMALL, USUAL]),
)
def test_the_k_best(seed: int, devices: dict[str, bool], top_k: int, bucket: Bucket):
    case = bucket.case(seed)
    method = replace(bucket.method(**devices), top_k=top_k)
    found = ox.explain(case.table, case.neuron, method)
    assert told(found) == first_equivalents(every_set(case, bucket)[:top_k])


@examples(4)
@given(seed=seeds, devices=switches, within=st.sampled_from([0.05, 0.3]))
def test_all_within_a_share_of_the_best(seed: int, devices: dict[str, bool], within: float):
    case = USUAL.case(seed)
    method = replace(USUAL.method(**devices), within=within)
    found = ox.explain(case.table, case.neuron, method)
    assert told(found) == first_equivalents(sets_within(within, every_set(case, USUAL)))


# Stopping early.


def hard_case() -> Case:
    """One that takes a hundred turns, one node at a time."""
    rng = np.random.default_rng(1)
    masks = rng.random((6, 3, 12)) < 0.4
    inside = (rng.random((3, 12)) < 0.4).astype(np.int64)
    return Case(masks, inside, 1 - inside)


@pytest.mark.parametrize("limit", [{"time_limit": 1e-9}, {"gap": 0.5}, {"gap": 0.05}])
def test_limits_give_feasible_results(limit: dict[str, Any]):
    case = hard_case()
    optimum = ONE_BY_ONE.optimum(case)
    best = optimum.intersection / (int(case.inside.sum()) + optimum.extras)
    found = ox.explain(
        case.table, case.neuron, ox.Optimal(3, bounds=ox.PaperBounds(), batch_size=1, **limit)
    )
    assert found.status == "feasible"
    assert found.iou <= best <= found.upper_bound
    assert found.formula is not None
    assert found.gap == pytest.approx(found.upper_bound / found.iou - 1)
    if "gap" in limit:
        assert 0 < found.gap <= limit["gap"]
    # What is reported of the formula is exact, whether it is the best or not.
    score = ox.iou(case.table, case.neuron, found.formula)
    assert (found.intersection, found.union) == (score.intersection, score.union)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("gap", -0.1), ("gap", float("nan")), ("time_limit", 0.0), ("batch_size", 0)],
)
def test_bad_settings_are_refused(argument: str, value: Any):
    with pytest.raises(ValueError, match=argument):
        ox.Optimal(**{argument: value})


# Counters.


def bare(bucket: Bucket, **more) -> ox.Optimal:
    """The devices that the plain model has."""
    return bucket.method(rewriting=False, propagation=False, **more)


@examples(5, in_thorough=400)
@given(seed=seeds, discards=st.booleans())
@example(seed=114365, discards=False)  # a tie that the number of unverified pairs settles
def test_one_node_at_a_time_is_the_published_search(seed: int, discards: bool):
    case = ONE_BY_ONE.case(seed)
    model = PublishedSearch(case, ONE_BY_ONE.length, discards)
    formula = model.run()
    told: list[Progress] = []
    method = bare(ONE_BY_ONE, callback=told.append, discards=discards)
    found = ox.explain(case.table, case.neuron, method)
    assert found.formula == formula
    assert found.stats.visited == model.counters.visited
    assert found.stats.expanded == model.counters.expanded
    assert found.stats.estimated == model.counters.estimated
    # Turn by turn: how many nodes wait, and the bound that is proved.
    assert [(progress.nodes, progress.upper_bound) for progress in told] == model.trace
    assert found.stats.speculative == Speculative()


def disjoint_case(active: list[int], inactive: list[int], uncovered: int) -> Case:
    """Concepts that share no location, spread over three samples."""
    cells = [
        (k, inside)
        for k, counts in enumerate(zip(active, inactive, strict=True))
        for inside, count in zip((1, 0), counts, strict=True)
        for _ in range(count)
    ]
    cells += [(-1, 1)] * uncovered
    cells += [(-1, 0)] * (-len(cells) % 3)
    concept, inside = (np.array(part).reshape(3, -1) for part in zip(*cells, strict=True))
    masks = concept == np.arange(len(active))[:, None, None]
    return Case(masks, inside, 1 - inside)


@pytest.mark.parametrize("discards", [True, False])
def test_counters_of_a_search_done_by_hand(discards: bool):
    # |N| = 20. Concept 0 has 8 active locations and no other, concept 1 has 6 and 1, the others
    # none at all. 0 OR 1 = 14/21 is the optimum; everything is unique, so that
    # - AND paths reach 0 and are dropped at once, AND NOT paths reach no more than their label;
    # - the OR path from 0 is bounded by (8 + 6 + 0) / 20 = 0.7, those from 1 and the others too:
    #   (6 + 8) / 21 and (0 + 8 + 6) / 21 or less.
    # So the OR path from 0 is refined, then expanded: of its children 0 OR k, k = 1..5, the label
    # 0 OR 1 has estimate 14/21 = its exact value, as has the path that goes on from it by OR,
    # which adds nothing in the intersection. OR paths from 1 (14/21) and 2 to 5 (14/(21..25))
    # are level with it at best. With discards, 1 is the only concept that 0 is joined to, and OR
    # paths from the others are not made.
    case = disjoint_case([8, 6, 0, 0, 0, 0], [0, 1, 1, 2, 3, 4], uncovered=6)
    assert int(case.inside.sum()) == 20
    found = ox.explain(case.table, case.neuron, bare(ONE_BY_ONE, discards=discards))
    assert found.formula == ox.Formula((case.names[0], case.names[1]), (ox.OR,))
    assert (found.intersection, found.union) == (14, 21)
    model = PublishedSearch(case, 3, discards)
    model.run()
    assert found.stats.visited == model.counters.visited == 1
    assert found.stats.expanded == model.counters.expanded == (3 if discards else 18)
    assert found.stats.estimated == model.counters.estimated


@pytest.mark.parametrize("bucket", [USUAL, ONE_BY_ONE], ids=["batches", "one by one"])
@pytest.mark.parametrize("seed", range(6))
def test_disjoint_concepts_need_hardly_a_visit(bucket: Bucket, seed: int):
    rng = np.random.default_rng(seed)
    active, inactive = rng.integers(10, 100, (2, 6)).tolist()
    case = disjoint_case(active, inactive, uncovered=int(rng.integers(0, 100)))
    found = ox.explain(case.table, case.neuron, bucket.method())
    assert_optimal(found, case, bucket)
    assert 1 <= found.stats.visited - found.stats.speculative.visited <= 3
    if bucket is ONE_BY_ONE:
        assert found.stats.speculative == Speculative()


def test_propagation_updates_nodes():
    case = hard_case()
    on = ox.explain(case.table, case.neuron, ONE_BY_ONE.method(propagation=True))
    off = ox.explain(case.table, case.neuron, ONE_BY_ONE.method(propagation=False))
    assert off.stats.updated == 0
    assert on.stats.updated > 0
    assert on.formula == off.formula


def test_lower_estimates_save_work():
    case = hard_case()
    on, off = (
        ox.explain(case.table, case.neuron, bare(ONE_BY_ONE, min_iou=min_iou))
        for min_iou in (True, False)
    )
    assert on.formula == off.formula
    assert on.stats.expanded <= off.stats.expanded


def test_index_order_makes_each_formula_once():
    # What the rule leaves is one way to write each formula, or two where AND follows AND NOT.
    operators = (*ox.DEFAULT_OPERATORS, ox.Operator("XOR", p=True, q=True, r=False))
    ordered = order_table(operators)
    chains = [((k,), ()) for k in range(4)]
    for _ in range(3):
        grown = []
        for concepts, steps in chains:
            before = steps[-1] if steps else len(operators)
            grown += [
                ((*concepts, c), (*steps, o))
                for c in set(range(4)) - set(concepts)
                for o in range(len(operators))
                if not ordered[before, o] or c > concepts[-1]
            ]
        made: dict[ox.Formula, int] = {}
        for concepts, steps in grown:
            formula = ox.Formula(
                tuple("abcd"[c] for c in concepts), tuple(operators[o] for o in steps)
            )
            made[formula] = made.get(formula, 0) + 1
            mixes_filters = {ox.AND, ox.AND_NOT} <= set(formula.operators)
            assert made[formula] == 1 or mixes_filters, formula
        every = all_formulas(len(grown[0][0]), operators)
        assert set(made) == every
        chains = grown


def all_formulas(length: int, operators: tuple[ox.Operator, ...]) -> set[ox.Formula]:
    found = {ox.Formula.concept(name) for name in "abcd"}
    for _ in range(length - 1):
        found = {
            formula.then(operator, name)
            for formula in found
            for operator in operators
            for name in "abcd"
            if name not in formula.concepts
        }
    return found


# Compilation.


def test_a_second_neuron_compiles_nothing(caplog: pytest.LogCaptureFixture):
    rng = np.random.default_rng(0)
    table = ox.ConceptTable.from_masks(rng.random((6, 3, 12)) < 0.4)
    bitmaps = rng.random((10, 3, 12)) < rng.choice([0.2, 0.5], (10, 1, 1))
    first = [ox.explain(table, bitmap, USUAL.method()) for bitmap in bitmaps[:6]]
    # Two views; estimates of all paths from concepts and of single nodes; children of full length
    # and others.
    searched = 2 + 2 + 2
    # Others make quantities, vectors, prefixes and exact scores of the table and the neuron.
    assert sum(found.stats.compilations for found in first) <= searched + 14
    with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
        more = [ox.explain(table, bitmap, USUAL.method()) for bitmap in bitmaps[6:]]
    assert [found.stats.compilations for found in more] == [0] * 4
    compiled = [r.getMessage() for r in caplog.records if "XLA compilation" in r.getMessage()]
    assert not compiled


# Bounds that do not hold.


def test_wrong_vectors_are_found_out():
    # Three disjoint concepts with 6, 5 and 4 active locations of 15: their OR is perfect, but
    # Top_1 says that no path reaches more than 11/15.
    sets = [[0]] * 6 + [[1]] * 5 + [[2]] * 4
    masks = np.array([[[k in s for s in sets]] for k in range(3)])
    inside = np.ones((1, 15), np.int64)
    case = Case(masks, inside, 1 - inside)
    wrong = replace(SMALL, vectors=OnlyOne())
    with pytest.raises(ox.InadmissibleBoundError, match="check_admissible"):
        ox.explain(case.table, case.neuron, wrong.method())
    assert_optimal(ox.explain(case.table, case.neuron, SMALL.method()), case, SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("values", [1, 8])
@examples(2)
@given(seed=seeds, devices=switches)
def test_few_rows_at_a_time_make_no_difference(values: int, seed: int, devices: dict[str, bool]):
    # As on tables of so many samples that only a few rows fit into the cache.
    bucket = Bucket(6, 3, 3, batch_size=12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optexp_jax.bounds.paper.chunk_sizes.CHUNK_VALUES", values)
        case = bucket.case(seed)
        found = ox.explain(case.table, case.neuron, bucket.method(**devices))
    assert_optimal(found, case, bucket)


@pytest.mark.slow
@examples(2)
@given(seed=seeds, devices=switches)
def test_forgetting_known_labels_breaks_nothing(seed: int, devices: dict[str, bool]):
    bucket = Bucket(6, 3, 3, batch_size=64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optexp_jax.bounds.paper.exact_prefixes.MEMORY", 0)
        case = bucket.case(seed)
        found = ox.explain(case.table, case.neuron, bucket.method(**devices))
    assert_optimal(found, case, bucket)
