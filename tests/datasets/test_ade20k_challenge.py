"""ADE20K with 150 classes, and the release of 2016, written as they are distributed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from helpers.dataset_fixtures import ade_png, blocks, masks_of, picture, save, write_table

from optexp_jax.datasets import BadSampleError, DatasetSpec, LayoutError
from optexp_jax.datasets.ade20k import open_ade20k

SHAPE = (18, 24)
MAPS = {f"ADE_val_0000000{k}": blocks(k, SHAPE, [0, 1, 2, 150], n=20) for k in (1, 2)}
ROWS = [[1, 0.1576, 11664, 1172], [2, 0.1072, 6046, 612], [150, 0.0018, 188, 11]]
SYNONYMS = [["wall"], ["building", "edifice"], ["flag"]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ADEChallengeData2016"
    for k, (name, labels) in enumerate(MAPS.items()):
        save(root / "images" / "validation" / f"{name}.jpg", picture(k, SHAPE))
        save(root / "annotations" / "validation" / f"{name}.png", labels.astype(np.uint8))
    (root / "sceneCategories.txt").write_text("ADE_val_00000001 street\n")
    return root


def write_classes(root: Path, file: str) -> Path:
    if file == "objectInfo150.txt":
        rows = [[*row, ", ".join(names)] for row, names in zip(ROWS, SYNONYMS, strict=True)]
        columns = ["Idx", "Ratio", "Train", "Val", "Name"]
        return write_table(root / file, columns, rows, delimiter="\t")
    rows = [[*row, "FALSE", ";".join(names)] for row, names in zip(ROWS, SYNONYMS, strict=True)]
    return write_table(root / file, ["Idx", "Ratio", "Train", "Val", "Stuff", "Name"], rows)


@pytest.mark.parametrize(("file", "name"), [
    ("objectInfo150.txt", "building, edifice"),
    ("object150_info.csv", "building;edifice"),
])  # fmt: skip
def test_as_distributed(root: Path, tmp_path: Path, file: str, name: str):
    write_classes(root, file)
    elsewhere = write_classes(tmp_path, file)
    for spec in (f"ade20k:{root}", f"ade20k:{root},classes={elsewhere}"):
        dataset = DatasetSpec.parse(spec).open()
        assert [concept.name for concept in dataset.concepts()] == ["wall", name, "flag"]
        for x, labels in enumerate(MAPS.values()):
            wanted = [labels == value for value in (1, 2, 150)]
            np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), wanted)


def test_what_is_refused(root: Path):
    with pytest.raises(LayoutError, match=r"neither objectInfo150\.txt nor object150_info\.csv"):
        open_ade20k(root)
    for index in (0, 2, 255):
        rows = [[index, "x"], [2, "y"]]
        write_table(root / "object150_info.csv", ["Idx", "Name"], rows)
        with pytest.raises(LayoutError, match=f"lists the index {index} twice, or it is not"):
            open_ade20k(root)
    write_table(root / "object150_info.csv", ["Idx", "Name"], [[1, "wall"], [2, "x"]])
    with pytest.raises(BadSampleError, match=r"values that object150_info\.csv does not: 150"):
        open_ade20k(root)[0]
    with pytest.raises(LayoutError, match=r"there is no split .train. in .*validation"):
        open_ade20k(root, split="train")


def write_2016(root: Path) -> dict[str, np.ndarray]:
    maps = {f"{s}/{n}": blocks(len(n), SHAPE, [0, 3, 2]) for s, n in (
        ("s/street", "ADE_val_00000001"), ("a/abbey", "ADE_val_00000022"))}  # fmt: skip
    for k, (name, ids) in enumerate(maps.items()):
        folder = root / "images" / "validation"
        save(folder / f"{name}.jpg", picture(k, SHAPE))
        save(folder / f"{name}_seg.png", ade_png(ids))
    (root / "images" / "training").mkdir()
    files: Any = np.array(["ADE_train_00000001.jpg", "ADE_val_00000001.jpg"], object)
    presence = np.array([[1, 0], [1, 1], [2, 1]])
    index = {
        "filename": files,
        "objectnames": np.array(["door", "tree", "sky"], object),
        "objectPresence": presence,
        "objectIsPart": np.zeros_like(presence),
    }
    scipy.io.savemat(root / "index_ade20k.mat", {"index": index})
    return maps


def test_the_release_of_2016(tmp_path: Path):
    maps = write_2016(tmp_path)
    dataset = open_ade20k(tmp_path)
    assert [concept.name for concept in dataset.concepts()] == ["tree", "sky"]  # Doors are no more.
    for x, ids in enumerate(maps.values()):
        np.testing.assert_array_equal(masks_of(dataset[x], 2, SHAPE), [ids == 2, ids == 3])
    (tmp_path / "index_ade20k.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(LayoutError, match=r"index_ade20k\.mat is not the index of ADE20K"):
        open_ade20k(tmp_path)
