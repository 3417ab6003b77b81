"""COCO panoptic: JSON and PNG in the layout in which they are distributed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_cases import write
from helpers.dataset_fixtures import assert_explained, blocks, masks_of, picture, save
from helpers.turned_images import save_turned

from optexp_jax.datasets import BadSampleError, ConceptInfo, DatasetSpec, LayoutError
from optexp_jax.datasets.coco import open_coco
from optexp_jax.datasets.panoptic import open_panoptic

SHAPE = (16, 22)
IMAGES = {139: "000000000139.jpg", 285: "000000000285.jpg"}
# Segments by id, of which each byte counts, and the categories they are of; 0 is no segment.
SEGMENTS = {1: 1, 256: 44, 65536 + 512 + 3: 44, 2**24 - 1: 92}
CATEGORIES = [
    {"id": 1, "name": "person", "supercategory": "person", "isthing": 1, "color": [220, 20, 60]},
    {"id": 44, "name": "bottle", "supercategory": "kitchen", "isthing": 1, "color": [1, 2, 3]},
    {"id": 92, "name": "banner", "supercategory": "textile", "isthing": 0, "color": [4, 5, 6]},
]
MAPS = {number: blocks(number, SHAPE, [0, *SEGMENTS], n=14) for number in IMAGES}


def png(segments: np.ndarray) -> np.ndarray:
    return np.stack([segments >> shift & 255 for shift in (0, 8, 16)], axis=2).astype(np.uint8)


def content() -> dict[str, Any]:
    return {
        "info": {"description": "COCO 2018 Panoptic Dataset"},
        "images": [
            {"id": number, "file_name": name, "height": SHAPE[0], "width": SHAPE[1]}
            for number, name in IMAGES.items()
        ],
        "annotations": [
            {
                "image_id": number,
                "file_name": name.replace(".jpg", ".png"),
                "segments_info": [
                    {"id": segment, "category_id": SEGMENTS[segment], "iscrowd": 0, "area": 1}
                    for segment in np.unique(MAPS[number]).tolist()
                    if segment
                ],
            }
            for number, name in IMAGES.items()
        ],
        "categories": CATEGORIES,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "coco"
    for number, name in IMAGES.items():
        save(root / "val2017" / name, picture(number, SHAPE))
        masks = root / "annotations" / "panoptic_val2017"
        save(masks / name.replace(".jpg", ".png"), png(MAPS[number]))
    write(root / "annotations" / "panoptic_val2017.json", content())
    write(root / "annotations" / "instances_val2017.json", {})  # is beside it, and is not read
    return root


def wanted(number: int) -> np.ndarray:
    segments = MAPS[number]
    return np.stack([
        segments == 1,
        (segments == 256) | (segments == 65536 + 512 + 3),
        segments == 2**24 - 1,
    ])  # fmt: skip


@pytest.mark.parametrize("spec", [
    "panoptic:{root}",
    "panoptic:{root},split=val2017",
    "panoptic:{root}/annotations/panoptic_val2017.json",
    "panoptic:{root},annotations=panoptic_val2017.json,images=val2017,"
    "masks=annotations/panoptic_val2017",
])  # fmt: skip
def test_as_distributed(root: Path, tmp_path: Path, spec: str):
    dataset = DatasetSpec.parse(spec.format(root=root)).open()
    assert dataset.concepts() == (
        ConceptInfo("person", "person"),
        ConceptInfo("bottle", "kitchen"),
        ConceptInfo("banner", "textile"),
    )
    for x, number in enumerate(IMAGES):
        np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), wanted(number))
    bitmap = np.stack([wanted(number)[0] | wanted(number)[2] for number in IMAGES])
    assert_explained(dataset, bitmap, "person OR banner", tmp_path)
    assert len(DatasetSpec.parse(spec.format(root=root)).fingerprint) == 32


def test_the_wrong_reader_is_named(root: Path):
    path = root / "annotations" / "panoptic_val2017.json"
    with pytest.raises(LayoutError, match=r"holds panoptic annotations.*panoptic:.*val2017\.json"):
        open_coco(path)
    instances = {**content(), "annotations": [{"image_id": 139, "segmentation": []}]}
    with pytest.raises(LayoutError, match="It holds instances: that is the kind coco"):
        open_panoptic(write(root / "annotations" / "instances_val2017.json", instances))


@pytest.mark.parametrize(("entry", "said"), [
    ({"caption": "A street."}, "holds captions, which do not say where"),
    ({"category_id": 1, "bbox": [1, 2, 3, 4], "segmentation": []}, "holds boxes without a segment"),
    ({"category_id": 1}, "holds annotations without a segmentation"),
])  # fmt: skip
def test_files_without_regions_are_named(root: Path, entry: dict[str, Any], said: str):
    given = {**content(), "annotations": [{"id": 1, "image_id": 139, **entry}]}
    with pytest.raises(LayoutError, match=said):
        open_coco(write(root / "annotations" / "captions_val2017.json", given))


def test_what_is_refused(root: Path):
    path = root / "annotations" / "panoptic_val2017.json"
    given = content()
    given["annotations"][0]["segments_info"].pop()
    write(path, given)
    with pytest.raises(BadSampleError, match=r"000000000139\.png holds the segment 16777215"):
        open_panoptic(root)[0]
    for name in ("../../x.png", "/x.png"):
        given["annotations"][0]["file_name"] = name
        write(path, given)
        save(root.parent / "x.png", png(MAPS[139]))
        with pytest.raises(LayoutError, match=r"must not lead out|are in none of"):
            open_panoptic(root)
    for wrong in ({}, {**content(), "categories": 3}, [1], {**content(), "annotations": []}):
        write(path, wrong)
        with pytest.raises(LayoutError, match=r"is not complete|holds no annotated"):
            open_panoptic(root)
    path.write_text(json.dumps(content())[:-9])
    with pytest.raises(LayoutError, match="is not JSON"):
        open_panoptic(root)
    write(path, content())
    (root / "annotations" / "panoptic_val2017").rename(root / "pngs")
    with pytest.raises(LayoutError, match=r"Unpack them there, or say.*masks=FOLDER"):
        open_panoptic(root)
    assert len(open_panoptic(root, masks="pngs")) == 2


def test_turned_images(root: Path):
    save_turned(root / "val2017" / IMAGES[139], picture(0, (SHAPE[1], SHAPE[0])), 6)
    with pytest.raises(BadSampleError, match="exif=apply"):
        open_panoptic(root)[0]
    assert open_panoptic(root, exif="apply")[0].image.shape == (*SHAPE, 3)
    with pytest.raises(BadSampleError, match="turned, cropped or stretched"):
        open_panoptic(root, exif="ignore")[0]


def test_keypoints_beside_their_images(root: Path):
    """`person_keypoints_val2017.json`: the split is what follows the last underscore."""
    square = [[2, 3, 10, 3, 10, 9, 2, 9]]
    keypoints = {
        "images": content()["images"],
        "categories": [{"id": 1, "name": "person", "keypoints": ["nose"], "skeleton": []}],
        "annotations": [
            {"id": 1, "image_id": 139, "category_id": 1, "segmentation": square, "keypoints": [0]}
        ],
    }
    dataset = open_coco(write(root / "annotations" / "person_keypoints_val2017.json", keypoints))
    box = np.zeros(SHAPE, bool)
    box[3:9, 2:10] = True
    np.testing.assert_array_equal(masks_of(dataset[0], 1, SHAPE)[0], box)
