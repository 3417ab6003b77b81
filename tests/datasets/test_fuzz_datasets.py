"""Any content of a dataset's files: samples that hold together, or the documented errors."""

import contextlib
import csv
import io
import json
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.dataset_fixtures import BrodenImage, picture, save, write_ade, write_broden
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import BadSampleError, LayoutError, check_sample, open_dataset
from optexp_jax.datasets.coco_masks import decode_mask
from optexp_jax.datasets.images import read_image, read_labels
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.safe_pickle import read_pickle

SHAPE = (6, 8)


@contextlib.contextmanager
def folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextlib.contextmanager
def refused_in_a_line(kind: type[ValueError]) -> Generator[None]:
    """Errors of this kind are fine, unless they are endless."""
    message = ""
    try:
        yield
    except kind as error:
        message = str(error)
    assert len(message) < 3000


def read_all(spec: str) -> None:
    """All samples, checked; errors of the documented kinds are fine."""
    with refused_in_a_line(LayoutError):
        dataset = open_dataset(spec)
        n_concepts = len(dataset.concepts())
        for index in range(len(dataset)):
            with refused_in_a_line(BadSampleError):
                check_sample(dataset[index], n_concepts)


# Tables.

cells = st.one_of(
    st.sampled_from(["0", "1", "2", "-1", "value", "name", "image", "label", "category", "layer",
                     "a", "a.png", "labels", "void", "", "1e9", "9" * 20, "²", "=1", "\x1b[2J",
                     "../a.png"]),
    st.text(max_size=6),
)  # fmt: skip
rows = st.lists(st.lists(cells, max_size=4), max_size=5)


def table_text(data: list[list[str]]) -> bytes:
    held = io.StringIO()
    csv.writer(held).writerows([[cell.replace("\ud800", "") for cell in row] for row in data])
    return held.getvalue().encode("utf-8", "surrogatepass")


tables = st.one_of(
    st.binary(max_size=60),
    rows.map(table_text),
    rows.map(lambda data: table_text([["value", "name", "category", "layer"], *data])),
    rows.map(lambda data: table_text([["image", "label"], *data])),
)


@examples(60)
@given(tables, tables)
def test_tables_of_folders(names: bytes, tags: bytes):
    with folder() as root:
        save(root / "images" / "a.png", picture(0, SHAPE))
        save(root / "labels" / "a.png", np.ones(SHAPE, np.uint8))
        (root / "labels.csv").write_bytes(names)
        (root / "tags.csv").write_bytes(tags)
        read_all(f"folder:{root}")
        read_all(f"folder:{root},names=labels.csv,image_labels=tags.csv")


@examples(40)
@given(tables, rows)
def test_tables_of_broden(content: bytes, index: list[list[str]]):
    with folder() as root:
        one = BrodenImage("ade20k/a.png", cells={"object": [np.ones(SHAPE, np.int64)]}, size=SHAPE)
        write_broden(root, [("one", "object(1)")], [one])
        good = (root / "index.csv").read_bytes()
        head = good.partition(b"\r\n")[0]
        (root / "index.csv").write_bytes(head + b"\r\n" + table_text(index))
        read_all(f"broden:{root},subset=all")
        (root / "index.csv").write_bytes(content)
        read_all(f"broden:{root},subset=all")
        (root / "index.csv").write_bytes(good)
        for name in ("label.csv", "c_object.csv"):
            (root / name).write_bytes(content)
            read_all(f"broden:{root}")


@examples(40)
@given(tables)
def test_class_lists(content: bytes):
    with folder() as root:
        write_ade(root, {"x/ADE_val_1": np.ones(SHAPE, np.int64)})
        for name in ("list.csv", "list.json"):
            (root / name).write_bytes(content)
            read_all(f"ade20k:{root},classes={root / name}")


# JSON.

values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.text(max_size=5),
        st.integers(-2, 12), st.sampled_from([10**9, 2**63, 10**400, -(10**9)]),
    ),
    lambda inner: st.lists(inner, max_size=6)
    | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=8,
)  # fmt: skip
segmentations = st.one_of(
    values,
    st.lists(st.lists(st.floats() | st.integers(-20, 20), max_size=9), max_size=3),
    st.fixed_dictionaries({
        "size": st.just(list(SHAPE)) | values,
        "counts": st.text(st.characters(max_codepoint=120), max_size=12) | values
        | st.lists(st.integers(-1, 50), max_size=4),
    }),
)  # fmt: skip


@examples(200)
@given(segmentations)
def test_segmentations(segmentation: Any):
    with refused_in_a_line(ValueError):
        mask = decode_mask(segmentation, *SHAPE)
        assert mask.shape == SHAPE
        assert mask.dtype == np.bool_


def coco() -> dict[str, Any]:
    return {
        "images": [{"id": 1, "file_name": "a.png", "height": SHAPE[0], "width": SHAPE[1]}],
        "categories": [{"id": 1, "name": "one", "supercategory": "x"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1,
                         "segmentation": [[1, 1, 5, 1, 5, 4]]}],
    }  # fmt: skip


@examples(150)
@given(st.data())
def test_coco_files(data: st.DataObject):
    content = coco()
    for _ in range(data.draw(st.integers(1, 2))):
        part = data.draw(st.sampled_from(list(content)))
        if data.draw(st.booleans()) or not isinstance(content[part], list):
            content[part] = data.draw(values | st.lists(values, max_size=2))
            continue
        entries = [entry for entry in content[part] if isinstance(entry, dict)]
        for entry in entries:
            if entry:
                entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(values | segmentations)
    with folder() as root:
        save(root / "a.png", picture(0, SHAPE))
        (root / "mine.json").write_text(json.dumps(content))
        read_all(f"coco:{root / 'mine.json'}")


@examples(60)
@given(
    st.binary(max_size=80) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
)
def test_json_that_is_none(content: bytes):
    with folder() as root:
        (root / "mine.json").write_bytes(content)
        read_all(f"coco:{root / 'mine.json'}")


# Pickles.

opcodes = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=3),
        st.sampled_from([
            *(bytes([code]) for code in b"])}(tldeasu201NRb.\x85\x86\x8f\x90\x91\x94\x88\x81\x93"),
            b"q\x00", b"h\x00", b"K\x01", b"X\x01\x00\x00\x00a", b"C\x01a", b"cnumpy\ndtype\n",
            b"cnumpy\nndarray\n", b"cnumpy.core.multiarray\n_reconstruct\n", b"cos\nsystem\n",
            b"cnumpy.core.multiarray\nscalar\n", b"ccollections\nOrderedDict\n",
            b"c_codecs\nencode\n", b"cbuiltins\nset\n",
        ]),
    ),
    max_size=40,
).map(lambda parts: b"".join(parts) + b".")  # fmt: skip


@examples(400)
@given(opcodes)
def test_pickle_programs(content: bytes):
    with folder() as root:
        path = root / "index.pkl"
        path.write_bytes(content)
        try:
            found = read_pickle(path)
        except LayoutError:
            return
        assert isinstance(found, str | bytes | int | float | complex | list | tuple | dict | set
                          | frozenset | np.ndarray | np.generic | np.dtype | None)  # fmt: skip


@examples(60)
@given(st.data())
def test_indexes_of_any_data(data: st.DataObject):
    index: dict[str, Any] = {
        "objectnames": ["a", "b"],
        "filename": ["ADE_train_1.jpg", "ADE_val_1.jpg"],
        "objectPresence": np.ones((2, 2), np.int64),
        "objectIsPart": np.zeros((2, 2), np.int64),
    }
    index[data.draw(st.sampled_from(list(index)))] = data.draw(values)
    with folder() as root:
        write_ade(root, {"x/ADE_val_1": np.ones(SHAPE, np.int64)})
        (root / "index_ade20k.pkl").write_bytes(pickle.dumps(index))
        read_all(f"ade20k:{root}")


# Images and arrays.


@examples(60)
@given(st.sampled_from(["png", "tif", "jpg", "bmp", "gif", "webp"]), st.data())
def test_damaged_images(suffix: str, data: st.DataObject):
    with folder() as root:
        path = save(root / f"a.{suffix}", picture(0, SHAPE))
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 6))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        for read in (read_image, read_labels):
            with contextlib.suppress(BadSampleError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Pillow, about what is odd in a file
                assert read(path, "a", Exif.APPLY).dtype in (np.uint8, np.int32)


@examples(40)
@given(st.data())
def test_damaged_arrays(data: st.DataObject):
    with folder() as root:
        path = root / "a.npz"
        np.savez(path, images=np.zeros((1, 4, 4, 3), np.uint8), labels=np.ones((1, 4, 4), np.int64),
                 names=["void", "one"])  # fmt: skip
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        with contextlib.suppress(ValueError, TypeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_dataset(f"arrays:{path}")


def test_arrays_that_claim_to_be_huge(tmp_path: Path):
    for shape in ("(1000000000000,)", "(4, 4, 10000000000)"):
        path = tmp_path / "a.npz"
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("images.npy", content + b"abc")
        with pytest.raises(LayoutError, match="cannot be read"):
            open_dataset(f"arrays:{path}")


def test_arrays_that_unpack_to_more_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, images=np.zeros((1, 2000, 2000, 3), np.uint8))
    assert path.stat().st_size < 10**5
    monkeypatch.setattr("optexp_jax.internal.memory.available_memory", lambda: 10**6)
    with pytest.raises(LayoutError, match=r"would take about 0\.0 GB .* are free"):
        open_dataset(f"arrays:{path}")
