"""COCO annotations: polygons, run lengths in both forms, overlaps, several files."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_cases import SHAPE, content, polygon, runs, write
from helpers.dataset_fixtures import assert_explained, blocks, masks_of, picture, save
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as reference

from optexp_jax.datasets import BadSampleError, ConceptInfo, Dataset, DatasetSpec, LayoutError
from optexp_jax.datasets.coco import open_coco
from optexp_jax.datasets.coco_masks import decode_mask

CATEGORIES = [
    {"id": 1, "name": "person", "supercategory": "human"},
    {"id": 17, "name": "cat", "supercategory": "animal"},
    {"id": 44, "name": "bottle"},
]
STUFF = [
    {"id": 92, "name": "banner", "supercategory": "textile"},
    {"id": 95, "name": "bottle", "supercategory": "other"},
]


def rectangle(top: int, left: int, bottom: int, right: int) -> np.ndarray:
    mask = np.zeros(SHAPE, bool)
    mask[top:bottom, left:right] = True
    return mask


def packed(mask: np.ndarray) -> dict[str, Any]:
    encoded = reference.encode(np.asfortranarray(mask.astype(np.uint8)))
    counts: Any = encoded["counts"]
    return {"size": list(mask.shape), "counts": counts.decode()}


BLOB = blocks(3, SHAPE, [0, 1], n=12).astype(bool)
OTHER = blocks(4, SHAPE, [0, 1], n=12).astype(bool)
BOX = rectangle(2, 3, 9, 11)
# Image, category, segmentation, and the mask it must give.
INSTANCES = [
    (7, 1, [polygon(2, 3, 9, 11)], BOX),
    (7, 1, [polygon(10, 0, 12, 4), polygon(12, 6, 15, 9)],
     rectangle(10, 0, 12, 4) | rectangle(12, 6, 15, 9)),
    (7, 17, packed(BLOB), BLOB),  # It overlaps the person.
    (7, 44, [], np.zeros(SHAPE, bool)),  # an empty mask
    (3, 44, runs(OTHER), OTHER),
    (3, 1, [polygon(0, 0, 16, 22)], np.ones(SHAPE, bool)),
]  # fmt: skip
STUFF_REGIONS = [(7, 92, packed(~BOX), ~BOX), (7, 95, runs(OTHER), OTHER)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for k, name in enumerate(["a", "b", "c"]):
        save(tmp_path / "val2017" / f"{name}.png", picture(k, SHAPE))
    write(tmp_path / "annotations" / "instances_val2017.json", content(CATEGORIES, INSTANCES))
    write(tmp_path / "annotations" / "stuff_val2017.json", content(STUFF, STUFF_REGIONS))
    return tmp_path


def expected_masks(image: int, *, stuff: bool) -> np.ndarray:
    names = ["person", "cat", "bottle", "banner"] if stuff else ["person", "cat", "bottle"]
    called = {entry["id"]: str(entry["name"]) for entry in CATEGORIES + STUFF}
    masks = np.zeros((len(names), *SHAPE), bool)
    for of, category, _, mask in INSTANCES + (STUFF_REGIONS if stuff else []):
        if of == image:
            masks[names.index(called[category])] |= mask
    return masks


def test_instances_and_stuff(root: Path):
    dataset = open_coco(root)
    assert isinstance(dataset, Dataset)
    assert dataset.concepts() == (
        ConceptInfo("person", "human"),
        ConceptInfo("cat", "animal"),
        ConceptInfo("bottle", None),
        ConceptInfo("banner", "textile"),
    )
    assert [dataset[x].name for x in range(3)] == ["a.png", "b.png", "c.png"]
    for x, image in enumerate([3, 7, 4]):
        np.testing.assert_array_equal(dataset[x].image, picture(x, SHAPE))
        found = masks_of(dataset[x], 4, SHAPE)
        np.testing.assert_array_equal(found, expected_masks(image, stuff=True))
    assert "instances_val2017.json, stuff_val2017.json: 3 images" in dataset.describe()


def test_as_many_maps_as_overlaps_need(root: Path):
    dataset = open_coco(root, annotations="instances_val2017.json")
    assert [len(dataset[x].maps) for x in range(3)] == [2, 2, 0]
    assert dataset[2].everywhere == ()


@pytest.mark.parametrize("options", [
    {"annotations": "instances_val2017.json"},
    {"annotations": "annotations/instances_val2017.json", "images": "val2017"},
])  # fmt: skip
def test_files_that_are_given(root: Path, options: dict[str, str]):
    dataset = open_coco(root, **options)
    assert len(dataset.concepts()) == 3
    np.testing.assert_array_equal(masks_of(dataset[1], 3, SHAPE), expected_masks(7, stuff=False))


def test_other_places(root: Path):
    file = root / "annotations" / "instances_val2017.json"
    assert len(DatasetSpec.parse(f"coco:{file}").open().concepts()) == 3
    write(root / "annotations" / "instances_train2017.json", content(CATEGORIES, []))
    with pytest.raises(
        LayoutError, match=r"cannot tell which .*instances_train2017\.json, .*split="
    ):
        open_coco(root)
    assert len(open_coco(root, split="val2017").concepts()) == 4
    with pytest.raises(LayoutError, match=r"have instances_train2017\.json"):
        open_coco(root, split="test")
    (root / "val2017").rename(root / "photos")
    with pytest.raises(LayoutError, match=r"'a\.png' is in none of .*val2017, .*images=FOLDER"):
        open_coco(root, split="val2017")
    assert len(open_coco(root, split="val2017", images="photos")) == 3
    with pytest.raises(LayoutError, match=r"no folder of images .*lost"):
        open_coco(root, split="val2017", images="lost")


def test_one_file_with_images_beside_it(tmp_path: Path):
    save(tmp_path / "images" / "a.png", picture(0, SHAPE))
    write(tmp_path / "mine.json", content(CATEGORIES, INSTANCES))
    assert len(open_coco(tmp_path)) == 3


def test_images_of_another_size_than_their_masks(root: Path):
    save(root / "val2017" / "a.png", picture(0, (32, 44)))
    sample = open_coco(root)[0]
    assert sample.image.shape == (32, 44, 3)
    assert sample.maps[0].shape == SHAPE
    save(root / "val2017" / "a.png", picture(0, (44, 32)))
    with pytest.raises(BadSampleError, match=r"annotation is 16 x 22 .* image is 44 x 32"):
        open_coco(root)[0]


def test_it_can_go_to_another_process(root: Path):
    dataset = pickle.loads(pickle.dumps(open_coco(root)))
    np.testing.assert_array_equal(masks_of(dataset[1], 4, SHAPE), expected_masks(7, stuff=True))


sides = st.integers(1, 40)


@examples(60)
@given(sides, sides, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]))
def test_run_lengths(height: int, width: int, seed: int, share: float):
    mask = np.random.default_rng(seed).random((height, width)) < share
    np.testing.assert_array_equal(decode_mask(runs(mask), height, width), mask)
    np.testing.assert_array_equal(decode_mask(packed(mask), height, width), mask)


def test_long_runs():
    mask = np.zeros((700, 900), bool)
    mask[100:650, 3:890] = True
    mask[300:310, 400:500] = False
    np.testing.assert_array_equal(decode_mask(packed(mask), 700, 900), mask)


SIZE = list(SHAPE)


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        (None, "no segmentation"),
        ("text", "no segmentation"),
        ({"counts": [352]}, "no segmentation"),
        ({"size": [22, 16], "counts": [352]}, r"is of size \[22, 16\]; its image has \[16, 22\]"),
        ({"size": SIZE, "counts": [351]}, "do not add up to 16 x 22"),
        ({"size": SIZE, "counts": [353, -1]}, "not from 0 to 16 x 22"),
        ({"size": SIZE, "counts": ""}, "do not add up"),
        ({"size": SIZE, "counts": "zzzz"}, "the character 'z'"),
        ({"size": SIZE, "counts": packed(BLOB)["counts"][:-1]}, "do not add up|break off"),
        ({"size": SIZE, "counts": "P"}, "break off"),
        ({"size": SIZE, "counts": None}, "neither whole numbers nor a string"),
        ({"size": SIZE, "counts": ["a"]}, "neither whole numbers nor a string"),
        ({"size": SIZE, "counts": [352.0]}, "neither whole numbers nor a string"),
        ({"size": 3, "counts": [352]}, "is of size 3; its image"),
        ([[1, 2, 3, 4, 5, {}]], "not a number"),
        ([[1, 2, 3, 4]], "three points or more"),
        ([[1, 2, 3, 4, 5, 6, 7]], "three points or more"),
        ([1, 2, 3, 4, 5, 6], "three points or more"),
        ([[1, 2, 3, 4, 5, float("nan")]], "no number"),
    ],
)
def test_segmentations_that_are_none(root: Path, segmentation: Any, message: str):
    file = root / "annotations" / "instances_val2017.json"
    write(file, content(CATEGORIES, [(7, 1, segmentation), (4, 1, [polygon(1, 1, 5, 5)])]))
    dataset = open_coco(root, annotations=file.name)
    with pytest.raises(BadSampleError, match=rf"'b\.png' .*annotation 100 .*({message})"):
        dataset[1]
    assert dataset[0].maps == ()


def broken_category(file: dict) -> None:
    file["annotations"][0]["category_id"] = 5


def broken_image(file: dict) -> None:
    file["annotations"][0]["image_id"] = 5


def no_size(file: dict) -> None:
    del file["images"][0]["height"]


def no_categories(file: dict) -> None:
    del file["categories"]


def no_images(file: dict) -> None:
    file["images"], file["annotations"] = [], []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken_category, r"not complete \(KeyError\(5\)\)"),
        (broken_image, r"not complete \(KeyError\(5\)\)"),
        (no_size, "not complete .*height"),
        (no_categories, "not complete .*categories"),
        (no_images, "hold no annotated images"),
    ],
)
def test_files_that_are_refused(root: Path, change, message: str):
    value = content(CATEGORIES, INSTANCES)
    change(value)
    file = write(root / "annotations" / "instances_val2017.json", value)
    with pytest.raises(LayoutError, match=message):
        open_coco(root, annotations=file.name)


def test_other_files(root: Path):
    (root / "bad.json").write_text("{")
    with pytest.raises(LayoutError, match=r"bad\.json is not JSON"):
        open_coco(root, annotations="bad.json")
    with pytest.raises(LayoutError, match=r"neither .*lost\.json nor .*annotations/lost\.json"):
        open_coco(root, annotations="lost.json")
    with pytest.raises(LayoutError, match="no folder or file"):
        open_coco(root / "lost")
    other = content(STUFF, [])
    other["images"][0]["file_name"] = "other.png"
    write(root / "other.json", other)
    with pytest.raises(LayoutError, match=r"image 7 is b\.png .* in one place and other\.png"):
        open_coco(root, annotations="instances_val2017.json+other.json")


def test_broken_images_are_named(root: Path):
    (root / "val2017" / "b.png").write_bytes(b"broken")
    with pytest.raises(BadSampleError, match=r"val2017/b\.png is not an image"):
        open_coco(root)[1]


def test_without_pycocotools(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(ImportError, match=r'pip install "optexp-jax\[coco\]"'):
        open_coco(root)
    only_runs = content(STUFF, STUFF_REGIONS)  # They can be read all the same.
    write(root / "annotations" / "stuff_val2017.json", only_runs)
    assert len(open_coco(root, annotations="stuff_val2017.json")[1].maps) == 2


def test_from_files_to_an_explanation(root: Path, tmp_path: Path):
    masks = np.stack([expected_masks(image, stuff=True) for image in (3, 7, 4)], axis=1)
    bitmap = (masks[0] & ~masks[2]) | masks[1]
    dataset = DatasetSpec.parse(f"coco:{root}").open()
    assert_explained(dataset, bitmap, "(person AND NOT bottle) OR cat", tmp_path)
