"""Dataset files that lie, lead elsewhere or ask for too much are refused in a line, at once."""

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_cases import content, polygon, runs, write
from helpers.dataset_fixtures import BrodenImage, picture, save, write_broden, write_table
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask

from optexp_jax.datasets import BadSampleError, LayoutError, open_dataset
from optexp_jax.datasets.broden import open_broden
from optexp_jax.datasets.coco import open_coco
from optexp_jax.datasets.coco_masks import decode_mask, unpack_runs
from optexp_jax.datasets.images import read_image
from optexp_jax.datasets.layout import files_below

SHAPE = (16, 22)
reference: Any = mask  # Its annotations know a part of what it takes.
ONE = [{"id": 1, "name": "one"}]


def write_coco(root: Path, *regions: Any, **changes: Any) -> Path:
    """One image with one category; the changes are to its entry."""
    save(root / "images" / "a.png", picture(0, SHAPE))
    made = content(ONE, [(3, 1, region) for region in regions], SHAPE)
    made["images"] = [{**image, **changes} for image in made["images"] if image["id"] == 3]
    return write(root / "mine.json", made)


# Names that lead elsewhere.


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("name", ["/etc/hostname", "../../secret.png", "x/../../../secret.png",
                                  "a\0.png", "\ud800.png", ".."])  # fmt: skip
def test_coco_file_names_stay_inside(tmp_path: Path, name: str):
    save(tmp_path / "secret.png", picture(1, SHAPE))
    path = write_coco(tmp_path / "deep" / "data", file_name=name)
    with pytest.raises(LayoutError, match=r"must not lead out|is in none of") as refused:
        open_coco(path, images="images")
    assert "\n" not in str(refused.value)


def test_names_between_folders_of_the_dataset_are_read(tmp_path: Path):
    path = write_coco(tmp_path, file_name="../images/a.png")
    (tmp_path / "labels").mkdir()
    assert open_coco(path, images="labels")[0].image.shape == (*SHAPE, 3)


@pytest.mark.chaos("hostile files refused")
def test_links_out_of_a_dataset_are_refused(tmp_path: Path):
    secret = save(tmp_path / "secret.png", picture(1, SHAPE))
    root = tmp_path / "data"
    path = write_coco(root)
    image = root / "images" / "a.png"
    image.unlink()
    image.symlink_to(secret)
    with pytest.raises(BadSampleError, match=r"is a link to .*secret\.png, out of the dataset"):
        open_coco(path)[0]
    with pytest.raises(BadSampleError, match="out of the dataset"):
        open_coco(path).image(0)
    # A link inside, and a whole folder that lies elsewhere, are fine.
    image.unlink()
    image.symlink_to(save(root / "store" / "1.png", picture(1, SHAPE)))
    assert open_coco(path)[0].image.shape == (*SHAPE, 3)
    (root / "images").rename(tmp_path / "disk")
    (root / "images").symlink_to(tmp_path / "disk")
    assert open_coco(path)[0].image.shape == (*SHAPE, 3)
    # A link to itself.
    image.unlink()
    image.symlink_to(image)
    with pytest.raises(BadSampleError, match=r"a\.png"):
        open_coco(path, images="images")[0]


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("where", ["image", "map"])
def test_broden_names_stay_inside(tmp_path: Path, where: str):
    root = tmp_path / "broden"
    images = [BrodenImage("ade20k/a.png", cells={"object": [np.ones(SHAPE, np.int64)]}, size=SHAPE)]
    write_broden(root, [("one", "object(1)")], images)
    index = (root / "index.csv").read_text()
    old = "ade20k/a.png" if where == "image" else "ade20k/a_object.png"
    (root / "index.csv").write_text(index.replace(old, f"ade20k/../../../{old}"))
    with pytest.raises(LayoutError, match="must not lead out"):
        open_broden(root)
    (root / "index.csv").write_text(index)
    name = root / "images" / old
    name.rename(tmp_path / "elsewhere.png")
    name.symlink_to(tmp_path / "elsewhere.png")
    with pytest.raises(BadSampleError, match="out of the dataset"):
        open_broden(root)[0]


@pytest.mark.chaos("hostile files refused")
def test_links_in_a_circle_come_to_an_end(tmp_path: Path):
    root = tmp_path / "data"
    save(root / "images" / "a.png", picture(0, SHAPE))
    save(root / "labels" / "a.png", np.ones(SHAPE, np.uint8))
    write_table(root / "labels.csv", ["value", "name"], [[1, "one"]])
    for k in range(3):  # Each leads to all of it: without an end, 3 ** depth of them.
        (root / "images" / f"up{k}").symlink_to(root)
        (root / "labels" / f"here{k}").symlink_to(root / "labels")
    (root / "images" / "self").symlink_to(root / "images" / "self")
    (root / "images" / "lost.png").symlink_to(root / "nowhere.png")
    started = time.monotonic()
    dataset = open_dataset(f"folder:{root}")
    assert [dataset[x].name for x in range(1)] == ["a.png"]
    assert time.monotonic() - started < 5


def test_deep_folders_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    depth = 1200  # More than Python nests calls.
    monkeypatch.chdir(tmp_path)
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    Path("a.png").touch()
    try:
        assert len(files_below(tmp_path, [".png"])) == 1
    finally:  # pytest cannot remove such a folder, and a later run would stumble over it
        Path("a.png").unlink()
        for _ in range(depth):
            os.chdir("..")
            os.rmdir("d")


# Files that say nonsense.


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize(("change", "message"), [
    ({"categories": [{"id": 1, "name": None}]}, "category 1 .* is named None"),
    ({"categories": [{"id": 1, "name": " "}]}, "is named ' '"),
    ({"categories": [{"id": 1, "name": ["x"] * 999}]}, r"is named \['x', .*\.\.\."),
    ({"categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]},
     "two categories of the id 1"),
    ({"categories": [{"id": 1, "name": "a", "supercategory": 3}]}, "supercategory 3, .* not text"),
    ({"categories": [{"id": [], "name": "a"}]}, "not complete"),
    ({"categories": 7}, "not complete"),
    ({"images": [{"id": 3, "file_name": None, "height": 1, "width": 1}]}, "has the name None"),
    ({"images": [{"id": 3, "file_name": "a.png", "height": "x", "width": 1}]}, "whole numbers"),
    ({"images": [{"id": 3, "file_name": "a.png", "height": 1e999, "width": 1}]}, "whole numbers"),
    ({"images": [{"id": k, "file_name": "a.png", "height": 16, "width": 22} for k in (3, 4)]},
     "two images have the file name"),
    ({"annotations": None}, "not complete"),
])  # fmt: skip
def test_nonsense_is_refused(tmp_path: Path, change: dict[str, Any], message: str):
    path = write_coco(tmp_path)
    write(path, {**json.loads(path.read_text()), **change})
    with pytest.raises(LayoutError, match=message) as refused:
        open_coco(path)
    assert len(str(refused.value)) < 500


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("text", ["[" * 200_000, '{"images":' * 100_000, "1" * 10_000])
def test_nested_json(tmp_path: Path, text: str):
    path = write_coco(tmp_path)
    path.write_text(text)
    with pytest.raises(LayoutError, match=r"nested too deeply|not JSON"):
        open_coco(path)


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("size", [(10**9, 10**9), (0, 22), (-16, 22), (2**31, 1)])
def test_absurd_sizes_are_refused(tmp_path: Path, size: tuple[int, int]):
    path = write_coco(tmp_path, {"size": list(size), "counts": [1]}, height=size[0], width=size[1])
    with pytest.raises(BadSampleError, match=r"its size is given as"):
        open_coco(path)[0]


@pytest.mark.chaos("hostile files refused")
def test_images_that_claim_to_be_huge(tmp_path: Path):
    path = tmp_path / "bomb.png"
    Image.new("1", (20_000, 8_000)).save(path)  # 160 million pixels in a few kilobytes
    assert path.stat().st_size < 100_000
    with pytest.raises(BadSampleError, match=r"bomb\.png: .*(pixels|exceeds)"):
        read_image(path, "bomb")


# Masks.


def reference_mask(told: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pycocotools with numpy 2
        return reference.decode(told).astype(bool)


def reference_runs(text: str) -> list[int]:
    """The packed form as its description has it, one character after another."""
    found: list[int] = []
    value, shift = 0, 0
    for character in text:
        bits = ord(character) - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                value -= 1 << shift
            found.append(value + (found[-2] if len(found) > 2 else 0))
            value, shift = 0, 0
    return found


@examples(150)
@given(st.lists(st.integers(0, 2**30), max_size=40))
def test_packed_run_lengths_of_any_size(lengths: list[int]):
    sizes = [min(run, 2**20) for run in lengths]
    height = sum(sizes)
    if not 0 < height < 2**22:
        return
    told = reference.frPyObjects({"size": [height, 1], "counts": sizes}, height, 1)
    text = told["counts"].decode()
    assert unpack_runs(text).tolist() == reference_runs(text) == sizes
    mask = decode_mask({"size": [height, 1], "counts": text}, height, 1)
    np.testing.assert_array_equal(mask, reference_mask(told))


@examples(200)
@given(st.text(st.characters(min_codepoint=48, max_codepoint=111), max_size=30))
def test_any_packed_text(text: str):
    try:
        found = unpack_runs(text)
    except ValueError:
        return
    assert found.tolist() == reference_runs(text)


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("text", ["P" * 2**20, "P" * 2**20 + "0", "1" * 2**20, "zz" * 2**19])
def test_a_megabyte_of_run_lengths(text: str):
    started = time.monotonic()
    with pytest.raises(ValueError, match="has run lengths"):
        decode_mask({"size": [16, 22], "counts": text}, 16, 22)
    assert time.monotonic() - started < 2


def test_a_megabyte_of_run_lengths_that_is_a_mask():
    mask = np.random.default_rng(0).random((1400, 1400)) < 0.5
    packed = reference.encode(np.asfortranarray(mask.astype(np.uint8)))
    text = packed["counts"].decode()
    assert len(text) > 9e5
    started = time.monotonic()
    np.testing.assert_array_equal(
        decode_mask({"size": [1400, 1400], "counts": text}, 1400, 1400), mask
    )
    assert time.monotonic() - started < 2


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("counts", [
    [10**400], [2**63, -(2**63)], [True] * 352, [2**62] * 8, [352.0], ["352"], [[352]], [None],
])  # fmt: skip
def test_run_lengths_that_are_no_counts(counts: list[Any]):
    with pytest.raises(ValueError, match="has run lengths"):
        decode_mask({"size": [16, 22], "counts": counts}, 16, 22)


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, 2.0**39, 10**9])
def test_far_polygons_are_clipped(far: float):
    """A far corner leaves the picture as it is where the true outline is known."""
    ones = np.ones(SHAPE, bool)
    box = [-far, -far, far, -far, far, far, -far, far]
    np.testing.assert_array_equal(decode_mask([box], *SHAPE), ones)
    half = [[11, -far, far, -far, far, far, 11, far]]
    expected = np.zeros(SHAPE, bool)
    expected[:, 11:] = True
    np.testing.assert_array_equal(decode_mask(half, *SHAPE), expected)
    beside = [[far, far, 2 * far, far, 2 * far, 2 * far]]
    assert not decode_mask(beside, *SHAPE).any()
    # A slope through the middle: y below x, up to the pixels that the line itself crosses.
    slope = decode_mask([[-far, -far, far, -far, far, far]], *SHAPE)
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    assert slope[columns > rows + 1].all()
    assert not slope[columns < rows - 1].any()


@examples(150)
@given(st.lists(st.tuples(st.integers(-60, 80), st.integers(-60, 80)), min_size=3, max_size=8))
def test_clipping_changes_a_line_of_pixels_at_most(points: list[tuple[int, int]]):
    """Against pycocotools where it can still be asked: corners beyond the distance of clipping."""
    flat = [float(value) for point in points for value in point]
    told = reference.merge(reference.frPyObjects([flat], *SHAPE))
    expected = reference_mask(told)
    found = decode_mask([flat], *SHAPE)
    if all(-22 <= x <= 44 and -22 <= y <= 38 for x, y in points):
        np.testing.assert_array_equal(found, expected)
        return
    for row, column in np.argwhere(found != expected):
        near = [abs(_distance(points[k - 1], points[k], (column, row))) for k in range(len(points))]
        assert min(near) < 2.5


def _distance(a: tuple[int, int], b: tuple[int, int], at: tuple[int, int]) -> float:
    """Of the middle of a pixel from a side of a polygon."""
    ends = np.array(a, float), np.array(b, float)
    point, along = np.array(at, float) + 0.5, ends[1] - ends[0]
    share = np.clip(along @ (point - ends[0]) / max(along @ along, 1e-9), 0, 1)
    return float(np.linalg.norm(ends[0] + share * along - point))


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("value", [2.0**41, 1e300, float("inf"), float("nan"), "1", None, 10**400])
def test_coordinates_beyond_all_images(value: Any):
    with pytest.raises(ValueError, match="has a polygon with a coordinate"):
        decode_mask([[value, 0, 5, 0, 5, 5]], *SHAPE)


@pytest.mark.chaos("hostile files refused")
def test_outlines_that_fill_the_memory(tmp_path: Path):
    zigzag = [float(v) for k in range(20_000) for v in (4000 * (k % 2), 4000 * (k % 2))]
    started = time.monotonic()
    with pytest.raises(ValueError, match="pixels long together"):
        decode_mask([zigzag], 4000, 4000)
    assert time.monotonic() - started < 2


def test_ordinary_masks_are_as_they_were(tmp_path: Path):
    path = write_coco(tmp_path, [polygon(2, 3, 9, 11)], runs(np.eye(16, 22, dtype=bool)))
    expected = np.eye(16, 22, dtype=bool)
    expected[2:9, 3:11] = True
    np.testing.assert_array_equal(open_coco(path)[0].maps[0] == 0, expected)
