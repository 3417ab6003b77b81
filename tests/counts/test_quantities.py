"""The paper's quantities, against their definition on raw masks, and the lemma dIoU = IoU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.strategies import Case, WeightedCase, cases, some_formulas, weighted_cases
from helpers.support import examples, x64_setting
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.counts.quantities import (
    NeuronQuantities,
    Quantities,
    concept_quantities,
    diou,
    formula_quantities,
    neuron_quantities,
)
from optexp_jax.counts.scores import Score, iou_many
from optexp_jax.formulas.formula import Formula

# Few concepts and samples: every new shape is a compilation.
SMALL = cases(max_concepts=3, max_samples=3)
SMALL_OR_SILENT = cases(max_concepts=3, max_samples=3, may_be_silent=True)


def parts(quantities: Quantities | NeuronQuantities) -> list[list[int]]:
    leaves = jax.tree.leaves(quantities)
    assert all(leaf.dtype == jnp.int64 for leaf in leaves)
    return [np.asarray(leaf).tolist() for leaf in leaves]


def defined(case: Case, held: np.ndarray) -> list[list[int]]:
    """I^U, I^C, E^U, E^C per sample: unique locations have one concept, common ones several."""
    cover = case.masks.sum(axis=0)
    return [
        (held & kind & inside).sum(axis=1).tolist()
        for inside in (case.bitmap, ~case.bitmap)
        for kind in (cover == 1, cover > 1)
    ]


@given(SMALL_OR_SILENT)
def test_neuron(case: Case):
    cover, active = case.masks.sum(axis=0), case.bitmap
    expected = [
        area.sum(axis=1).tolist()
        for area in (
            active,
            active & (cover == 1),
            active & (cover > 1),
            ~active & (cover == 1),
            ~active & (cover > 1),
        )
    ]
    found = neuron_quantities(case.table, case.neuron)
    assert parts(found) == expected
    assert parts(found.aggregate()) == [[sum(part)] for part in expected]


@given(SMALL_OR_SILENT)
def test_concepts(case: Case):
    found = concept_quantities(case.table, case.neuron)
    assert found.iu.shape == case.masks.shape[:2]
    expected = [defined(case, mask) for mask in case.masks]
    assert [parts(found[k]) for k in range(len(case.names))] == expected
    total = found.aggregate()
    assert total.iu.shape == (len(case.names), 1)
    assert [parts(total[k]) for k in range(len(case.names))] == [
        [[sum(part)] for part in concept] for concept in expected
    ]


@given(SMALL_OR_SILENT, st.integers(0, 8), st.integers(0, 2**16))
def test_formulas(case: Case, n: int, seed: int):
    batch = some_formulas(np.random.default_rng(seed), case.names, n, max_length=3)
    found = formula_quantities(case.table, case.neuron, batch)
    assert found.iu.shape == (n, case.masks.shape[1])
    for row, formula in enumerate(batch):
        assert parts(found[row]) == defined(case, case.mask(formula))


@given(SMALL)
@examples(20)
def test_concepts_are_formulas_of_length_one(case: Case):
    batch = [Formula.concept(name) for name in case.names]
    one = concept_quantities(case.table, case.neuron)
    assert parts(formula_quantities(case.table, case.neuron, batch)) == parts(one)


@given(SMALL, st.integers(0, 2**16))
def test_diou_is_iou(case: Case, seed: int):
    """The lemma: splitting by sample and into unique and common elements loses nothing."""
    batch = some_formulas(np.random.default_rng(seed), case.names, 8, max_length=3)
    quantities = formula_quantities(case.table, case.neuron, batch)
    neuron = neuron_quantities(case.table, case.neuron)
    direct = iou_many(case.table, case.neuron, batch)
    per_sample = diou(quantities, neuron)
    aggregated = diou(quantities.aggregate(), neuron.aggregate())
    for row, formula in enumerate(batch):
        held = case.mask(formula)
        score = Score(int((held & case.bitmap).sum()), int((held | case.bitmap).sum()))
        assert per_sample[row] == aggregated[row] == direct[row] == score


@given(SMALL)
@examples(20)
def test_what_there_is_to_cover_bounds_every_concept(case: Case):
    """I^U of the concepts partition N^U: every unique element has exactly one concept."""
    concepts = concept_quantities(case.table, case.neuron)
    neuron = neuron_quantities(case.table, case.neuron)
    assert np.asarray(concepts.iu).sum(axis=0).tolist() == parts(neuron)[1]
    assert np.asarray(concepts.eu).sum(axis=0).tolist() == parts(neuron)[3]
    assert (np.asarray(concepts.ic) <= np.asarray(neuron.nc)).all()
    assert (np.asarray(concepts.ec) <= np.asarray(neuron.sec)).all()


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@given(case=weighted_cases(max_concepts=3), seed=st.integers(0, 2**16))
@examples(30)
def test_tables_of_counts_are_one_sample_and_exact(x64: bool, case: WeightedCase, seed: int):
    batch = some_formulas(np.random.default_rng(seed), case.names, 6, max_length=3)
    with x64_setting(x64):
        found = formula_quantities(case.table, case.neuron, batch)
        neuron = neuron_quantities(case.table, case.neuron)
        concepts = concept_quantities(case.table, case.neuron)
    lengths = [len(s) for s in case.sets]
    for row, formula in enumerate(batch):
        rows = np.flatnonzero(case.mask(formula)).tolist()
        outside = [size - active for size, active in zip(case.sizes, case.inside, strict=True)]
        expected = [
            [sum(counts[r] for r in rows if (lengths[r] > 1) == common)]
            for counts in (case.inside, outside)
            for common in (False, True)
        ]
        assert parts(found[row]) == expected
        score = diou(found, neuron)[row]
        assert (score.intersection, score.union) == case.score(formula)
    assert parts(neuron)[0] == [sum(case.inside)]
    alone = formula_quantities(case.table, case.neuron, [Formula.concept(n) for n in case.names])
    assert parts(concepts) == parts(alone)


def test_padding_of_patches_and_entries_counts_nothing():
    """Sizes around those to which device arrays are padded."""
    rng = np.random.default_rng(0)
    for n_samples in (16, 31, 33):
        masks = np.zeros((2, n_samples, 4), bool)
        masks[0, :, 0] = masks[1, :, 0] = masks[1, :, 1] = True
        masks[0, :, 2] = True
        case = Case(masks, rng.random((n_samples, 4)) < 0.7, ("b", "a"))
        assert len(case.table.patches) == 4 * n_samples
        found = concept_quantities(case.table, case.neuron)
        for k in range(2):
            assert parts(found[k]) == defined(case, masks[k])
        both = formula_quantities(case.table, case.neuron, [Formula.concept("a")])
        assert parts(both[0]) == defined(case, masks[1])
