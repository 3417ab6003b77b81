"""Datasets that are arrays already."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.dataset_fixtures import assert_explained, blocks, masks_of, picture
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax import LabelLayer
from optexp_jax.datasets import BadSampleError, ConceptInfo, Dataset, DatasetSpec, LayoutError
from optexp_jax.datasets.arrays import ArrayDataset, to_rgb
from optexp_jax.datasets.arrays_file import open_arrays

SHAPE = (10, 14)
N = 3
IMAGES = np.stack([picture(x, SHAPE) for x in range(N)])
OBJECTS = np.stack([blocks(x, SHAPE, [0, 1, 2]) for x in range(N)])
COLOURS = np.stack([blocks(x + 10, SHAPE, [7, 8, 255]) for x in range(N)])
LAYERS = [
    LabelLayer({1: "car", 2: "sky"}, category="object"),
    LabelLayer({7: "red", 8: "blue"}, category="colour", ignore=[255]),
]
SCENES = ["street", None, ["street", "night"]]


def labelled(images: Any = IMAGES, maps: Any = (OBJECTS, COLOURS)) -> ArrayDataset:
    return ArrayDataset.from_label_maps(images, maps, LAYERS, SCENES)


def expected_masks() -> np.ndarray:
    scenes = np.array([[1, 0, 1], [0, 0, 1]], bool)[:, :, None, None]
    everywhere = np.broadcast_to(scenes, (2, N, *SHAPE))
    each = [OBJECTS == 1, OBJECTS == 2, COLOURS == 7, COLOURS == 8]
    return np.concatenate([np.stack(each), everywhere])


@pytest.mark.parametrize(
    "kind", [np.asarray, jnp.asarray, torch.as_tensor, list], ids=["numpy", "jax", "torch", "list"]
)
def test_label_maps(kind: Any):
    dataset = labelled(
        kind(IMAGES), [kind(OBJECTS.astype(np.int32)), kind(COLOURS.astype(np.int32))]
    )
    assert isinstance(dataset, Dataset)
    assert dataset.concepts() == (
        ConceptInfo("car", "object"),
        ConceptInfo("sky", "object"),
        ConceptInfo("red", "colour"),
        ConceptInfo("blue", "colour"),
        ConceptInfo("street", "scene"),
        ConceptInfo("night", "scene"),
    )
    assert [dataset[x].name for x in range(N)] == ["sample0", "sample1", "sample2"]
    for x in range(N):
        np.testing.assert_array_equal(dataset[x].image, IMAGES[x])
        np.testing.assert_array_equal(dataset.image(x), IMAGES[x])
        np.testing.assert_array_equal(masks_of(dataset[x], 6, SHAPE), expected_masks()[:, x])


def test_images_and_maps_of_different_sizes():
    images = [picture(0, (4, 5)), picture(1, (8, 3))]
    maps = [[np.ones((2, 2), np.int64), np.full((3, 9), 2)]]
    dataset = ArrayDataset.from_label_maps(images, maps, LAYERS[:1], sample_names=["p", "q"])
    assert dataset[1].name == "q"
    assert dataset[1].image.shape == (8, 3, 3)
    np.testing.assert_array_equal(dataset[1].maps[0], np.ones((3, 9)))


@examples(40)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.6, 1.0]))
def test_masks(n_concepts: int, seed: int, share: float):
    masks = np.random.default_rng(seed).random((n_concepts, N, 3, 4)) < share
    dataset = ArrayDataset.from_masks(IMAGES, masks)
    for x in range(N):
        sample = dataset[x]
        np.testing.assert_array_equal(masks_of(sample, n_concepts, (3, 4)), masks[:, x])
        # No more maps than the concepts that overlap need at most.
        assert len(sample.maps) <= int(masks[:, x].any(axis=(1, 2)).sum())


def test_disjoint_masks_share_a_map():
    ids = blocks(0, SHAPE, [0, 1, 2, 3])
    masks = np.stack([ids == k for k in range(4)])
    dataset = ArrayDataset.from_masks(
        IMAGES[:1], [masks], ["a", "b", "c", "d"], ["x", None, "x", "y"]
    )
    assert len(dataset[0].maps) == 1
    np.testing.assert_array_equal(dataset[0].maps[0], ids)
    assert dataset.concepts()[3] == ConceptInfo("d", "y")


RGB = IMAGES[0]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (RGB.transpose(2, 0, 1), RGB),
        (RGB[:, :, 0], RGB[:, :, [0, 0, 0]]),
        (RGB[:, :, :1], RGB[:, :, [0, 0, 0]]),
        (RGB[None, :, :, 1], RGB[:, :, [1, 1, 1]]),
        (RGB[:, :, [0, 1, 2, 0]], RGB),
        (RGB / np.float32(255), RGB),
        (torch.as_tensor(RGB.transpose(2, 0, 1).copy()) / 255, RGB),
    ],
    ids=["channels first", "grey", "one channel", "one channel first", "alpha", "floats", "torch"],
)
def test_images(image: Any, expected: np.ndarray):
    np.testing.assert_array_equal(to_rgb(image, "image"), expected)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (RGB.astype(np.float32), "floats outside 0 to 1"),
        (np.full((*SHAPE, 3), np.nan), "NaN"),
        (RGB.astype(np.int64) + 1000, "must be uint8"),
        (RGB.astype(np.uint16), "must be uint8"),
        (RGB[:, :, :2], r"must be \[height, width, 3\].*got \[10, 14, 2\]"),
        (RGB[None], r"got \[1, 10, 14, 3\]"),
        (RGB[:0], r"got \[0, 14, 3\]"),
    ],
)
def test_images_that_are_none(image: Any, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        to_rgb(image, "image 3")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: labelled(IMAGES[:0]), "no image"),
        (lambda: labelled(maps=[OBJECTS]), "2 layers but 1 stacks"),
        (lambda: labelled(maps=[OBJECTS, COLOURS[:2]]), "3 images but 2 maps of layer 1"),
        (lambda: labelled(maps=[OBJECTS[0], COLOURS]), "3 images but 10 maps of layer 0"),
        (lambda: labelled(maps=[OBJECTS, COLOURS / 1]), "map 1 of sample 0 must be integers"),
        (lambda: labelled(maps=[OBJECTS[:, None], COLOURS]), r"must be \[height, width\]"),
        (
            lambda: ArrayDataset.from_label_maps(IMAGES, [OBJECTS], LAYERS[:1], ["a"]),
            "3 images but 1 sample_labels",
        ),
        (
            lambda: ArrayDataset.from_label_maps(
                IMAGES, [OBJECTS], LAYERS[:1], sample_names=["a", "b", "a"]
            ),
            "must be distinct",
        ),
        (lambda: ArrayDataset.from_masks(IMAGES, OBJECTS > 0), r"\[concept, sample, height, width"),
        (lambda: ArrayDataset.from_masks(IMAGES, OBJECTS[None]), "masks must be boolean"),
        (lambda: ArrayDataset.from_masks(IMAGES, OBJECTS[None, :2] > 0), "3 images but 2 masks"),
        (
            lambda: ArrayDataset.from_masks(
                IMAGES[:2], [np.ones((2, 3, 3), bool), np.ones((1, 3, 3), bool)]
            ),
            "Masks of sample 1 .* with 2 concepts",
        ),
        (lambda: ArrayDataset.from_masks(IMAGES, OBJECTS[None] > 0, ["a", "b"]), "1 concepts but"),
    ],
)
def test_arrays_that_are_refused(make: Any, message: str):
    with as_users_run_it(), pytest.raises((ValueError, TypeError), match=message):
        make()


def test_values_without_a_name():
    objects = OBJECTS.copy()
    objects[1, 0, 0] = 9
    dataset = labelled(maps=[objects, COLOURS])
    assert len(dataset[0].maps) == 2
    with pytest.raises(BadSampleError, match=r"'sample1' .*without a name: 9"):
        dataset[1]


def test_masks_in_a_file(tmp_path: Path):
    path = tmp_path / "mine.npz"
    masks = np.stack([OBJECTS == 1, OBJECTS == 2])
    np.savez(path, images=IMAGES, masks=masks, names=["car", "sky"], categories=["x", "y"])
    dataset = DatasetSpec.parse(f"arrays:{path}").open()
    assert tuple(dataset.concepts()) == (ConceptInfo("car", "x"), ConceptInfo("sky", "y"))
    for x in range(N):
        np.testing.assert_array_equal(masks_of(dataset[x], 2, SHAPE), masks[:, x])


def test_label_maps_in_a_file(tmp_path: Path):
    path = tmp_path / "mine.npz"
    np.savez(
        path,
        images=IMAGES,
        labels=OBJECTS,
        names=["", "car", "sky"],
        labels_tone=np.where(COLOURS == 255, 0, COLOURS - 6),
        names_tone=["void", "red", "blue"],
        sample_names=["p", "q", "r"],
    )
    dataset = DatasetSpec.parse(f"arrays:{path}").open()
    assert [concept.category for concept in dataset.concepts()] == [None, None, "tone", "tone"]
    assert dataset[2].name == "r"
    for x in range(N):
        np.testing.assert_array_equal(masks_of(dataset[x], 4, SHAPE), expected_masks()[:4, x])


def test_the_file_counts_in_the_fingerprint(tmp_path: Path):
    path = tmp_path / "mine.npz"
    spec = f"arrays:{path}"
    np.savez(path, images=IMAGES, labels=OBJECTS, names=["", "car", "sky"])
    before = DatasetSpec.parse(spec).fingerprint
    assert DatasetSpec.parse(spec).fingerprint == before
    np.savez(path, images=IMAGES, labels=OBJECTS.astype(np.int16), names=["", "car", "sky"])
    assert DatasetSpec.parse(spec).fingerprint != before


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": IMAGES}, r"must hold images .*; it has images\."),
        ({"images": IMAGES, "labels": OBJECTS}, "lacks 'names'"),
        ({"labels": OBJECTS, "names": ["a", "b", "c"]}, "lacks 'images'"),
        ({"images": IMAGES, "labels": np.array([None, "x"])}, "cannot be read as an"),
        (None, "cannot be read as an"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, arrays: dict[str, Any] | None, message: str):
    path = tmp_path / "mine.npz"
    if arrays is None:
        path.write_bytes(b"PK broken")
    else:
        np.savez(path, **arrays)
    with pytest.raises(LayoutError, match=message):
        open_arrays(path)
    with pytest.raises(LayoutError, match="no file"):
        open_arrays(tmp_path / "lost.npz")
    np.save(tmp_path / "one.npy", OBJECTS)
    with pytest.raises(LayoutError, match="holds one array"):
        open_arrays(tmp_path / "one.npy")


def test_from_arrays_to_an_explanation(tmp_path: Path):
    masks = expected_masks()
    assert_explained(
        labelled(), (masks[0] | masks[3]) & ~masks[5], "(car OR blue) AND NOT night", tmp_path
    )
