"""Weights are copies: a table with weights behaves as one whose samples stand there that often."""

import numpy as np
import pytest
from helpers.strategies import cases
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.counts.reweighting import Reweighting, complement

METHODS = (
    ox.Optimal(2),
    ox.Optimal(2, bounds=ox.PaperBounds()),
    ox.Exhaustive(2),
    ox.Beam(2),
    ox.NetDissect(),
)


def drawn_weights(draw: st.DataObject, n_samples: int) -> np.ndarray:
    weights = draw.draw(st.lists(st.integers(0, 3), min_size=n_samples, max_size=n_samples))
    weights[draw.draw(st.integers(0, n_samples - 1))] = 1
    return np.array(weights)


@given(cases(), st.data())
def test_equals_copies_of_samples_differential(case, data):
    weights = drawn_weights(data, case.masks.shape[1])
    weighted = Reweighting(case.table, weights)
    copies = ox.ConceptTable.from_masks(np.repeat(case.masks, weights, axis=1), case.names)
    bitmap = np.repeat(case.bitmap, weights, axis=0)
    neuron = weighted.counts(case.neuron)
    assert weighted.table.n_locations == copies.n_locations
    assert weighted.table.concept_sizes.tolist() == copies.concept_sizes.tolist()
    assert (weighted.table.disjoint == copies.disjoint).all()
    assert neuron.size == bitmap.sum()
    assert neuron.size + neuron.outside.sum() == copies.n_locations
    if not neuron.size:
        return
    method = data.draw(st.sampled_from(METHODS))
    mine = ox.explain(weighted.table, neuron, method)
    theirs = ox.explain(copies, bitmap, method)
    assert (mine.formula, mine.score, mine.status) == (theirs.formula, theirs.score, theirs.status)
    assert mine.unverified == theirs.unverified


def small_table() -> ox.ConceptTable:
    return ox.ConceptTable.from_masks(np.array([[[1, 0], [1, 1]], [[0, 1], [0, 0]]], bool))


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [0, 0], [-1, 2], [0.5, 1.0], [2**52, 2**52]])
def test_wrong_weights_are_refused(weights):
    with pytest.raises((TypeError, ValueError), match="weight"):
        Reweighting(small_table(), np.array(weights))


def test_counts_past_32_bits():
    weighted = Reweighting(small_table(), np.array([2**40, 1]))
    neuron = small_table().count(np.array([[True, False], [True, True]]))
    found = ox.explain(weighted.table, weighted.counts(neuron), ox.Optimal(2))
    assert found.score == ox.Score(2**40 + 2, 2**40 + 2)


def test_counts_of_another_table_are_refused():
    other = ox.ConceptTable.from_masks(np.ones((1, 2, 2), bool))
    with pytest.raises(ValueError, match="another table"):
        Reweighting(small_table(), np.array([1, 1])).counts(other.count(np.ones((2, 2), bool)))


def test_what_needs_locations_says_so():
    weighted = Reweighting(small_table(), np.array([1, 2])).table
    with pytest.raises(ValueError, match="reweighted"):
        weighted.mask("c0")
    with pytest.raises(ValueError, match="before you reweight"):
        weighted.select(["c0"])


def test_booleans_are_weights():
    half = Reweighting(small_table(), np.array([False, True]))
    assert half.weights.tolist() == [0, 1]
    assert half.table.n_locations == 2


def test_complement_is_what_has_no_weight():
    assert complement([0, 2, 0, 1]).tolist() == [1, 0, 1, 0]
