"""Exact scores: the integers that the masks give, one by one and in batches, at any size."""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.strategies import (
    ALL_OPERATORS,
    XOR,
    Case,
    WeightedCase,
    cases,
    formulas,
    some_formulas,
    weighted_cases,
)
from helpers.support import examples, x64_setting
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax import AND, AND_NOT, OR, ConceptTable, Formula, FormulaBatch, NeuronCounts
from optexp_jax.counts import scores
from optexp_jax.counts.scores import BatchScores, Score, held_on_host, highest_rows, iou, iou_many

X64 = pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])


def expected_score(case: Case, formula: Formula) -> Score:
    held = case.mask(formula)
    return Score(int((held & case.bitmap).sum()), int((held | case.bitmap).sum()))


# --- one formula ----------------------------------------------------------------------------------


@given(st.data(), cases(may_be_silent=True))
def test_iou_is_that_of_the_masks(data: st.DataObject, case: Case):
    formula = data.draw(formulas(case.names))
    score = iou(case.table, case.neuron, formula)
    assert score == expected_score(case, formula)
    assert type(score.intersection) is int
    assert type(score.union) is int
    assert iou(case.table, case.bitmap, formula) == score  # a bitmap will do


@given(st.data(), weighted_cases())
def test_iou_of_large_counts(data: st.DataObject, case: WeightedCase):
    formula = data.draw(formulas(case.names))
    score = iou(case.table, case.neuron, formula)
    assert (score.intersection, score.union) == case.score(formula)


def test_score_rounds_once():
    assert Score(1, 3).iou == 1 / 3
    assert Score(0, 0).iou == 0.0
    assert Score(0, 0).ratio == 0
    assert Score(2**60 + 1, 2**60 + 3).iou == float(Fraction(2**60 + 1, 2**60 + 3))
    assert Score(2**62 - 1, 2**62).ratio < Score(2**62, 2**62 + 1).ratio
    with pytest.raises(AttributeError):
        Score(1, 2).union = 3  # type: ignore[misc]


# --- batches --------------------------------------------------------------------------------------


@given(cases(may_be_silent=True, max_concepts=5), st.integers(0, 8), st.integers(0, 2**16))
def test_iou_many_is_iou(case: Case, n: int, seed: int):
    batch = some_formulas(np.random.default_rng(seed), case.names, n)
    found = iou_many(case.table, case.neuron, batch)
    assert len(found) == n
    assert [found[row] for row in range(n)] == [expected_score(case, f) for f in batch]
    assert found.iou.tolist() == [found[row].iou for row in range(n)]


@given(cases(may_be_silent=True, max_concepts=5), st.integers(1, 8), st.integers(0, 2**16))
def test_where_formulas_hold_on_the_host(case: Case, n: int, seed: int):
    formulas = some_formulas(np.random.default_rng(seed), case.names, n)
    batch = FormulaBatch.from_formulas(formulas, case.names, length=6)
    expected = [case.table.holds(formula) for formula in formulas]
    np.testing.assert_array_equal(held_on_host(case.table, batch), expected)


@X64
@given(case=weighted_cases(max_concepts=4), seed=st.integers(0, 2**16))
@examples(30)
def test_large_counts_are_exact_under_either_setting(x64: bool, case: WeightedCase, seed: int):
    batch = some_formulas(np.random.default_rng(seed), case.names, 8, max_length=3)
    with x64_setting(x64):
        found = iou_many(case.table, case.neuron, batch)
    assert found.intersections.dtype == found.extras.dtype == np.int64
    for row, formula in enumerate(batch):
        assert (found[row].intersection, found[row].union) == case.score(formula)
        assert type(found[row].union) is int


@X64
@pytest.mark.parametrize("size", [2**24 + 1, 2**31 - 1, 2**31 + 1, 2**32 + 1, 2**40 + 1, 2**50 + 1])
def test_every_bit_of_large_counts(x64: bool, size: int):
    """float32 is exact to 2**24, int32 to 2**31; the sums of two sizes come past both."""
    table = ConceptTable.from_signatures([[0], [1], [0, 1], []], [size, size, 1, 2])
    neuron = NeuronCounts.from_signatures(table, [size - 1, 1, 0, 1])
    a, b = Formula.concept("c0"), Formula.concept("c1")
    batch = [a, b, a.then(OR, "c1"), a.then(AND, "c1"), a.then(AND_NOT, "c1"), a.then(XOR, "c1")]
    with x64_setting(x64):
        found = iou_many(table, neuron, batch)
    n = size + 1
    assert [found[row] for row in range(6)] == [
        Score(size - 1, n + 2),
        Score(1, n + size),
        Score(size, n + 1 + size - 1 + 1),
        Score(0, n + 1),
        Score(size - 1, n + 1),
        Score(size, n + 1 + size - 1),
    ]
    assert [iou(table, neuron, f) for f in batch] == [found[row] for row in range(6)]


@X64
def test_the_setting_is_left_alone(x64: bool):
    table = ConceptTable.from_masks(np.eye(3, dtype=bool)[:, None])
    with x64_setting(x64):
        iou_many(table, np.ones((1, 3), bool), [Formula.concept("c0")])
        assert jnp.arange(2).dtype == (jnp.int64 if x64 else jnp.int32)


@pytest.mark.parametrize("n_signatures", [31, 32, 33, 64, 200])
def test_signatures_across_words(n_signatures: int):
    """Packed 32 to a word: the last word is full, or just begun."""
    rng = np.random.default_rng(n_signatures)
    sets = [np.flatnonzero([(s >> k) & 1 for k in range(8)]) for s in range(1, n_signatures)]
    sizes = rng.integers(1, 2**40, len(sets)).tolist()
    inside = [int(rng.integers(0, size + 1)) for size in sizes]
    names = tuple(f"c{k}" for k in range(8))
    case = WeightedCase(tuple(tuple(s.tolist()) for s in sets), tuple(sizes), tuple(inside), names)
    assert len(case.table.signatures) == n_signatures
    batch = some_formulas(rng, names[:5], 30)
    found = iou_many(case.table, case.neuron, batch)
    for row, formula in enumerate(batch):
        assert (found[row].intersection, found[row].union) == case.score(formula)


def random_case(rng: np.random.Generator) -> Case:
    return Case(rng.random((4, 3, 9)) < 0.4, rng.random((3, 9)) < 0.4, tuple("badc"))


def test_forms_of_a_batch():
    rng = np.random.default_rng(0)
    case = random_case(rng)
    batch = some_formulas(rng, case.names, 30)
    expected = [expected_score(case, formula) for formula in batch]
    host = FormulaBatch.from_formulas(batch, case.names, ALL_OPERATORS, length=6)
    device = FormulaBatch(jnp.asarray(host.concepts), jnp.asarray(host.operators), ALL_OPERATORS)
    for form in (batch, iter(batch), host, device):
        found = iou_many(case.table, case.neuron, form)
        assert [found[row] for row in range(len(found))] == expected


def test_a_batch_in_several_blocks(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    case = random_case(rng)
    batch = some_formulas(rng, case.names, 50)
    monkeypatch.setattr(scores, "BLOCK_WORDS", 1)
    found = iou_many(case.table, case.neuron, batch)
    assert [found[row] for row in range(50)] == [expected_score(case, f) for f in batch]


def test_few_compilations_for_many_batches_and_neurons():
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((6, 3, 50)) < 0.4)
    compiled: Any = scores._score_chains
    compiled.clear_cache()
    for n in range(1, 33):
        neuron = table.count(rng.random((3, 50)) < 0.3)
        pairs = some_formulas(rng, table.names, n, 2, ox.DEFAULT_OPERATORS)
        iou_many(table, neuron, [Formula(("c0", "c1"), (OR,)), *pairs][:n])
    # 8, 16 and 32 rows.
    assert compiled._cache_size() == 3


def test_memory_does_not_grow_with_formulas_times_signatures():
    batch, words = 256, 256
    sums: Any = jax.jit(scores._weighted_sums)
    with jax.enable_x64(True):
        compiled = sums.lower(
            jnp.zeros((batch, words), jnp.uint32),
            jnp.zeros((words, 32), jnp.int64),
            jnp.zeros((words, 32), jnp.int64),
        ).compile()
    analysis = compiled.memory_analysis()
    if analysis is None:
        pytest.skip("this backend does not tell")
    assert analysis.temp_size_in_bytes < batch * words * 32


# --- the highest ----------------------------------------------------------------------------------


@st.composite
def ratios(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Rows that are equal, or differ by less than floats can tell."""
    m = draw(st.sampled_from([3, 2**25, 2**31, 2**40, 2**50]))
    near = [(m - 1, m), (m, m + 1), (m // 2, m), (m // 2 + 1, m + 2), (0, m), (1, 2), (2, 4)]
    return draw(st.lists(st.sampled_from(near), min_size=1, max_size=8))


@given(ratios())
def test_highest_rows(rows: list[tuple[int, int]]):
    exact = [Fraction(a, b) for a, b in rows]
    found = highest_rows(np.array([a for a, _ in rows]), np.array([b for _, b in rows]))
    assert found == [k for k, ratio in enumerate(exact) if ratio == max(exact)]


def test_highest_rows_of_nothing_to_cover():
    assert highest_rows(np.array([0, 0]), np.array([0, 0])) == [0, 1]


@given(weighted_cases())
def test_the_best_concept_by_a_hair(case: WeightedCase):
    """Sizes about 2**40, ratios one part in 2**80 apart: ties and near ties are told apart."""
    exact = {name: Fraction(*case.score(Formula.concept(name))) for name in case.names}
    top = max(exact.values())
    expected = min(name for name, ratio in exact.items() if ratio == top) if top else None
    found = ox.explain(case.table, case.neuron, ox.NetDissect())
    assert found.formula == (None if expected is None else Formula.concept(expected))
    if expected is not None:
        assert Fraction(found.intersection, found.union) == top


def test_batch_scores_of_an_empty_union():
    empty = BatchScores(np.array([0]), np.array([0]), 0)
    assert empty.iou.tolist() == [0.0]
    assert empty[0].iou == 0.0
