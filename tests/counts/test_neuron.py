"""NeuronCounts: active locations by signature and patch, by either kernel, for many units."""

import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from helpers.strategies import Case, WeightedCase, cases, weighted_cases
from helpers.support import examples, x64_setting
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.concepts import ConceptTable
from optexp_jax.concepts import table as table_module
from optexp_jax.counts import counting
from optexp_jax.counts.counting import (
    BlockKernel,
    count_active_patches,
    count_on_device,
    count_on_host,
)
from optexp_jax.counts.neuron import NeuronCounts

KERNELS = pytest.mark.parametrize("kernel", [count_on_host, count_on_device])


def bitmaps_for(case: Case, n_units: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    density = rng.choice([0, 0.1, 0.5, 1], (n_units, 1, 1))
    bitmaps = rng.random((n_units, *case.bitmap.shape)) < density
    return np.concatenate([bitmaps, case.bitmap[None]])


# --- bitmaps --------------------------------------------------------------------------------------


@given(cases(may_be_silent=True))
def test_counts_are_what_numpy_counts(case: Case):
    table, neuron = case.table, case.neuron
    ids = table.signature_map(0, table.n_samples)
    for s in range(len(table.signatures)):
        assert neuron.inside[s] == (case.bitmap & (ids == s)).sum()
        assert neuron.outside[s] == (~case.bitmap & (ids == s)).sum()
    assert neuron.size == case.bitmap.sum()
    assert isinstance(neuron.size, int)
    # |N| has the active locations without any concept too: signature 0.
    assert neuron.inside[0] == (case.bitmap & ~case.masks.any(axis=0)).sum()

    patches = table.patches
    inside = neuron.patch_inside(table)
    for patch in range(len(patches)):
        here = ids[patches.sample[patch]] == patches.signature[patch]
        assert patches.size[patch] == here.sum() > 0
        assert inside[patch] == (here & case.bitmap[patches.sample[patch]]).sum()
    assert neuron.active_patches.tolist() == np.flatnonzero(inside).tolist()
    assert neuron.active_counts.tolist() == inside[inside > 0].tolist()


@KERNELS
@given(
    case=cases(may_be_silent=True, max_samples=3, max_locations=4),
    n_units=st.integers(0, 3),
    block=st.integers(1, 12),
)
@examples(25)
def test_both_kernels_count_the_same(kernel: BlockKernel, case: Case, n_units: int, block: int):
    bitmaps = bitmaps_for(case, n_units, seed=block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_LOCATIONS", block)
        patch.setattr(counting, "BLOCK_COUNTS", 2 * block)
        found = count_active_patches(case.table, bitmaps, kernel)
    assert len(found) == n_units + 1
    for active, bitmap in zip(found, bitmaps, strict=True):
        expected = case.table.count(bitmap)
        assert active.patches.tolist() == expected.active_patches.tolist()
        assert active.counts.tolist() == expected.active_counts.tolist()


@pytest.mark.parametrize("x64", [False, True])
def test_the_device_kernel_under_either_setting(x64: bool):
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((5, 6, 40)) < 0.4)
    bitmaps = rng.random((3, 6, 40)) < 0.3
    with x64_setting(x64):
        found = count_active_patches(table, bitmaps, count_on_device)
    for active, expected in zip(found, table.count_many(bitmaps), strict=True):
        assert active.counts.dtype == np.int64
        assert active.counts.tolist() == expected.active_counts.tolist()


def test_the_device_kernel_compiles_few_shapes():
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((5, 6, 40)) < 0.4)
    jitted: Any = counting._scatter_counts
    jitted.clear_cache()
    for n_units in range(1, 17):
        count_active_patches(table, rng.random((n_units, 6, 40)) < 0.3, count_on_device)
    assert jitted._cache_size() <= 5  # 1, 2, 4, 8, 16


@given(cases(may_be_silent=True), st.integers(0, 4), st.integers(0, 2**16))
def test_many_units_at_once(case: Case, n_units: int, seed: int):
    bitmaps = bitmaps_for(case, n_units, seed)
    found = case.table.count_many(bitmaps)
    assert len(found) == len(bitmaps)
    for counts, bitmap in zip(found, bitmaps, strict=True):
        alone = case.table.count(bitmap)
        assert counts.inside.tolist() == alone.inside.tolist()
        assert counts.outside.tolist() == alone.outside.tolist()
        assert counts.active_patches.tolist() == alone.active_patches.tolist()
        assert counts.active_counts.tolist() == alone.active_counts.tolist()


def test_no_units():
    table = ConceptTable.from_masks(np.ones((1, 2, 3), bool))
    assert table.count_many(np.empty((0, 2, 3), bool)) == []


def test_kinds_and_shapes_of_bitmaps():
    rng = np.random.default_rng(0)
    table = ConceptTable.from_masks(rng.random((3, 4, 2, 3)) < 0.5)
    bitmap = rng.random((4, 2, 3)) < 0.5
    expected = table.count(bitmap).inside.tolist()
    for other in (jnp.asarray(bitmap), bitmap.reshape(4, 6), bitmap.tolist(), bitmap[::-1][::-1]):
        assert table.count(other).inside.tolist() == expected
    many = table.count_many(jnp.stack([jnp.asarray(bitmap)] * 2))
    assert [counts.inside.tolist() for counts in many] == [expected, expected]

    flat = ConceptTable.from_masks(rng.random((3, 4)) < 0.5)
    one_each = np.array([True, False, True, True])
    assert flat.count(one_each).size == flat.count(one_each[:, None]).size == 3
    assert flat.count_many(one_each[None])[0].size == 3


# --- counts given ---------------------------------------------------------------------------------


@given(weighted_cases())
def test_counts_of_given_rows(case: WeightedCase):
    table, neuron = case.table, case.neuron
    sets = [tuple(table.signatures[s].tolist()) for s in range(len(table.signatures))]
    inside, sizes = dict.fromkeys(sets, 0), dict.fromkeys(sets, 0)
    for concepts, active, size in zip(case.sets, case.inside, case.sizes, strict=True):
        inside[concepts] += active
        sizes[concepts] += size
    assert neuron.inside.tolist() == [inside[s] for s in sets]
    assert neuron.outside.tolist() == [sizes[s] - inside[s] for s in sets]
    assert neuron.size == sum(case.inside)
    assert neuron.patch_inside(table).tolist() == neuron.inside.tolist()


@given(cases())
def test_counts_given_and_bitmaps_counted_agree(case: Case):
    """The same data as locations, each its own row, most of them merged."""
    flat = case.masks.reshape(len(case.masks), -1)
    rows = [np.flatnonzero(column) for column in flat.T]
    table = ConceptTable.from_signatures(rows, np.ones(len(rows), int), case.names)
    counts = NeuronCounts.from_signatures(table, case.bitmap.reshape(-1).astype(int))
    by_set = {
        tuple(t.signatures[s].tolist()): (int(n.inside[s]), int(n.outside[s]))
        for t, n in ((table, counts),)
        for s in range(len(t.signatures))
    }
    expected = {
        tuple(case.table.signatures[s].tolist()): (
            int(case.neuron.inside[s]),
            int(case.neuron.outside[s]),
        )
        for s in range(len(case.table.signatures))
    }
    assert by_set == expected


def test_merged_rows_and_uncovered_locations():
    table = ConceptTable.from_signatures([[1, 0], [0], [0, 1], []], [4, 5, 6, 7], n_locations=30)
    neuron = NeuronCounts.from_signatures(table, [3, 0, 6, 7], uncovered=8)
    assert neuron.size == 3 + 6 + 7 + 8
    assert neuron.inside.tolist() == [15, 9, 0]
    assert neuron.outside.tolist() == [0, 1, 5]
    assert neuron.active_patches.tolist() == [0, 1]
    assert NeuronCounts.from_signatures(table, jnp.array([1, 1, 1, 1])).size == 4


def test_counts_past_32_bits():
    table = ConceptTable.from_signatures([[0], [0, 1]], [2**40, 2**33 + 1], n_locations=2**52)
    neuron = NeuronCounts.from_signatures(table, [2**40 - 1, 2**33], uncovered=2**51)
    assert neuron.size == 2**51 + 2**40 - 1 + 2**33
    assert neuron.inside.tolist() == [2**51, 2**40 - 1, 2**33]
    assert neuron.outside.tolist() == [2**52 - 2**40 - 2**33 - 1 - 2**51, 1, 1]


# --- belonging ------------------------------------------------------------------------------------


@given(cases(), cases())
@examples(30)
def test_counts_belong_to_their_table(one: Case, two: Case):
    one.neuron.require_table(one.table)
    one.neuron.require_table(ConceptTable.from_masks(one.masks, one.names))
    if one.names == two.names and np.array_equal(one.masks, two.masks):
        return
    with pytest.raises(ValueError, match=r"belong to another table.*table\.count"):
        one.neuron.require_table(two.table)


def test_repr_and_pickle():
    table = ConceptTable.from_masks(np.ones((1, 2, 4), bool))
    neuron = table.count(np.eye(2, 4, dtype=bool))
    assert repr(neuron) == "NeuronCounts(2 of 8 locations active, 25.000%)"
    copy = pickle.loads(pickle.dumps(neuron))
    copy.require_table(table)
    assert copy.inside.tolist() == neuron.inside.tolist()
    assert copy.patch_inside(table).tolist() == neuron.patch_inside(table).tolist()
