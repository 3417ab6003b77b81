"""ADE20K-Full, written as it is distributed and as it is prepared."""

import contextlib
import json
import logging
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.dataset_fixtures import (
    assert_explained,
    blocks,
    masks_of,
    picture,
    stretched,
    write_ade,
    write_prepared_ade,
    write_table,
)
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import BadSampleError, Dataset, DatasetSpec, LayoutError, ade20k
from optexp_jax.datasets.ade20k import ADE20K
from optexp_jax.datasets.safe_pickle import UnsafePickleError, read_pickle

SHAPE = (18, 24)
# Ids on both sides of a byte; 2977 needs more than the green channel and 40 is in no list.
CLASSES = {2977: "wall", 312: "building, edifice", 255: "pier", 256: "pillow", 3: "tree"}
USED = [0, 40, *CLASSES]
MAPS = {
    "urban/street/ADE_val_00000001": blocks(1, SHAPE, USED, n=20),
    "home/bedroom/ADE_val_00000003": blocks(2, SHAPE, USED, n=20),
    "home/attic/ADE_val_00000002": blocks(3, (30, 21), USED, n=20),
}
ORDER = [
    "urban/street/ADE_val_00000001",
    "home/attic/ADE_val_00000002",
    "home/bedroom/ADE_val_00000003",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_ade(tmp_path / "ADE20K_2021_17_01", MAPS)


@pytest.fixture
def classes(root: Path) -> Path:
    rows = [[number, name, place] for place, (number, name) in enumerate(CLASSES.items())]
    return write_table(root / "classes.csv", ["id", "name", "trainId"], rows)


def open_ade20k(*args: Any, **options: Any) -> ADE20K:
    opened = ade20k.open_ade20k(*args, **options)
    assert isinstance(opened, ADE20K)
    return opened


def expected_masks(name: str, shape: tuple[int, int]) -> np.ndarray:
    ids = stretched(MAPS[name], shape)
    return np.stack([ids == number for number in CLASSES])


def index_of(n_classes: int = 3000) -> dict[str, Any]:
    """An index in which wall, pier and tree are objects in both splits."""
    files = ["ADE_train_00000001.jpg", "ADE_frame_00000002.jpg", "ADE_val_00000001.jpg"]
    presence = np.zeros((n_classes, 3), np.uint8)
    as_part = np.zeros((n_classes, 3), np.uint8)
    presence[2976] = [1, 0, 2]
    presence[254] = [0, 1, 1]
    presence[2] = [3, 3, 3]
    as_part[2] = [3, 2, 1]
    presence[311] = [5, 5, 0]  # only in training
    presence[255] = [0, 0, 5]  # only in validation
    presence[39], as_part[39] = [2, 2, 2], [0, 0, 2]  # a part in validation
    names = [f"class{k + 1}" for k in range(n_classes)]
    for number, name in CLASSES.items():
        names[number - 1] = name
    return {
        "filename": files,
        "folder": ["ADE20K_2021_17_01/images/ADE/training/x"] * 3,
        "objectnames": names,
        "objectPresence": presence,
        "objectIsPart": as_part,
        "objectcounts": presence.sum(axis=1),
        "description": {"filename": "text"},
    }


def write_index(root: Path, index: Any, protocol: int = 4) -> Path:
    path = root / "index_ade20k.pkl"
    path.write_bytes(pickle.dumps(index, protocol=protocol))
    return path


def test_as_distributed(root: Path, classes: Path):
    dataset = open_ade20k(root, classes=str(classes))
    assert isinstance(dataset, Dataset)
    assert [concept.name for concept in dataset.concepts()] == list(CLASSES.values())
    assert [dataset[x].name for x in range(3)] == [f"{name}.jpg" for name in ORDER]
    for x, name in enumerate(ORDER):
        np.testing.assert_array_equal(masks_of(dataset[x], 5, SHAPE), expected_masks(name, SHAPE))
    assert dataset[1].maps[0].shape == (30, 21)
    assert dataset.image(1).shape == (30, 21, 3)


def test_prepared_with_847_classes_in_16_bits(tmp_path: Path):
    values = [0, 254, 255, 256, 300, 846, 65535]
    maps = {f"ADE_val_0000000{k}": blocks(k, SHAPE, values, n=30) for k in (2, 1)}
    write_prepared_ade(tmp_path, maps)
    rows = [[3000 - k, f"class{k}", k] for k in range(847)]
    write_table(tmp_path / "classes.csv", ["id", "name", "trainId"], rows)
    dataset = open_ade20k(tmp_path, classes="classes.csv")
    assert len(dataset.concepts()) == 847
    assert dataset.concepts()[255].name == "class255"
    for x, name in enumerate(["ADE_val_00000001", "ADE_val_00000002"]):
        sample = dataset[x]
        assert sample.name == f"{name}.jpg"
        np.testing.assert_array_equal(sample.maps[0], np.where(maps[name] == 65535, -1, maps[name]))
    assert "prepared" in dataset.describe()
    assert "847 concepts (the list classes.csv)" in dataset.describe()


def test_prepared_needs_its_list(tmp_path: Path):
    write_prepared_ade(tmp_path, {"ADE_val_00000001": np.zeros(SHAPE, np.int64)})
    write_index(tmp_path, index_of())
    with pytest.raises(LayoutError, match=r"train ids.*classes=FILE"):
        open_ade20k(tmp_path)


def test_prepared_values_beyond_the_list(tmp_path: Path):
    write_prepared_ade(tmp_path, {"ADE_val_00000001": np.full(SHAPE, 300)})
    write_table(tmp_path / "classes.csv", ["id", "name", "trainId"], [[1, "a", 0]])
    with pytest.raises(BadSampleError, match=r"ADE_val_00000001\.tif holds values .*: 300\."):
        open_ade20k(tmp_path, classes="classes.csv")[0]


def test_the_other_split_is_read_as_distributed(root: Path, classes: Path):
    write_prepared_ade(root, {"ADE_val_00000001": np.zeros(SHAPE, np.int64)})
    write_ade(root, {"x/ADE_train_00000007": np.full(SHAPE, 3)}, "training")
    assert open_ade20k(root, classes=str(classes)).prepared
    training = open_ade20k(root, classes=str(classes), split="training")
    assert not training.prepared
    np.testing.assert_array_equal(training[0].maps[0], np.full(SHAPE, 4))
    with pytest.raises(LayoutError, match=r"no split 'test'.* which has training, validation"):
        open_ade20k(root, classes=str(classes), split="test")


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "no train ids"])
def test_forms_of_the_class_list(root: Path, form: str):
    rows = [[2977, "wall", 1], [312, "building, edifice", 0], [9, "nothing", 65535]]
    expected = ["building, edifice", "wall"]
    path = root / f"classes.{form}"
    if form == "json":
        keys = ("id", "name", "trainId")
        path.write_text(json.dumps([dict(zip(keys, row, strict=True)) for row in rows]))
    elif form == "tsv":
        write_table(path, ["id", "name", "train_id"], rows, delimiter="\t")
    elif form == "csv":
        write_table(path, ["id", "name", "trainId"], rows)
    else:
        path = root / "plain.csv"
        write_table(path, ["id", "name"], [row[:2] for row in rows])
        expected = ["wall", "building, edifice", "nothing"]
    dataset = open_ade20k(root, classes=str(path))
    assert [concept.name for concept in dataset.concepts()] == expected
    assert dataset.classes.source == f"the list {path.name}"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, "a", 0], [2, "b", 2]], "without a gap; there are 2, from 0 to 2"),
        ([[1, "a", 0], [2, "b", 0]], "train id 0 to two classes"),
        ([[1, "a", 0], [1, "b", 1]], "id 1 is listed twice"),
        ([[0, "a", 0]], "id 0 is below 1"),
        ([["x", "a", 0]], "column 'id' holds 'x'"),
        ([], "there are 0"),
    ],
)
def test_class_lists_that_are_refused(root: Path, rows: list, message: str):
    write_table(root / "classes.csv", ["id", "name", "trainId"], rows)
    with pytest.raises(LayoutError, match=message):
        open_ade20k(root, classes="classes.csv")


def test_class_lists_without_a_column(root: Path):
    write_table(root / "classes.csv", ["number", "name"], [[1, "a"]])
    with pytest.raises(LayoutError, match="lacks the column 'id'"):
        open_ade20k(root, classes="classes.csv")
    (root / "classes.json").write_text('[{"id": 1}]')
    with pytest.raises(LayoutError, match="must list objects with id, name"):
        open_ade20k(root, classes="classes.json")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_classes_of_the_index(root: Path, protocol: int, caplog: pytest.LogCaptureFixture):
    write_index(root, index_of(), protocol)
    with caplog.at_level(logging.INFO):
        dataset = open_ade20k(root)
    assert [concept.name for concept in dataset.concepts()] == ["tree", "pier", "wall"]
    said = "classes of index_ade20k.pkl in both training and validation images"
    assert dataset.classes.source == said
    assert f"3 concepts ({said})" in dataset.describe()
    assert f"3 classes; {said}" in caplog.text
    for x, name in enumerate(ORDER):
        expected = expected_masks(name, SHAPE)[[4, 2, 0]]
        np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), expected)


def test_an_index_written_with_an_older_numpy(root: Path):
    path = write_index(root, index_of(), protocol=2)
    content = path.read_bytes()
    assert b"numpy._core.multiarray" in content
    path.write_bytes(content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert len(open_ade20k(root).concepts()) == 3


def test_names_given_twice_in_the_index(root: Path):
    index = index_of()
    index["objectnames"][2] = "pier"
    write_index(root, index)
    names = [concept.name for concept in open_ade20k(root).concepts()]
    assert names == ["pier (3)", "pier (255)", "wall"]


class Intruder:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_an_index_that_runs_code_is_refused(root: Path):
    trap = root / "trap"
    write_index(root, {**index_of(), "more": Intruder(trap)})
    with pytest.raises(UnsafePickleError, match=r"index_ade20k\.pkl .*asks for .*mkdir.*could run"):
        open_ade20k(root)
    assert not trap.exists()


def test_plain_data_is_read(tmp_path: Path):
    data: dict[str, Any] = {
        "list": [1, 2.5, None, True, "é", b"\x00\xff", 2**80],
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "objects": np.array(["a", None, 3], dtype=object),
        "lists": np.array([[1, 2], [3], None], dtype=object)[:2],
        "turned": np.arange(6.0).reshape(2, 3).T,
        "big-endian": np.arange(3, dtype=">u4"),
        "empty": np.zeros((0, 4), np.int8),
        "scalar": np.float32(1.5),
        "set": {1, 2},
        "text": np.array(["x", "yy"]),
    }
    for protocol in (0, 1, 2, 3, 4, 5):
        path = write_index(tmp_path, data, protocol)
        read = read_pickle(path)
        assert read["list"] == data["list"]
        assert read["set"] == data["set"]
        assert read["scalar"] == data["scalar"]
        for key in ("array", "objects", "lists", "turned", "big-endian", "empty", "text"):
            np.testing.assert_array_equal(read[key], data[key])
            assert read[key].dtype == data[key].dtype


@examples(150)
@given(st.sampled_from([2, 4, 5]), st.data())
def test_a_forged_pickle_is_refused_or_read(protocol: int, data: st.DataObject):
    # numpy itself crashes on some of these.
    content = bytearray(pickle.dumps({"a": np.arange(5), "b": ["x", np.float32(1)]}, protocol))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forged.pkl")
        path.write_bytes(content)
        with contextlib.suppress(LayoutError):
            read_pickle(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(2, [("x", "i4")]), "records"),
        (np.array(["2020-01-01"], "M8[D]"), "type 'M8' are not accepted"),
    ],
)
def test_arrays_of_other_types_are_refused(tmp_path: Path, wrong: np.ndarray, message: str):
    with pytest.raises(LayoutError, match=message):
        read_pickle(write_index(tmp_path, wrong))


def test_an_array_larger_than_its_content_is_refused(tmp_path: Path):
    path = write_index(tmp_path, np.arange(200, dtype=np.uint8), protocol=2)
    content = path.read_bytes()
    assert content.count(b"K\xc8\x85") == 1  # its shape, (200,)
    path.write_bytes(content.replace(b"K\xc8\x85", b"K\xff\x85"))
    with pytest.raises(LayoutError, match=r"shape \(255,\) from 200 bytes"):
        read_pickle(path)


@pytest.mark.parametrize(
    "wrong",
    [print, np.load, np.random.default_rng(0), Path("x"), pickle.loads],
    ids=["print", "load", "generator", "path", "loads"],
)
def test_anything_else_is_not(tmp_path: Path, wrong: Any):
    with pytest.raises(UnsafePickleError):
        read_pickle(write_index(tmp_path, [wrong]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: index.pop("objectPresence"), "expected the key 'objectPresence'"),
        (lambda index: index["filename"].pop(), r"must be \[class, image\] = \[3000, 2\]"),
        (lambda index: index["objectPresence"].fill(0), "no class occurs in training and"),
    ],
)
def test_indexes_that_are_wrong(root: Path, change, message: str):
    index = index_of()
    change(index)
    write_index(root, index)
    with pytest.raises(LayoutError, match=message):
        open_ade20k(root)


def test_no_class_list_at_all(root: Path):
    with pytest.raises(LayoutError, match=r"no class list.*index_ade20k\.pkl.*classes=FILE"):
        open_ade20k(root)
    (root / "index_ade20k.pkl").write_bytes(b"broken")
    with pytest.raises(LayoutError, match=r"index_ade20k\.pkl cannot be read as a pickle"):
        open_ade20k(root)
    with pytest.raises(LayoutError, match=r"there is no file .*lost\.csv"):
        open_ade20k(root, classes="lost.csv")


def test_bad_samples_are_named(root: Path, classes: Path):
    dataset = open_ade20k(root, classes=str(classes))
    folder = root / "images" / "ADE" / "validation"
    (folder / f"{ORDER[0]}_seg.png").unlink()
    with pytest.raises(BadSampleError, match=r"00000001_seg\.png does not exist"):
        dataset[0]
    (folder / f"{ORDER[1]}_seg.png").write_bytes(b"broken")
    with pytest.raises(BadSampleError, match=r"00000002_seg\.png is not an image") as error:
        dataset[1]
    assert error.value.name == f"{ORDER[1]}.jpg"
    assert dataset.image(1).shape == picture(0, (30, 21)).shape


@pytest.mark.parametrize("wrong", [".", "ADE20K_2021_17_01/images", "ADE20K_2021_17_01/images/ADE"])
def test_a_root_near_by_is_hinted_at(root: Path, wrong: str):
    with pytest.raises(
        LayoutError, match=r"expected images/ADE/ .*you meant .*/ADE20K_2021_17_01\."
    ):
        open_ade20k(root.parent / wrong)


def test_from_files_to_an_explanation(root: Path, classes: Path):
    masks = np.stack([expected_masks(name, SHAPE) for name in ORDER], axis=1)
    bitmap = masks[0] | masks[3] | masks[2]
    dataset = DatasetSpec.parse(f"ade20k:{root},classes={classes}").open()
    assert_explained(dataset, bitmap, "wall OR pillow OR pier", root.parent)
