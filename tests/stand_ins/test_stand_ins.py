"""Stand-ins have the shape and the overlaps that they stand in for, and follow from their seed."""

import numpy as np
import pytest

from optexp_jax import ConceptTable, Optimal, explain
from optexp_jax.activations import LayerUnits, TopQuantile
from optexp_jax.stand_ins import (
    BrodenGroups,
    broden_scenes,
    disjoint_scenes,
    hard_cases,
    plant_layer,
)

SMALL = BrodenGroups().scaled(0.1)


def in_category(table: ConceptTable, category: str) -> np.ndarray:
    return np.array([each == category for each in table.categories])


def test_disjoint_scenes_never_share_a_location():
    table = disjoint_scenes(60, 80, size=28)
    assert table.n_concepts == 60
    assert table.n_locations == 80 * 28 * 28
    assert table.signatures.lengths.max() == 1
    assert (table.concept_sizes > 0).all()
    uncovered = table.sizes[0] / table.n_locations
    assert 0.02 < uncovered < 0.2
    # A few concepts are everywhere, most are rare.
    assert table.concept_sizes.max() > 10 * np.median(table.concept_sizes)


def test_default_groups_are_brodens_1198():
    groups = BrodenGroups()
    names = list(groups.names())
    assert len(names) == len(set(names)) == 1198
    assert len(list(groups.categories())) == 1198
    assert names[groups.first("colour")] == "colour-0"


def test_broden_scenes_overlap_as_ade20k_does_in_broden():
    table = broden_scenes(600, groups=SMALL, size=28)
    assert table.n_concepts == 1 + sum((47, 48, 16, 2, 5, 11))
    held = table.concept_sizes > 0
    for category in ("scene", "object", "part", "colour"):
        assert held[in_category(table, category)].all(), category
    for category in ("material", "texture"):
        assert not held[in_category(table, category)].any(), category
    assert not held[0]  # the number 0

    incidence = table.signatures.incidence
    per_group = {
        category: (incidence @ in_category(table, category).astype(np.int64))[
            table.patches.signature
        ]
        for category in ("scene", "object", "part", "colour")
    }
    sample = table.patches.sample

    def samples_where(condition: np.ndarray) -> np.ndarray:
        return np.bincount(sample[condition], minlength=600) > 0

    assert (per_group["colour"] == 1).all()
    assert per_group["object"].max() == 1
    assert samples_where(per_group["object"] == 1).all()
    with_scene = samples_where(per_group["scene"] == 1)
    assert with_scene.sum() == round(17_746 / 22_210 * 600)
    assert not (with_scene & samples_where(per_group["scene"] == 0)).any()
    layers = np.zeros(600, np.int64)
    np.maximum.at(layers, sample, per_group["part"])
    shares = np.bincount(layers, minlength=4) / 600
    # Layers may agree by chance everywhere, so that of some samples fewer are seen.
    np.testing.assert_allclose(shares, [0.4795, 0.3290, 0.1837, 0.0078], atol=0.03)
    assert shares[0] == pytest.approx(10_650 / 22_210, abs=1 / 600)


def test_stand_ins_follow_from_their_seed():
    for make in (
        lambda seed: disjoint_scenes(12, 20, size=16, seed=seed),
        lambda seed: broden_scenes(20, groups=SMALL, size=16, seed=seed),
    ):
        first, again, other = make(3), make(3), make(4)
        assert first.fingerprint == again.fingerprint != other.fingerprint
        some, more = plant_layer(first, 2, seed=1), plant_layer(again, 3, seed=1)
        np.testing.assert_array_equal(some.maps, more.maps[:, :2])
        assert some.formulas == more.formulas[:2]


def test_a_planted_layer_goes_the_way_of_real_activations(tmp_path):
    path = tmp_path / "table.zarr"
    table = disjoint_scenes(8, 30, size=24, path=path)
    layer = plant_layer(table, 3)
    assert layer.maps.shape == (30, 3, 7, 7)
    assert layer.maps.min() == 0
    rule = TopQuantile(0.02)
    stored = LayerUnits.open(path, layer.save(tmp_path / "layer.zarr").path, rule)
    for unit, counts in enumerate(layer.counts(rule)):
        np.testing.assert_array_equal(layer.bitmap(unit, rule), stored.bitmap(unit))
        np.testing.assert_array_equal(counts.inside, stored.counts([unit])[0].inside)
        np.testing.assert_array_equal(counts.inside, table.count(layer.bitmap(unit, rule)).inside)


def test_units_respond_to_their_formula():
    table = disjoint_scenes(8, 60, size=24)
    layer = plant_layer(table, 4, noise=0.05)
    for formula, counts in zip(layer.formulas, layer.counts(), strict=True):
        held = table.holds(formula)
        inside = counts.inside[held].sum() / counts.size
        assert inside > 1.5 * table.sizes[held].sum() / table.n_locations


def test_hard_cases_are_hard_in_their_way():
    cases = {
        case.name: case for case in hard_cases(2, n_samples=300, groups=SMALL, size=28, seed=0)
    }
    assert len(cases) == 5
    weak = cases["weak"]
    assert all(explain(weak.table, unit, Optimal(3)).iou < 0.04 for unit in weak.units)
    broad = cases["broad"]
    shares = [unit.size / broad.table.n_locations for unit in broad.units]
    np.testing.assert_allclose(shares, 0.2, atol=0.06)
    dominant = cases["dominant"]
    assert all(explain(dominant.table, unit, Optimal(1)).iou > 0.4 for unit in dominant.units)
    crowded = cases["no unique element"].table
    assert not (crowded.signatures.lengths[crowded.sizes > 0] == 1).any()
    single = cases["one location"].table
    assert single.sample_map is not None
    assert single.sample_map.location_shape == ()
    assert single.n_locations == single.n_samples
    assert all(unit.size > 0 for case in cases.values() for unit in case.units)
