"""explain: the whole way from a table and a bitmap to an explanation."""

import dataclasses
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.strategies import ALL_OPERATORS, Case, WeightedCase, cases, weighted_cases
from helpers.support import examples, x64_setting
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax import (
    AbstractMethod,
    ConceptTable,
    Exhaustive,
    Explanation,
    Formula,
    NetDissect,
    NeuronCounts,
    Status,
    explain,
    explain_many,
)
from optexp_jax.methods.oracle import count_formulas
from optexp_jax.methods.together import neurons_together


def without_times(explanation: Explanation) -> Explanation:
    return dataclasses.replace(explanation, stats=ox.SearchStats(visited=explanation.stats.visited))


def permuted(case: Case, order: list[int]) -> Case:
    return Case(case.masks[order], case.bitmap, tuple(case.names[k] for k in order))


# --- exhaustive -----------------------------------------------------------------------------------


@given(cases(max_concepts=5), st.integers(1, 3), st.booleans())
def test_exhaustive_through_the_table_is_the_oracle_on_masks(case: Case, length: int, more: bool):
    operators = ALL_OPERATORS if more else ox.DEFAULT_OPERATORS
    expected = case.optimum(length, operators)
    found = explain(case.table, case.bitmap, Exhaustive(length, operators=operators))
    assert found.formula == expected.formula
    assert found.intersection == expected.intersection
    assert found.union == case.bitmap.sum() + expected.extras
    assert (type(found.intersection), type(found.union)) == (int, int)
    assert found.status == "optimal"
    assert found.upper_bound == found.iou
    assert found.gap == 0.0
    assert found.stats.visited == expected.tried
    if found.formula is not None:
        held = case.mask(found.formula)
        assert found.intersection == (held & case.bitmap).sum()
        assert found.union == (held | case.bitmap).sum()


@given(weighted_cases(), st.integers(1, 3))
def test_exhaustive_on_large_counts(case: WeightedCase, length: int):
    expected = case.optimum(length)
    found = explain(case.table, case.neuron, Exhaustive(length))
    assert found.formula == expected.formula
    assert (found.intersection, found.union) == (
        expected.intersection,
        sum(case.inside) + expected.extras,
    )


@given(cases(max_concepts=5), st.integers(1, 3), st.data())
def test_the_order_of_concepts_does_not_matter(case: Case, length: int, data: st.DataObject):
    order = data.draw(st.permutations(range(len(case.names))))
    other = permuted(case, order)
    for method in (Exhaustive(length), NetDissect()):
        one = explain(case.table, case.bitmap, method)
        two = explain(other.table, other.bitmap, method)
        assert without_times(one) == without_times(two)
        assert str(one) == str(two)


def test_exhaustive_refuses_what_is_too_large():
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((1198, 2, 40)) < 0.01)
    n_formulas = 1198 + 3 * 1198 * 1197 + 9 * 1198 * 1197 * 1196
    with pytest.raises(ValueError, match=f"means {n_formulas} formulas over .* signatures.*Use "):
        explain(table, np.ones((2, 40), bool), Exhaustive(3))
    # However few the signatures, so many formulas take hours.
    small = ConceptTable.from_signatures([list(range(600))], [3])
    with pytest.raises(ValueError, match=f"means {count_formulas(600, 3, 3)} formulas over 2 sig"):
        explain(small, NeuronCounts.from_signatures(small, [1]), Exhaustive(3))
    few = table.select(table.names[:5])
    with pytest.raises(ValueError, match="max_work=100"):
        explain(few, np.ones((2, 40), bool), Exhaustive(2, max_work=100))
    assert explain(few, np.ones((2, 40), bool), Exhaustive(2)).stats.visited == 65


def test_longer_than_there_are_concepts():
    table = ConceptTable.from_masks(np.eye(2, dtype=bool)[:, None])
    found = explain(table, np.ones((1, 2), bool), Exhaustive(10))
    assert str(found.formula) == "(c0 OR c1)"
    assert found.iou == 1.0


# --- network dissection ---------------------------------------------------------------------------


@given(cases())
def test_network_dissection_is_the_best_concept(case: Case):
    found = explain(case.table, case.bitmap, NetDissect())
    expected = explain(case.table, case.bitmap, Exhaustive(1))
    assert without_times(found) == without_times(expected)
    assert found.stats.visited == len(case.names)


# --- what cannot be explained ---------------------------------------------------------------------


@pytest.mark.parametrize("method", [NetDissect(), Exhaustive(1), Exhaustive(3)])
def test_a_neuron_that_no_concept_overlaps(method: AbstractMethod):
    masks = np.zeros((3, 2, 4), bool)
    masks[0, 0], masks[1, :, 0] = True, True
    bitmap = np.zeros((2, 4), bool)
    bitmap[1, 2:] = True
    found = explain(ConceptTable.from_masks(masks), bitmap, method)
    assert found.formula is None
    assert (found.intersection, found.union, found.iou) == (0, 2, 0.0)
    assert found.status == "optimal"
    assert (found.upper_bound, found.gap) == (0.0, 0.0)
    assert "no concept overlaps" in str(found)


@pytest.mark.parametrize("method", [NetDissect(), Exhaustive(2)])
def test_a_neuron_that_never_fires(method: AbstractMethod):
    table = ConceptTable.from_masks(np.ones((1, 2, 3), bool))
    silent = np.zeros((2, 3), bool)
    for neuron in (silent, table.count(silent)):
        with pytest.raises(ValueError, match=r"never fires.*Lower its threshold"):
            explain(table, neuron, method)
    counted = ConceptTable.from_signatures([[0]], [3])
    with pytest.raises(ValueError, match="never fires"):
        explain(counted, NeuronCounts.from_signatures(counted, [0]), method)


# --- the interface --------------------------------------------------------------------------------


@given(cases(max_concepts=4), cases(max_concepts=4))
@examples(20)
def test_bitmaps_and_counts_are_the_same_neuron(case: Case, other: Case):
    method = Exhaustive(2)
    by_bitmap = explain(case.table, case.bitmap, method)
    assert without_times(by_bitmap) == without_times(explain(case.table, case.neuron, method))
    if case.table.fingerprint != other.table.fingerprint:
        with pytest.raises(ValueError, match="belong to another table"):
            explain(other.table, case.neuron, method)


@given(cases(max_concepts=4), st.integers(0, 4), st.integers(0, 2**16))
@examples(20)
def test_many_neurons_in_their_order(case: Case, n: int, seed: int):
    bitmaps = np.random.default_rng(seed).random((n, *case.bitmap.shape)) < 0.5
    bitmaps[:, 0, 0] = True
    method = Exhaustive(2)
    neurons = [*bitmaps, case.neuron]
    found = [without_times(e) for e in explain_many(case.table, neurons, method)]
    assert found == [without_times(explain(case.table, neuron, method)) for neuron in neurons]


def test_many_neurons_are_taken_as_they_come():
    table = ConceptTable.from_masks(np.ones((1, 2, 3), bool))
    taken: list[int] = []

    def neurons():
        for k in range(20):
            taken.append(k)
            yield np.ones((2, 3), bool)

    results = explain_many(table, neurons(), NetDissect())
    next(results)
    assert len(taken) <= neurons_together(
        table
    )  # a few are prepared together, and no more are held
    assert len(list(results)) + 1 == len(taken) == 20


@pytest.mark.parametrize("x64", [False, True])
def test_the_precision_setting_does_not_matter(x64: bool):
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((5, 3, 20)) < 0.4)
    bitmap = rng.random((3, 20)) < 0.3
    expected = [without_times(explain(table, bitmap, m)) for m in (NetDissect(), Exhaustive(3))]
    with x64_setting(x64):
        found = [without_times(explain(table, bitmap, m)) for m in (NetDissect(), Exhaustive(3))]
    assert found == expected


def test_a_method_of_the_user():
    class First(AbstractMethod):
        def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
            formula = Formula.concept(table.names[0])
            score = ox.iou(table, neuron, formula)
            return Explanation(formula, score.intersection, score.union, 1.0, Status.FEASIBLE)

    table = ConceptTable.from_masks(np.ones((1, 2, 3), bool))
    found = explain(table, np.eye(2, 3, dtype=bool), First())
    assert (found.intersection, found.union, found.status) == (2, 6, "feasible")
    assert found.gap == pytest.approx(2.0)
    assert str(found) == "c0  IoU 0.3333 (2/6, feasible, upper bound 1.0000)"


def test_methods_are_immutable_and_comparable():
    with pytest.raises(AttributeError):
        Exhaustive(2).length = 3  # type: ignore[misc]
    assert Exhaustive(2) == Exhaustive(2)
    assert Exhaustive(2) != Exhaustive(3)
    assert Exhaustive().length == 3
    assert pickle.loads(pickle.dumps(Exhaustive(2))) == Exhaustive(2)


# --- explanations ---------------------------------------------------------------------------------


def test_status_is_its_string():
    assert Status.OPTIMAL == "optimal"
    assert Status.FEASIBLE == "feasible"
    assert f"{Status.OPTIMAL}" == "optimal"
    assert json.dumps({"status": Status.OPTIMAL}) == '{"status": "optimal"}'
    assert Status("feasible") is Status.FEASIBLE


def test_gap():
    formula = Formula.concept("a")
    assert Explanation(formula, 1, 4, 0.25, Status.OPTIMAL).gap == 0.0
    assert Explanation(formula, 1, 4, 0.5, Status.FEASIBLE).gap == 1.0
    assert Explanation(None, 0, 4, 0.5, Status.FEASIBLE).gap == math.inf
    assert Explanation(None, 0, 4, 0.0, Status.OPTIMAL).gap == 0.0


def test_pickle_and_print():
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((3, 2, 9)) < 0.5, ["traffic light", "b", "a"])
    found = explain(table, rng.random((2, 9)) < 0.4, Exhaustive(2))
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found
    assert str(copy) == str(found)
    assert copy.formula == found.formula
    assert found.formula is not None
    assert copy.formula.mask(table).tolist() == table.mask(found.formula).tolist()
    assert f"({found.intersection}/{found.union}, optimal)" in str(found)
    with pytest.raises(AttributeError):
        found.union = 3  # type: ignore[misc]


def test_everything_travels_to_another_process():
    """What a pool of workers needs: table, counts, method and explanation, pickled both ways."""
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((3, 2, 9)) < 0.5)
    neuron = table.count(rng.random((2, 9)) < 0.4)
    code = (
        "import pickle, sys, optexp_jax as ox\n"
        "work = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(ox.explain(*work)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((table, neuron, Exhaustive(2))),
        stdout=subprocess.PIPE,
        check=True,
    )
    expected = explain(table, neuron, Exhaustive(2))
    assert without_times(pickle.loads(done.stdout)) == without_times(expected)
