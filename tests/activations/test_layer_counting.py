"""Counting a layer's units from raw maps: against bitmaps, between kernels, and against torch."""

from pathlib import Path

import jax
import numpy as np
import pytest
import torch
from helpers.support import examples
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import optexp_jax as ox
from optexp_jax.activations import (
    ActivationStore,
    Clusters,
    ExplicitRange,
    LayerUnits,
    TopQuantile,
)
from optexp_jax.activations import counting as layer_counting
from optexp_jax.activations.counting import (
    Thresholds,
    count_layer,
    count_pairs_on_device,
    count_pairs_on_host,
)
from optexp_jax.activations.upsample import active, as_ends, as_maps, axis_weights, upsample

KERNELS = [count_pairs_on_host, count_pairs_on_device]

compiled_active = jax.jit(active, static_argnums=3)
# Few shapes, so that few programs are compiled.
MAP_SHAPES = [(1, 1, 1), (2, 1, 4), (1, 2, 2), (2, 3, 5), (1, 7, 7)]
MASK_SHAPES = [(1, 1), (5, 5), (1, 7), (7, 5), (13, 12)]
cells = st.floats(-3, 3, width=32) | st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def layers(draw: st.DrawFn):
    """Maps, the shape to bring them to, and ends that often equal a cell."""
    maps = draw(hnp.arrays(np.float32, st.sampled_from(MAP_SHAPES), elements=cells))
    shape = draw(st.sampled_from(MASK_SHAPES))
    ends = st.sampled_from(as_maps(maps).reshape(-1).tolist()) | st.floats(-3, 3)
    return maps, shape, draw(ends), draw(ends)


@given(layers())
@example((np.full((1, 2, 2), 1e-40, np.float32), (5, 5), 0.0, 1.0))
@example((np.array([[[2e-38, 0.0]]], np.float32), (1, 7), 0.0, 1.0))
@example((np.full((1, 3, 3), np.finfo(np.float32).max, np.float32), (7, 5), 1.0, 2.0))
@example((np.array([[[-1.0, 0.0, 1.0]]], np.float32), (1, 5), -1.0, 2e-309))
@example((np.array([[[-1.0, 0.0, 1.0]]], np.float32), (1, 5), -2e-309, 2.0))
@examples(40)
def test_compiled_upsampling_is_the_reference_bit_for_bit(case):
    maps, shape, low, high = case
    maps = as_maps(maps)
    values = upsample(maps, shape)
    low_of, high_of = (as_ends(np.full(len(maps), end, np.float64)) for end in (low, high))
    with jax.enable_x64(True):
        got = compiled_active(maps, low_of, high_of, shape)
        equal = compiled_active(maps, values.min((1, 2)), high_of, shape)
    assert np.array_equal(np.asarray(got), (values > low) & (values < high))
    # Ends that are up-sampled values themselves tell the last bit.
    smallest = values.min((1, 2), keepdims=True)
    assert np.array_equal(np.asarray(equal), (values > smallest) & (values < high))
    assert values.min() >= maps.min()
    assert values.max() <= maps.max()


@pytest.mark.parametrize("cells", [1, 2, 6, 7, 13, 56, 200])
@pytest.mark.parametrize("out", [1, 7, 112, 113])
def test_weights_are_exact(cells: int, out: int):
    weights = axis_weights(cells, out)
    assert np.array_equal(weights.before + weights.after, np.ones(out))
    assert np.array_equal(weights.after.astype(np.float32), weights.after)
    place = np.clip((np.arange(out) + 0.5) * cells / out - 0.5, 0, cells - 1)
    assert np.allclose(weights.left * weights.before + weights.right * weights.after, place)


@pytest.mark.parametrize(
    ("cells", "shape"),
    [((7, 7), (112, 112)), ((6, 6), (112, 112)), ((13, 13), (113, 113)), ((28, 14), (90, 70))],
)
def test_torch_differs_in_at_most_one_location_in_a_million(cells, shape):
    rng = np.random.default_rng(0)
    maps = as_maps(np.maximum(rng.normal(size=(300, *cells)), 0))
    values = torch.nn.functional.interpolate(
        torch.from_numpy(maps)[None], size=shape, mode="bilinear", align_corners=False
    )[0].numpy()
    low = float(np.quantile(maps, 0.995))
    differ = np.count_nonzero((values > low) != (upsample(maps, shape) > low))
    assert np.abs(values - upsample(maps, shape)).max() < 1e-5
    assert differ <= 1e-6 * values.size


def make_table(rng: np.random.Generator, n_samples: int, shape: tuple[int, ...]) -> ox.ConceptTable:
    masks = rng.random((5, n_samples, *shape)) < 0.4
    return ox.ConceptTable.from_masks(masks, names=list("abcde"))


def make_units(
    tmp_path: Path, seed=0, n_samples=9, n_units=4, cells=(3, 4), shape=(8, 10), rule=None
):
    rng = np.random.default_rng(seed)
    maps = np.maximum(rng.normal(size=(n_samples, n_units, *cells)), 0).astype(np.float32)
    store = ActivationStore.from_array(tmp_path / f"a{seed}.zarr", maps)
    return LayerUnits(make_table(rng, n_samples, shape), store, rule or TopQuantile(0.1))


def assert_counts(table: ox.ConceptTable, counts: ox.NeuronCounts, bitmap: np.ndarray):
    wanted = table.count(bitmap)
    assert np.array_equal(counts.active_patches, wanted.active_patches)
    assert np.array_equal(counts.active_counts, wanted.active_counts)
    assert np.array_equal(counts.inside, wanted.inside)
    assert counts.inside.dtype == counts.active_counts.dtype == np.int64


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "rule",
    [TopQuantile(0.1), Clusters(3), Clusters(3, 1), ExplicitRange(0.2, 0.9), ExplicitRange()],
)
def test_counts_are_those_of_the_bitmaps(tmp_path, kernel, rule):
    units = make_units(tmp_path, rule=rule)
    chosen = [3, 0, 2]
    for unit, counts in zip(chosen, units.counts(chosen, kernel=kernel), strict=True):
        assert units.bitmap(unit).any()
        assert_counts(units.table, counts, units.bitmap(unit))


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_blocks_and_batches_count_the_same(tmp_path, monkeypatch, kernel):
    units = make_units(tmp_path, seed=1, n_samples=23)
    whole = units.counts(range(4), kernel=kernel)
    monkeypatch.setattr("optexp_jax.concepts.table.BLOCK_LOCATIONS", 80 * 5)
    monkeypatch.setattr(layer_counting, "BATCH_LOCATIONS", 80 * 8)
    monkeypatch.setattr(layer_counting, "SMALLEST_BATCH", 1)
    monkeypatch.setattr("optexp_jax.activations.layer_units.BLOCK_BYTES", 23 * 12 * 4 * 3)
    assert len(units.table.sample_blocks()) == 5
    for one, other in zip(whole, units.counts(range(4), kernel=kernel), strict=True):
        assert np.array_equal(one.active_patches, other.active_patches)
        assert np.array_equal(one.active_counts, other.active_counts)


@given(st.integers(0, 10**6))
@examples(8)
def test_random_layers(seed):
    rng = np.random.default_rng(seed)
    shape = MASK_SHAPES[rng.integers(len(MASK_SHAPES))]
    table = make_table(rng, 4, shape)
    maps = as_maps(rng.normal(size=(4, 3, 2, 5)).round(1))
    low = np.quantile(maps, 0.7, axis=(0, 2, 3)).astype(np.float64)
    thresholds = Thresholds(low, low + rng.choice([0.3, np.inf], 3))
    on_host, on_device = (count_layer(table, maps, thresholds, kernel=kernel) for kernel in KERNELS)
    for unit in range(3):
        values = upsample(maps[:, unit], shape)
        bitmap = (values > low[unit]) & (values < thresholds.high[unit])
        for found in (on_host[unit], on_device[unit]):
            counts = ox.NeuronCounts.from_patches(table, found.patches, found.counts)
            assert_counts(table, counts, bitmap)


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_active(kernel):
    table = make_table(np.random.default_rng(0), 4, MASK_SHAPES[0])
    maps = as_maps(np.zeros((4, 3, 2, 5)))
    thresholds = Thresholds(np.ones(3), np.full(3, np.inf))
    for found in count_layer(table, maps, thresholds, kernel=kernel):
        assert len(found.patches) == len(found.counts) == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_order_and_shifts_move_the_maps(tmp_path, kernel):
    units = make_units(tmp_path, seed=2)
    rng = np.random.default_rng(5)
    order = rng.permutation(9)
    shifts = rng.integers(-3, 20, (9, 2))
    for unit, counts in enumerate(
        units.counts(range(4), order=order, shifts=shifts, kernel=kernel)
    ):
        shown = units.bitmap(unit)[order]
        rolled = np.stack(
            [np.roll(bits, move, (0, 1)) for bits, move in zip(shown, shifts, strict=True)]
        )
        assert not np.array_equal(rolled, units.bitmap(unit))
        assert_counts(units.table, counts, rolled)
    only_order = units.counts([1], order=order, kernel=kernel)[0]
    assert_counts(units.table, only_order, units.bitmap(1)[order])


def test_a_map_outside_the_range_is_passed_over(tmp_path, monkeypatch):
    units = make_units(tmp_path, rule=ExplicitRange(100.0))
    monkeypatch.setattr(layer_counting, "_active", None)  # would fail if it were called
    assert [counts.size for counts in units.counts([0, 1])] == [0, 0]


def test_fully_connected_units_are_one_location(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3)).astype(np.float32)
    store = ActivationStore.from_array(tmp_path / "fc.zarr", values)
    assert store.shape == (40, 3, 1, 1)
    for shape in [(), (4, 6), (7,), (2, 3, 4)]:
        units = LayerUnits(make_table(rng, 40, shape), store, TopQuantile(0.25))
        (counts,) = units.counts([2])
        assert units.bitmap(2).shape == (40, *shape)
        assert_counts(units.table, counts, units.bitmap(2))
        assert counts.size == 10 * int(np.prod(shape))
        order = np.arange(40)[::-1].copy()
        shown = units.counts([2], order=order)[0]
        assert_counts(units.table, shown, units.bitmap(2)[order])


def test_only_rows_and_columns_can_be_upsampled(tmp_path):
    store = ActivationStore.from_array(tmp_path / "a.zarr", np.zeros((3, 1, 2, 2)))
    with pytest.raises(ValueError, match=r"rows and columns.*\(7,\)"):
        LayerUnits(make_table(np.random.default_rng(0), 3, (7,)), store)


def test_bad_arguments_are_named(tmp_path):
    units = make_units(tmp_path)
    with pytest.raises(ValueError, match="no unit 4: this layer has units 0 to 3"):
        units.counts([0, 4])
    with pytest.raises(ValueError, match="order must name"):
        units.counts([0], order=np.full(9, 9))
    with pytest.raises(ValueError, match="shifts must be"):
        units.counts([0], shifts=np.zeros((4, 2), int))
    with pytest.raises(ValueError, match="9 samples, but the table has 8"):
        LayerUnits(units.table.select(samples=slice(0, 8)), units.store)
    with pytest.raises(ValueError, match="finite"):
        as_maps(np.array([np.nan]))


def test_fingerprint_tells_table_store_and_rule_apart(tmp_path):
    units = make_units(tmp_path)
    same = LayerUnits.open(units.table, units.store.path, TopQuantile(0.1))
    others = [
        LayerUnits(units.table, units.store, TopQuantile(0.2)),
        LayerUnits(units.table, units.store, Clusters(2)),
        LayerUnits(units.table.select(["a", "b"]), units.store, TopQuantile(0.1)),
        make_units(tmp_path, seed=3),
    ]
    assert same.fingerprint == units.fingerprint
    assert len({units.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_skipped_units_have_no_active_location(tmp_path):
    maps = np.zeros((3, 2, 2, 2), np.float32)
    maps[:, 1] = np.arange(12).reshape(3, 2, 2)
    store = ActivationStore.from_array(tmp_path / "a.zarr", maps)
    units = LayerUnits(make_table(np.random.default_rng(0), 3, (4, 4)), store, Clusters(5))
    dead, alive = units.range_of(0), units.range_of(1)
    assert dead.skipped is not None
    assert "0 non-zero" in dead.skipped
    assert alive.skipped is None
    counts = units.counts([0, 1])
    assert counts[0].size == 0 < counts[1].size
    assert not units.bitmap(0).any()
