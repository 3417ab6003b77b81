"""Every row of the table of formats is read, or refused, on files in its real layout."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.dataset_fixtures import masks_of, picture, save
from helpers.format_cases import CASES
from helpers.format_datasets import cityscapes
from helpers.format_writers import MASKS, SHAPE, images, labels_of, voc
from PIL import Image

from optexp_jax import cli
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.datasets import Dataset, LayoutError, from_pairs, open_dataset

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
ROW = re.compile(r"^\| (?P<data>.+?) \| (?P<read>.+?) \| (?P<how>.+?) \|$", re.M)
ROWS = {row["data"]: row for row in list(ROW.finditer(PAGE.read_text()))[1:]}


def voc_segmentation(root: Path) -> Dataset:
    voc(root / "VOCdevkit" / "VOC2012", palette=True)
    found = import_torchvision().datasets.VOCSegmentation(str(root), "2012", "val")
    return from_pairs(found, {4: "boat", 15: "sea"}, ignore=(0, 255))


def vision_cityscapes(root: Path) -> Dataset:
    cityscapes(root, (7, 23))
    found = import_torchvision().datasets.Cityscapes(str(root), "val", target_type="semantic")
    found.images.sort()  # It lists files as the disk does.
    found.targets.sort()
    return from_pairs(found, {7: "boat", 23: "sea"}, ignore=(0, 255))


def pets(root: Path) -> Dataset:
    folder = root / "oxford-iiit-pet"
    images(folder / "images", "pet_{x}.jpg")
    (folder / "annotations").mkdir(parents=True)
    (folder / "annotations" / "trainval.txt").write_text("pet_0 1 1 1\npet_1 1 1 1\n")
    for x in range(2):
        trimap = labels_of(x, (1, 2), 3).astype(np.uint8)
        save(folder / "annotations" / "trimaps" / f"pet_{x}.png", trimap)
    found = import_torchvision().datasets.OxfordIIITPet(str(root), target_types="segmentation")
    return from_pairs(found, {1: "boat", 2: "sea"}, ignore=3)


def rows_of_huggingface(root: Path) -> Dataset:
    rows = [
        {"image": Image.fromarray(picture(x, SHAPE)), "scene_category": 3,
         "annotation": Image.fromarray(labels_of(x).astype(np.uint8))}
        for x in range(2)
    ]  # fmt: skip
    return from_pairs(rows, {1: "boat", 2: "sea"})


def plain_list(root: Path) -> Dataset:
    return from_pairs([(picture(x, SHAPE), MASKS[x]) for x in range(2)], ["boat", "sea"])


IN_PYTHON: Mapping[str, Callable[[Path], Dataset]] = {
    "`VOCSegmentation` of torchvision": voc_segmentation,
    "`Cityscapes` of torchvision": vision_cityscapes,
    "`OxfordIIITPet` of torchvision": pets,
    "`datasets` of HuggingFace": rows_of_huggingface,
    "any sequence of (image, masks)": plain_list,
}


def test_every_row_has_files_and_all_files_a_row():
    assert set(ROWS) == {*CASES, *IN_PYTHON}
    for data, row in ROWS.items():
        if data in IN_PYTHON:
            assert (row["read"], row["how"]) == ("in Python", "`from_pairs`")
        elif CASES[data].refused:
            assert row["read"] == "no"
        else:
            options = "," in re.sub(r",split=\w+", "", row["how"])
            assert row["read"] == ("with options" if options else "as distributed")


def assert_read(dataset: Dataset, names: tuple[str, ...]) -> None:
    known = [concept.name for concept in dataset.concepts()]
    places = [known.index(name) for name in names]
    assert len(dataset) == len(MASKS)
    for x, wanted in enumerate(MASKS):
        found = masks_of(dataset[x], len(known), SHAPE)
        np.testing.assert_array_equal(found[places], wanted[: len(names)])
        if len(names) == len(wanted) and "unlabeled" not in known:
            assert not np.delete(found, places, axis=0).any()


@pytest.mark.parametrize("data", CASES)
def test_files(tmp_path: Path, data: str, capsys: Any):
    case, root = CASES[data], tmp_path / "real"
    case.write(root)
    (spec,) = re.findall(r"`(\w+:DIR[^`]*)`", ROWS[data]["how"])
    text = spec.replace("DIR", str(root))
    if case.refused:
        with pytest.raises(LayoutError, match=case.refused):
            open_dataset(text)
        return
    assert_read(open_dataset(text), case.names)
    args = ["data", "build", text, "--out", str(tmp_path / "t.zarr"), "--workers", "1"]
    assert cli.main([*args, "--mask-size", f"{SHAPE[0]}x{SHAPE[1]}"]) == 0
    assert "2 samples" in capsys.readouterr().out


@pytest.mark.parametrize("data", IN_PYTHON)
def test_objects(tmp_path: Path, data: str):
    assert_read(IN_PYTHON[data](tmp_path), ("boat", "sea"))
