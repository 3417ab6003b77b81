"""Cityscapes, written as it is distributed."""

from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import (
    assert_explained,
    blocks,
    masks_of,
    picture,
    stretched,
    write_cityscapes,
)

from optexp_jax.datasets import BadSampleError, Dataset, DatasetSpec, LayoutError
from optexp_jax.datasets.cityscapes import open_cityscapes

SHAPE = (16, 32)
NAMES = [
    "road",
    "sidewalk",
    "building",
    "wall",
    "fence",
    "pole",
    "traffic_light",
    "traffic_sign",
    "vegetation",
    "terrain",
    "sky",
    "person",
    "rider",
    "car",
    "truck",
    "bus",
    "train",
    "motorcycle",
    "bicycle",
]
# Written down once more, label id by label id: -1 is none.
TRAIN_IDS = [-1] * 7 + [
    0,
    1,
    -1,
    -1,
    2,
    3,
    4,
    -1,
    -1,
    -1,
    5,
    -1,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
]
TRAIN_IDS += [-1, -1, 16, 17, 18]

IDS = {
    "lindau/lindau_000000_000019": blocks(1, SHAPE, range(34), n=60),
    "frankfurt/frankfurt_000000_000294": blocks(2, SHAPE, [7, 11, 23, 26, 0], n=20),
}
MADE = {
    "frankfurt/frankfurt_000000_000576": blocks(3, (20, 30), [*range(19), 255], n=60),
    # Both forms: the made one, of train ids, is read.
    "lindau/lindau_000000_000019": blocks(4, SHAPE, [0, 2, 13, 255], n=20),
}
ORDER = [
    "frankfurt/frankfurt_000000_000294",
    "frankfurt/frankfurt_000000_000576",
    "lindau/lindau_000000_000019",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_cityscapes(tmp_path / "cityscapes", IDS, MADE)
    write_cityscapes(root, {"ulm/ulm_000000_000001": blocks(5, SHAPE, range(34))}, {}, "train")
    return root


def expected_masks(name: str, shape: tuple[int, int]) -> np.ndarray:
    if name in MADE:
        return np.stack([stretched(MADE[name], shape) == k for k in range(19)])
    ids = stretched(IDS[name], shape)
    return np.stack(
        [np.isin(ids, [i for i, t in enumerate(TRAIN_IDS) if t == k]) for k in range(19)]
    )


def test_images_and_labels(root: Path):
    dataset = open_cityscapes(root)
    assert isinstance(dataset, Dataset)
    assert [dataset[x].name for x in range(3)] == [f"{name}_leftImg8bit.png" for name in ORDER]
    for x, name in enumerate(ORDER):
        np.testing.assert_array_equal(masks_of(dataset[x], 19, SHAPE), expected_masks(name, SHAPE))
    assert dataset[1].maps[0].shape == (20, 30)
    np.testing.assert_array_equal(dataset.image(2), picture(0, SHAPE))
    assert dataset.describe() == "Cityscapes, val: 3 images, 19 concepts"


def test_concepts_are_the_published_ones(root: Path):
    concepts = open_cityscapes(root).concepts()
    assert [concept.name.replace(" ", "_") for concept in concepts] == NAMES
    assert {concept.category for concept in concepts} == {
        "flat", "construction", "object", "nature", "sky", "human", "vehicle"
    }  # fmt: skip


def test_other_splits(root: Path):
    assert len(open_cityscapes(root, split="train")) == 1
    with pytest.raises(
        LayoutError, match=r"no split 'test' in .*leftImg8bit, which has train, val"
    ):
        open_cityscapes(root, split="test")


def test_bad_samples_are_named(root: Path):
    dataset = open_cityscapes(root)
    labels = root / "gtFine" / "val"
    path = labels / f"{ORDER[0]}_gtFine_labelIds.png"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BadSampleError, match=r"000294_gtFine_labelIds\.png") as error:
        dataset[0]
    assert error.value.name == f"{ORDER[0]}_leftImg8bit.png"
    (labels / f"{ORDER[1]}_gtFine_labelTrainIds.png").unlink()
    with pytest.raises(BadSampleError, match=r"neither .*000576_gtFine_labelIds\.png nor"):
        dataset[1]


@pytest.mark.parametrize(("made", "value"), [(True, 19), (False, 34)])
def test_values_that_are_no_class(tmp_path: Path, made: bool, value: int):
    maps = {"a/a_000000_000000": np.full(SHAPE, value)}
    root = write_cityscapes(tmp_path, {} if made else maps, maps if made else {})
    with pytest.raises(BadSampleError, match=f"holds values .* not: {value}\\."):
        open_cityscapes(root)[0]


@pytest.mark.parametrize("wrong", [".", "cityscapes/gtFine", "cityscapes/leftImg8bit/val"])
def test_a_root_near_by_is_hinted_at(root: Path, wrong: str):
    with pytest.raises(LayoutError, match=r"expected leftImg8bit/ .*you meant .*/cityscapes\."):
        open_cityscapes(root.parent / wrong)


def test_a_split_without_images(root: Path):
    (root / "leftImg8bit" / "test").mkdir()
    with pytest.raises(LayoutError, match=r"no images CITY/\*_leftImg8bit\.png in .*test"):
        open_cityscapes(root, split="test")


def test_from_files_to_an_explanation(root: Path):
    masks = np.stack([expected_masks(name, SHAPE) for name in ORDER], axis=1)
    bitmap = masks[0] | masks[13] | masks[10]
    dataset = DatasetSpec.parse(f"cityscapes:{root}").open()
    assert_explained(dataset, bitmap, "road OR car OR sky", root.parent)


@pytest.mark.parametrize(("classes", "first"), [(30, 4), (34, 0)])
def test_more_classes(tmp_path: Path, classes: int, first: int):
    """All 34 ids in their order, or those from 4 on, which say what is seen."""
    name = "bonn/bonn_000000_000019"
    ids = np.arange(35).repeat(4).reshape(10, 14) % 34
    # Maps of train ids know 19 classes only, so that they are not read.
    write_cityscapes(tmp_path, {name: ids}, {name: np.zeros_like(ids)})
    dataset = DatasetSpec.parse(f"cityscapes:{tmp_path},classes={classes}").open()
    assert len(dataset.concepts()) == classes
    wanted = [ids == value for value in range(first, 34)]
    np.testing.assert_array_equal(masks_of(dataset[0], classes, (10, 14)), wanted)
    by_id = {7: "road", 9: "parking", 15: "bridge", 29: "caravan", 33: "bicycle", 4: "static"}
    for value, concept in by_id.items():
        assert dataset.concepts()[value - first].name == concept
    with pytest.raises(ValueError, match="has 19, 30 or 34 classes; got 20"):
        open_cityscapes(tmp_path, classes=20)
