"""Pictures of whole layers: masks against those of the table, images decoded once."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers.run_cases import memory_layer, shapes_layer, stored_layer

import optexp_jax as ox
from optexp_jax.datasets import ArrayDataset, Dataset
from optexp_jax.pictures import (
    NoPicturesError,
    SampleImages,
    draw_overlay,
    fit_image,
    formula_mask,
    masks,
    overlays,
    signature_grid,
    unit_masks,
)
from optexp_jax.runs import UnitSource, explain_layer

FORMULAS = {
    0: ox.Formula.parse("sky OR sea AND NOT boat"),
    1: None,
    2: ox.Formula.concept("rock"),
}
SHOWN = {2: [9, 0, 3], 0: [3, 3, 1], 1: [], 3: [3]}


class OwnUnits:
    """A source of the user's, which gives whole bitmaps only."""

    def __init__(self, source: UnitSource):
        self.source = source

    def __getattr__(self, name: str) -> Any:
        if name in ("sample_bitmaps", "peaks"):
            raise AttributeError(name)
        return getattr(self.source, name)


@pytest.mark.parametrize("kind", ["memory", "stored", "own"])
@pytest.mark.parametrize("at_once", [1, 64])
def test_masks_are_those_of_the_table(tmp_path, monkeypatch, kind, at_once):
    monkeypatch.setattr(masks, "UNITS_AT_ONCE", at_once)
    source: UnitSource = memory_layer(4)
    if kind == "stored":
        source = stored_layer(tmp_path, 4).open()
    if kind == "own":
        source = cast(UnitSource, OwnUnits(source))
    found = list(unit_masks(source, SHOWN, FORMULAS))
    assert [each.sample for each in found] == [0, 1, 3, 3, 3, 9]
    assert sorted((each.unit, each.sample) for each in found) == [
        (0, 1),
        (0, 3),
        (2, 0),
        (2, 3),
        (2, 9),
        (3, 3),
    ]
    for each in found:
        formula = FORMULAS.get(each.unit)
        assert np.array_equal(each.active, source.bitmap(each.unit)[each.sample])
        held = (
            np.zeros((6, 6), bool) if formula is None else source.table.mask(formula)[each.sample]
        )
        assert np.array_equal(each.held, held)
        assert np.array_equal(formula_mask(source.table, formula, each.sample), held)
    assert any(each.active.any() for each in found)
    assert any(each.held.any() for each in found)


def test_masks_of_concepts_and_signatures():
    table = memory_layer(1).table
    assert np.array_equal(formula_mask(table, "boat", 4), table.mask("boat")[4])
    assert np.array_equal(signature_grid(table, 4), table.signature_map(4, 5)[0])
    for sample in (-1, 10):
        with pytest.raises(ValueError, match="no sample"):
            signature_grid(table, sample)
        with pytest.raises(ValueError, match="no sample"):
            next(unit_masks(memory_layer(1), {0: [sample]}, {}))
    with pytest.raises(ValueError, match="did you mean boat"):
        formula_mask(table, "boot", 0)


def photographs(n: int = 10) -> ArrayDataset:
    images = np.random.default_rng(0).integers(0, 256, (n, 12, 18, 3)).astype(np.uint8)
    return ArrayDataset.from_masks(images, np.zeros((1, n, 12, 18), bool), ["x"])


class CountsReads:
    """A dataset that tells which images were read."""

    def __init__(self) -> None:
        self.dataset, self.read = photographs(), []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    def image(self, index: int) -> np.ndarray:
        self.read.append(index)
        return self.dataset[index].image


def test_each_image_is_decoded_once():
    dataset = CountsReads()
    images = SampleImages.of_dataset(cast(Dataset, dataset))
    source = memory_layer(4)
    found = list(overlays(source, images, SHOWN, FORMULAS, side=9))
    assert dataset.read == [0, 1, 3, 9]
    for picture in found:
        image = fit_image(images.image(picture.sample), 9)
        assert image.shape == (6, 9, 3)
        assert np.array_equal(picture.image, image)
        mask = picture.mask
        held = None if FORMULAS.get(picture.unit) is None else mask.held
        assert np.array_equal(picture.overlay, draw_overlay(image, mask.active, held))


def test_images_of_a_run(tmp_path: Path):
    layer = shapes_layer(tmp_path, 2, n_scenes=6)
    run = explain_layer(tmp_path / "run", layer, ox.NetDissect())
    images = SampleImages.of_run(run)
    assert len(images) == 6
    assert images.image(2).shape[2] == 3
    assert images.name(2) == images.dataset.sample_names()[2]  # type: ignore[attr-defined]
    formulas = {r.unit: r.explanation.formula for r in run.results if r.explanation is not None}
    assert len(formulas) == 2
    shown = {unit: [0, 5] for unit in formulas}
    assert len(list(overlays(run.open_source(), images, shown, formulas, side=32))) == 4
    with pytest.raises(ValueError, match="no sample 6"):
        images.image(6)


def test_what_is_missing_is_told(tmp_path: Path):
    source = memory_layer(2)
    run = explain_layer(tmp_path / "run", source, ox.NetDissect())
    with pytest.raises(NoPicturesError, match="units in memory"):
        SampleImages.of_run(run)
    stored = stored_layer(tmp_path, 1)
    with pytest.raises(NoPicturesError, match="does not say which dataset"):
        SampleImages.of_table(stored.table)
    with pytest.raises(NoPicturesError, match="no concept table"):
        SampleImages.of_table(tmp_path / "none.zarr")
    few = SampleImages.of_dataset(photographs(3))
    with pytest.raises(NoPicturesError, match="images of 3 samples, but the table has 10"):
        next(overlays(source, few, SHOWN, FORMULAS))
    counted = ox.ConceptTable.from_signatures([[0], [1]], [3, 4])
    with pytest.raises(NoPicturesError, match="counts alone"):
        formula_mask(counted, None, 0)
    line = ox.ConceptTable.from_masks(np.ones((1, 2, 5), bool))
    with pytest.raises(NoPicturesError, match="not rows and columns"):
        formula_mask(line, None, 0)


def test_a_sample_of_one_location_is_one_cell():
    table = ox.ConceptTable.from_masks(np.array([[True, False]]), ["a"])
    assert formula_mask(table, "a", 0).tolist() == [[True]]
    assert formula_mask(table, "a", 1).tolist() == [[False]]
