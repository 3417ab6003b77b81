"""Areas and chosen samples against bitmaps, location by location."""

from pathlib import Path

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.activations import ActivationStore, ExplicitRange, LayerUnits, TopQuantile
from optexp_jax.pictures import SampleAreas, SampleOrder, choose_samples

NAMES = ("a", "b", "c", "d")


def make_case(seed: int) -> tuple[ox.ConceptTable, np.ndarray, ox.Formula | None]:
    rng = np.random.default_rng(seed)
    masks = rng.random((4, 9, 2, 3)) < rng.choice([0.0, 0.1, 0.5, 1.0], (4, 9, 1, 1))
    bitmap = rng.random((9, 2, 3)) < rng.choice([0.0, 0.3, 1.0], (9, 1, 1))
    formula = None
    if rng.random() < 0.9:
        concepts = rng.permutation(NAMES)[: rng.integers(1, 4)].tolist()
        operators = [ox.DEFAULT_OPERATORS[k] for k in rng.integers(0, 3, len(concepts) - 1)]
        formula = ox.Formula(tuple(concepts), tuple(operators))
    return ox.ConceptTable.from_masks(masks, NAMES), bitmap, formula


def brute_force(table: ox.ConceptTable, bitmap: np.ndarray, formula: ox.Formula | None):
    held = np.zeros_like(bitmap) if formula is None else table.mask(formula)
    return {
        "captured": (bitmap & held).sum((1, 2)),
        "missed": (bitmap & ~held).sum((1, 2)),
        "extras": (~bitmap & held).sum((1, 2)),
        "active": bitmap.sum((1, 2)),
        "union": (bitmap | held).sum((1, 2)),
    }


@given(st.integers(0, 2**32), st.integers(0, 10))
@examples(60)
def test_samples_have_most_of_what_is_asked_for(seed, count):
    table, bitmap, formula = make_case(seed)
    areas = SampleAreas.of(table, table.count(bitmap), formula)
    wanted = brute_force(table, bitmap, formula)
    for name, values in wanted.items():
        assert np.array_equal(getattr(areas, name), values), name
    for order in ("captured", "missed", "extras", "active"):
        best = sorted((x for x in range(9) if wanted[order][x]), key=lambda x: -wanted[order][x])
        assert list(choose_samples(areas, order, count)) == best[:count], order


@given(st.integers(0, 2**32))
@examples(20)
def test_random_samples_show_something(seed):
    table, bitmap, formula = make_case(seed)
    areas = SampleAreas.of(table, table.count(bitmap), formula)
    able = set(np.flatnonzero(brute_force(table, bitmap, formula)["union"]).tolist())
    chosen = choose_samples(areas, SampleOrder.RANDOM, 5, seed=seed)
    assert len(chosen) == len(set(chosen)) == min(5, len(able))
    assert set(chosen) <= able
    assert chosen == choose_samples(areas, "random", 5, seed=seed)
    assert set(choose_samples(areas, "random", 99, seed=seed)) == able


def test_another_seed_gives_other_samples():
    table, _, _ = make_case(0)
    areas = SampleAreas.of(table, table.count(np.ones((9, 2, 3), bool)), None)
    assert len({choose_samples(areas, "random", 9, seed=seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("rule", [TopQuantile(0.1), ExplicitRange(0.2, 0.9)])
def test_peaks_are_the_highest_cells_below_the_end_of_the_range(tmp_path: Path, rule):
    rng = np.random.default_rng(3)
    table = ox.ConceptTable.from_masks(rng.random((4, 9, 2, 3)) < 0.5, NAMES)
    maps = rng.normal(size=(9, 3, 4, 4)).astype(np.float32)
    maps[5] = maps[4]  # a tie
    maps[8] = 7.0  # above any range with an end
    units = LayerUnits(table, ActivationStore.from_array(tmp_path / "a.zarr", maps), rule)
    for unit in range(3):
        high = units.range_of(unit).high
        below = [[v for v in cells.ravel().tolist() if v < high] for cells in maps[:, unit]]
        wanted = [max(values, default=-np.inf) for values in below]
        assert units.peaks(unit).tolist() == wanted
        areas = SampleAreas.of(table, units.counts([unit])[0], None)
        able = np.flatnonzero(units.bitmap(unit).any((1, 2))).tolist()
        best = sorted(able, key=lambda x: -wanted[x])
        assert list(choose_samples(areas, "peak", 4, peaks=units.peaks(unit))) == best[:4]


def test_what_cannot_be_chosen_is_told():
    table, bitmap, formula = make_case(1)
    areas = SampleAreas.of(table, table.count(bitmap), formula)
    with pytest.raises(ValueError, match=r"needs `peaks`, such as LayerUnits\.peaks"):
        choose_samples(areas, "peak", 3)
    with pytest.raises(ValueError, match="must not be negative"):
        choose_samples(areas, "captured", -1)
    with pytest.raises(ValueError, match="best"):
        choose_samples(areas, "best", 1)
    other = ox.ConceptTable.from_masks(np.ones((1, 9, 2, 3), bool), ["a"])
    with pytest.raises(ValueError, match="another table"):
        SampleAreas.of(other, table.count(bitmap), None)
