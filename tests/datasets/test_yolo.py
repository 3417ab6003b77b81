"""YOLO segmentation, in the layouts of Ultralytics and Roboflow."""

from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import assert_explained, masks_of, picture, save
from helpers.turned_images import save_turned

from optexp_jax.datasets import BadSampleError, DatasetSpec, LayoutError
from optexp_jax.datasets.yolo import open_yolo

SHAPE = (16, 32)  # Parts of powers of two are exact.


def polygon(kind: int, top: int, left: int, bottom: int, right: int) -> str:
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return f"{kind} " + " ".join(f"{x / 32} {y / 16}" for x, y in corners) + "\n"


def box(top: int, left: int, bottom: int, right: int) -> np.ndarray:
    mask = np.zeros(SHAPE, bool)
    mask[top : bottom + 1, left : right + 1] = True  # The edge is part of a region.
    return mask


def write(root: Path, images: str, labels: str, names: str = "names: [boat, sea]\n") -> Path:
    for x, name in enumerate("abc"):
        save(root / images / f"{name}.png", picture(x, SHAPE))
    (root / labels).mkdir(parents=True)
    (root / labels / "a.txt").write_text(polygon(0, 2, 3, 8, 12) + "\n" + polygon(1, 6, 8, 15, 31))
    (root / labels / "b.txt").write_text(polygon(1, 0, 0, 4, 31))
    (root / "data.yaml").write_text(f"path: x\ntrain: images/train\nnc: 2\n{names}")
    return root


@pytest.mark.parametrize(("images", "labels", "split", "names"), [
    ("images/val", "labels/val", ",split=val", "names: [boat, sea]\n"),
    ("valid/images", "valid/labels", ",split=valid", "names:\n  0: boat\n  1: sea\n"),
    ("images", "labels", "", "names: ['boat', 'sea']\n"),
])  # fmt: skip
def test_layouts(tmp_path: Path, images: str, labels: str, split: str, names: str):
    root = write(tmp_path / "mine", images, labels, names)
    dataset = DatasetSpec.parse(f"yolo:{root}{split}").open()
    assert [concept.name for concept in dataset.concepts()] == ["boat", "sea"]
    assert dataset[0].name == f"{images}/a.png"
    wanted = [[box(2, 3, 8, 12), box(6, 8, 15, 31)], [box(9, 9, 0, 0), box(0, 0, 4, 31)]]
    for x in range(2):
        np.testing.assert_array_equal(masks_of(dataset[x], 2, SHAPE), wanted[x])
    assert not dataset[2].maps
    bitmap = np.stack([wanted[0][0] & ~wanted[0][1], wanted[1][0], wanted[1][0]])
    assert_explained(dataset, bitmap, "boat AND NOT sea", tmp_path)


def test_a_list_of_names(tmp_path: Path):
    root = write(tmp_path, "images", "labels")
    (root / "data.yaml").unlink()
    with pytest.raises(LayoutError, match=r"neither data\.yaml nor a list"):
        open_yolo(root)
    (root / "classes.txt").write_text("boat\nsea\n")
    assert len(open_yolo(root).concepts()) == 2


@pytest.mark.parametrize(("line", "said"), [
    ("0 0.5 0.5 0.2 0.2", "line 1 is a box"),
    ("0 0.5 0.5 0.2 0.2 0.1", "has 5 numbers"),
    ("7 0 0 1 0 1 1", r"has the class 7, which data\.yaml does not name"),
    ("0 0 0 1 0 1 nan", "a coordinate that is far from 0 to 1"),
    ("0 12 3 30 3 30 9", "a coordinate that is far from 0 to 1.* divide pixels by them"),
    ("boat 0 0 1 0 1 1", "invalid literal"),
])  # fmt: skip
def test_lines_that_are_refused(tmp_path: Path, line: str, said: str):
    root = write(tmp_path, "images", "labels")
    (root / "labels" / "a.txt").write_text(line)
    with pytest.raises(LayoutError, match=said):
        open_yolo(root)


@pytest.mark.parametrize("names", ["names: 3\n", "nothing: [a]\n", "names: [[]\n", "names: [1]\n"])
def test_names_that_are_refused(tmp_path: Path, names: str):
    with pytest.raises(LayoutError, match=r"must have `names`|is not YAML"):
        open_yolo(write(tmp_path, "images", "labels", names))


def test_turned_images(tmp_path: Path):
    root = write(tmp_path, "images", "labels")
    save_turned(root / "images" / "a.png", picture(0, (SHAPE[1], SHAPE[0])), 6)
    with pytest.raises(BadSampleError, match="exif=apply"):
        open_yolo(root)[0]
    np.testing.assert_array_equal(
        masks_of(open_yolo(root, exif="apply")[0], 2, SHAPE)[0], box(2, 3, 8, 12)
    )
