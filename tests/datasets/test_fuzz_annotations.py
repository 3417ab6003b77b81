"""Any content of files of annotation programs: samples that hold together, or documented errors."""

import contextlib
import json
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from helpers.coco_cases import write
from helpers.format_datasets import labelme, panoptic, via_csv, via_project, yolo
from helpers.format_writers import SHAPE
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import BadSampleError, LayoutError, check_sample, open_dataset

values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.integers(-2, 40),
        st.sampled_from([10**9, 2**63, 10**400, "polygon", "rect", "circle", "i0.png", "../x.png"]),
    ),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)  # fmt: skip


@contextlib.contextmanager
def refused_in_a_line(kind: type[ValueError]) -> Generator[None]:
    said = ""
    try:
        yield
    except kind as error:
        said = str(error)
    assert len(said) < 3000
    assert "\n" not in said


def read_all(spec: str) -> None:
    with refused_in_a_line(LayoutError):
        dataset = open_dataset(spec)
        for index in range(len(dataset)):
            with refused_in_a_line(BadSampleError):
                sample = check_sample(dataset[index], len(dataset.concepts()))
                assert sample.image.shape == (*SHAPE, 3)
        repr(dataset)


def damage(content: Any, data: st.DataObject) -> Any:
    """Something in it, at any depth, becomes anything else."""
    if isinstance(content, dict) and content and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(content)))
        if not data.draw(st.integers(0, 9)):
            return {name: value for name, value in content.items() if name != key}
        return {**content, key: damage(content[key], data)}
    if isinstance(content, list) and content and data.draw(st.integers(0, 4)):
        place = data.draw(st.integers(0, len(content) - 1))
        return [*content[:place], damage(content[place], data), *content[place + 1 :]]
    return data.draw(values)


@pytest.mark.parametrize(("kind", "writer", "file"), [
    ("labelme", labelme, "i0.json"),
    ("via", via_project, "via_project.json"),
    ("panoptic", panoptic, "annotations/panoptic_val2017.json"),
])  # fmt: skip
@examples(40)
@given(data=st.data())
def test_damaged_json(kind: str, writer: Any, file: str, data: st.DataObject):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        writer(root)
        content = json.loads((root / file).read_text())
        for _ in range(data.draw(st.integers(1, 2))):
            content = damage(content, data)
        write(root / file, content)
        read_all(f"{kind}:{root}")
        if kind != "labelme":
            read_all(f"{kind}:{root / file}")


@pytest.mark.parametrize(("spec", "writer", "file"), [
    ("via:{}", via_csv, "via_export_csv.csv"),
    ("yolo:{},split=val", yolo, "labels/val/i0.txt"),
    ("yolo:{},split=val", yolo, "data.yaml"),
    ("labelme:{}", labelme, "i0.json"),
])  # fmt: skip
@examples(30)
@given(data=st.data())
def test_damaged_text(spec: str, writer: Any, file: str, data: st.DataObject):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        writer(root)
        content = bytearray((root / file).read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content)))
            content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        (root / file).write_bytes(content[: data.draw(st.integers(0, len(content)))])
        read_all(spec.format(root))
        if spec.startswith("via"):
            read_all(f"via:{root / file}")
