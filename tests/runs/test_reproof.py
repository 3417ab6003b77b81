"""Second proofs: each way agrees with the oracle, and none is easily deceived."""

import numpy as np
import pytest
from helpers.run_cases import memory_layer
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.counts.scores import Score
from optexp_jax.methods import FormulaSpace
from optexp_jax.methods.oracle import enumerate_formulas
from optexp_jax.runs.reproof import ALL_TRIED, Prover, StoredClaim
from optexp_jax.runs.reproof.all_sets import AllSets
from optexp_jax.runs.reproof.best_chains import BestChains, subsets
from optexp_jax.runs.reproof.concept_sets import ConceptSets, count_held, count_sets

XOR = ox.Operator("XOR", p=True, q=True, r=False)
INSTEAD = ox.Operator("INSTEAD", p=False, q=True, r=False)
SETS_OF_OPERATORS = (
    ox.DEFAULT_OPERATORS,
    (ox.OR,),
    (ox.AND, ox.AND_NOT),
    (ox.OR, ox.AND),
    (*ox.DEFAULT_OPERATORS, XOR),
    (XOR, INSTEAD),
)


def just_below(score: Score, parts: int = 10**9) -> Score:
    return Score(score.intersection * parts - 1, score.union * parts)


@examples(60)
@given(case=cases(), length=st.integers(1, 3), operators=st.sampled_from(SETS_OF_OPERATORS))
def test_all_sets_agree_with_the_oracle(
    case: Case, length: int, operators: tuple[ox.Operator, ...]
):
    neuron = case.neuron
    if not neuron.size:
        return
    sets = AllSets(case.table, FormulaSpace(length, operators))
    with as_users_run_it():
        found = ox.Exhaustive(length, operators=operators).run(case.table, neuron)
        claims = [StoredClaim(neuron, found.score)]
        if found.intersection:
            # One that fits 64 bits, and one that is rounded down so that it does.
            claims += [StoredClaim(neuron, just_below(found.score, n)) for n in (10**9, 10**22)]
        right, *wrong = sets.prove(claims)
    assert right is not None
    assert right.best.how == ALL_TRIED
    assert right.best.proved
    assert right.best.better is None
    assert right.best.first == found.formula
    for claim, proof in zip(claims[1:], wrong, strict=True):
        if proof is not None:  # else the numbers are too large
            assert not proof.best.proved
            assert proof.best.better is not None
            assert proof.best.better.ratio > claim.score.ratio


@examples(30)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 4),
    operators=st.sampled_from(SETS_OF_OPERATORS),
)
def test_the_best_chain_is_the_best_of_all(
    seed: int, size: int, operators: tuple[ox.Operator, ...]
):
    if size == 4 and len(operators) > 3:
        size = 3
    rng = np.random.default_rng(seed)
    cells = np.arange(2**size) >> np.arange(size)[:, None] & 1 == 1
    weights = rng.integers(-(10**6), 10**6, 2**size)
    shared = {
        chosen: weights[cells[np.array(chosen, bool)].all(0)].sum().reshape(1, 1)
        for chosen in subsets(size)
    }
    highest = max(
        int(scored.intersections.max())
        for scored in enumerate_formulas(cells, weights, weights, size, operators)
        if scored.concepts.shape[1] == size
    )
    with as_users_run_it():
        assert BestChains(size, operators).highest(shared).item() == highest


@given(case=cases(), longest=st.integers(1, 3))
def test_sets_hold_what_their_masks_share(case: Case, longest: int):
    longest = min(longest, case.table.n_concepts)
    sets = ConceptSets(case.table.signatures, longest)
    with as_users_run_it():
        shared = sets.shared(case.table.sizes[:, None])
    held = np.stack([case.table.mask(name) for name in case.table.names])
    assert sum(map(len, shared)) == count_sets(case.table.n_concepts, longest)
    for members, weights in zip(sets.members, shared, strict=True):
        assert sets.number(members).tolist() == list(range(len(members)))
        for row, weight in zip(members, weights[:, 0], strict=True):
            assert np.count_nonzero(held[row].all(0)) == weight
    nonempty = sum(matrix.nnz for matrix in sets._holding)
    assert count_held(case.table.signatures, longest) == nonempty


@examples(25)
@given(case=cases(), length=st.integers(1, 3), most=st.integers(1, 6))
def test_lists_of_all_sets_are_those_of_the_search(case: Case, length: int, most: int):
    neuron = case.neuron
    if not neuron.size:
        return
    method = ox.Optimal(length, top_k=most)
    with as_users_run_it():
        found = ox.explain(case.table, neuron, method)
        listed = [found.score] if found.formula is not None else []
        listed += [Score(other.intersection, other.union) for other in found.runners_up]
        prover = Prover(case.table, method.formula_space, 60.0)
        (right,) = prover.prove([StoredClaim(neuron, found.score, tuple(listed))])
        assert right.listed is not None
        assert right.listed.proved, (right, listed)
        if len(listed) > 1:
            (wrong,) = prover.prove([StoredClaim(neuron, found.score, tuple(listed[:-1]))])
            assert wrong.listed is not None
            assert wrong.listed.better is not None
            assert wrong.listed.better.ratio == listed[-1].ratio


def test_sets_that_are_level_need_not_have_the_same_counts():
    held = [([], [9]), ([2], [1, 8]), ([3, 6, 8, 9, 10], [0, 2]), ([5, 11], [7]), ([], [10, 11])]
    masks = np.zeros((5, 2, 12), bool)
    for mask, samples in zip(masks, held, strict=True):
        for row, places in zip(mask, samples, strict=True):
            row[places] = True
    table = ox.ConceptTable.from_masks(masks)
    neuron = table.count(np.arange(24).reshape(2, 12) >= 12)
    method = ox.Optimal(3, top_k=2)
    with as_users_run_it():
        found = ox.explain(table, neuron, method)
    first, last = found.score, Score(found.runners_up[0].intersection, found.runners_up[0].union)
    assert last in (Score(5, 15), Score(6, 18))
    prover = Prover(table, method.formula_space, 60.0)
    for other in (Score(5, 15), Score(6, 18)):
        (right,) = prover.prove([StoredClaim(neuron, first, (first, other))])
        assert right.listed is not None
        assert right.listed.proved


@examples(40)
@given(
    case=cases(), length=st.integers(1, 3), without=st.sampled_from([None, *ox.DEFAULT_OPERATORS])
)
def test_the_proof_from_pairs_agrees_with_the_oracle(case: Case, length: int, without: object):
    operators = tuple(operator for operator in ox.DEFAULT_OPERATORS if operator != without)
    neuron = case.neuron
    if not neuron.size:
        return
    with as_users_run_it():
        best = ox.Exhaustive(length, operators=operators).run(case.table, neuron).score
        prover = Prover(case.table, FormulaSpace(length, operators), 60.0)
        proof = prover.prove_best(StoredClaim(neuron, best))
        assert proof.how == "bounded by counts of pairs"
        assert proof.proved
        assert proof.better is None
        if best.intersection:
            # The least below the best is disproved, by the best or one in between.
            below = just_below(best)
            doubted = prover.prove_best(StoredClaim(neuron, below))
            assert not doubted.proved
            assert doubted.better is not None
            assert doubted.better.ratio > below.ratio


def test_what_takes_too_long_is_not_proved():
    layer = memory_layer(1)
    (counts,) = layer.counts([0])
    best = ox.explain(layer.table, counts, ox.Optimal(length=3)).score
    prover = Prover(layer.table, FormulaSpace(3, ox.DEFAULT_OPERATORS), 1e-9)
    assert prover.seconds_a_unit is None
    (proof,) = prover.prove([StoredClaim(counts, best)])
    assert not proof.best.proved
    assert proof.best.better is None


def test_tables_with_too_many_sets_are_left_to_the_other_proofs():
    wide = ox.ConceptTable.from_signatures([[k] for k in range(1200)], [5] * 1200, _names(1200))
    assert Prover(wide, FormulaSpace(3, ox.DEFAULT_OPERATORS), 60.0).seconds_a_unit is None
    deep = ox.ConceptTable.from_signatures([[k] for k in range(9)], [5] * 9, _names(9))
    assert Prover(deep, FormulaSpace(9, ox.DEFAULT_OPERATORS), 60.0).seconds_a_unit is None
    assert Prover(deep, FormulaSpace(4, ox.DEFAULT_OPERATORS), 60.0).seconds_a_unit is not None


def _names(n: int) -> list[str]:
    return [f"concept {k}" for k in range(n)]


@pytest.mark.slow
def test_longer_formulas_are_searched_with_the_published_bounds():
    layer = memory_layer(1)
    (counts,) = layer.counts([0])
    four = ox.explain(layer.table, counts, ox.Optimal(length=4)).score
    prover = Prover(layer.table, FormulaSpace(4, ox.DEFAULT_OPERATORS), 60.0)
    proof = prover.prove_best(StoredClaim(counts, four))
    assert proof.how == "searched with the published bounds"
    assert proof.proved
    assert prover.prove_best(StoredClaim(counts, Score(1, 10**6))).better
