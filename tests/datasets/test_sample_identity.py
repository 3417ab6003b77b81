"""Activations are refused where their samples are not those of the table, in its order."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.model_cases import small_model
from helpers.turned_images import folder, save_turned

from optexp_jax.activations import LayerUnits, find_images, record_activations
from optexp_jax.datasets import (
    ArrayDataset,
    ConceptInfo,
    Dataset,
    DatasetSpec,
    Sample,
    build_table,
    open_dataset,
)
from optexp_jax.datasets.identity import identify_samples

N = 5
IMAGES = np.random.default_rng(0).integers(0, 256, (N, 20, 20, 3), dtype=np.uint8)
MASKS = np.random.default_rng(1).random((3, N, 20, 20)) < 0.4
ORDER = [3, 0, 1, 4, 2]


def unnamed(order: list[int]) -> ArrayDataset:
    return ArrayDataset.from_masks(IMAGES[order], MASKS[:, order])


@dataclass(frozen=True)
class Numbered:
    """A dataset of one's own, whose samples are called by their place."""

    order: tuple[int, ...]

    def concepts(self):
        return [ConceptInfo("one")]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Sample:
        place = self.order[index]
        return Sample(str(index), IMAGES[place], (MASKS[0, place].astype(np.int32) - 1,))


def record(dataset, out: Path, **how) -> Path:
    record_activations(small_model(), "second", find_images(dataset, **how), out)
    return out


@pytest.mark.parametrize("make", [unnamed, lambda order: Numbered(tuple(order))])
def test_another_order_is_refused(tmp_path: Path, make):
    table = tmp_path / "t.zarr"
    build_table(make(list(range(N))), table, mask_shape=(10, 10))
    same = record(make(list(range(N))), tmp_path / "same.zarr")
    assert LayerUnits.open(table, same).n_units
    other = record(make(ORDER), tmp_path / "other.zarr")
    with pytest.raises(ValueError, match=r"same samples in the same order.*find_images\(dataset"):
        LayerUnits.open(table, other)
    with pytest.raises(ValueError, match="not built from this dataset, or its samples were in"):
        find_images(make(ORDER), table=table)
    asked = record(make(list(range(N))), tmp_path / "asked.zarr", table=table)
    assert LayerUnits.open(table, asked).n_units


def test_arrays_in_files(tmp_path: Path):
    for name, order in (("a", list(range(N))), ("b", ORDER)):
        np.savez(
            tmp_path / f"{name}.npz", images=IMAGES[order], masks=MASKS[:, order], names=[*"xyz"]
        )
    spec = DatasetSpec.parse(f"arrays:{tmp_path / 'a.npz'}")
    build_table(spec.open(), tmp_path / "t.zarr", spec=spec, mask_shape=(10, 10))
    same = record(str(spec), tmp_path / "same.zarr")
    assert LayerUnits.open(tmp_path / "t.zarr", same).n_units
    other = record(f"arrays:{tmp_path / 'b.npz'}", tmp_path / "other.zarr")
    with pytest.raises(ValueError, match="same samples in the same order"):
        LayerUnits.open(tmp_path / "t.zarr", other)


def test_datasets_by_text_are_told_apart_too(tmp_path: Path):
    """Not only activations that were recorded for a table."""
    spec = DatasetSpec.parse("shapes:n=4,size=24,seed=1")
    build_table(spec.open(), tmp_path / "t.zarr", spec=spec, mask_shape=(8, 8))
    same = record("shapes:n=4,size=24,seed=1", tmp_path / "same.zarr")
    assert LayerUnits.open(tmp_path / "t.zarr", same).n_units
    other = record("shapes:n=4,size=24,seed=2", tmp_path / "other.zarr")
    with pytest.raises(ValueError, match="same samples in the same order"):
        LayerUnits.open(tmp_path / "t.zarr", other)


def test_samples_that_were_left_out(tmp_path: Path):
    class Holes(Numbered):
        def __getitem__(self, index: int) -> Sample:
            sample = super().__getitem__(index)
            wrong = np.full((2, 2), 7, np.int32)
            return Sample(sample.name, sample.image, (wrong,)) if index == 2 else sample

    dataset = Holes(tuple(range(N)))
    build_table(dataset, tmp_path / "t.zarr", mask_shape=(4, 4), skip_bad=True)
    found = record(dataset, tmp_path / "a.zarr", table=tmp_path / "t.zarr")
    units = LayerUnits.open(tmp_path / "t.zarr", found)
    assert units.store.shape[0] == N - 1


def test_another_frame_is_refused(tmp_path: Path):
    text = folder(tmp_path / "data", np.zeros((16, 16), np.int64))
    square = np.random.default_rng(2).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    save_turned(tmp_path / "data" / "images" / "a.png", square, 3)
    spec = DatasetSpec.parse(f"{text},exif=apply")
    build_table(spec.open(), tmp_path / "t.zarr", spec=spec, mask_shape=(8, 8))
    assert LayerUnits.open(tmp_path / "t.zarr", record(str(spec), tmp_path / "a.zarr")).n_units
    turned = record(f"{text},exif=ignore", tmp_path / "b.zarr")
    with pytest.raises(ValueError, match="same samples in the same order"):
        LayerUnits.open(tmp_path / "t.zarr", turned)


def test_identities_do_not_need_annotations(tmp_path: Path):
    """Names of samples are known without reading them, by every kind of dataset."""
    folder(tmp_path / "data", np.zeros((22, 16), np.int64))
    (tmp_path / "data" / "labels" / "a.png").write_bytes(b"broken")
    dataset = open_dataset(f"folder:{tmp_path / 'data'},exif=apply,add=position")
    assert isinstance(dataset, Dataset)
    assert len(identify_samples(dataset, None, range(1))) == 32


def test_a_path_needs_no_table(tmp_path: Path):
    with pytest.raises(ValueError, match="goes with a dataset made in Python"):
        find_images("shapes", table=tmp_path)
