"""Images that are to be shown turned, and maps of another shape than their image."""

from pathlib import Path

import numpy as np
import pytest
from helpers.coco_cases import content, polygon, write
from helpers.dataset_fixtures import (
    BrodenImage,
    ade_png,
    save,
    write_ade,
    write_broden,
    write_cityscapes,
    write_table,
)
from helpers.support import examples
from helpers.turned_images import STORED, folder, save_turned
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import BadSampleError, DatasetSpec, build_table, image_of
from optexp_jax.datasets.images import check_aspect, read_image, read_labels
from optexp_jax.datasets.orientation import Exif

# What the standard says of each value: where the first row and the first column are shown.
SHOWN = {
    2: STORED[:, ::-1],
    3: STORED[::-1, ::-1],
    4: STORED[::-1],
    5: STORED.transpose(1, 0, 2),
    6: STORED.transpose(1, 0, 2)[:, ::-1],
    7: STORED[::-1, ::-1].transpose(1, 0, 2),
    8: STORED.transpose(1, 0, 2)[::-1],
}


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("orientation", SHOWN)
def test_turned_images_are_read_as_asked(tmp_path: Path, suffix: str, orientation: int):
    path = save_turned(tmp_path / f"a.{suffix}", STORED, orientation)
    with pytest.raises(BadSampleError, match=rf"orientation {orientation}\).*exif=apply.*exif=ign"):
        read_image(path, "a")
    np.testing.assert_array_equal(read_image(path, "a", Exif.IGNORE), STORED)
    np.testing.assert_array_equal(read_image(path, "a", Exif.APPLY), SHOWN[orientation])
    # Label maps can say it too.
    path = save_turned(tmp_path / f"b.{suffix}", STORED[:, :, 0], orientation)
    np.testing.assert_array_equal(read_labels(path, "b", Exif.IGNORE), STORED[:, :, 0])
    shown = read_labels(path, "b", Exif.APPLY)
    np.testing.assert_array_equal(shown, SHOWN[orientation][:, :, 0])


@pytest.mark.parametrize("suffix", ["jpg", "webp"])
@pytest.mark.parametrize("orientation", [3, 6])
def test_other_formats(tmp_path: Path, suffix: str, orientation: int):
    path = save_turned(tmp_path / f"a.{suffix}", STORED, orientation)
    stored = read_image(path, "a", Exif.IGNORE)
    assert stored.shape == STORED.shape
    turned = stored[::-1, ::-1] if orientation == 3 else stored.transpose(1, 0, 2)[:, ::-1]
    np.testing.assert_array_equal(read_image(path, "a", Exif.APPLY), turned)
    with pytest.raises(BadSampleError, match="exif=apply"):
        read_image(path, "a")


@pytest.mark.parametrize("orientation", [0, 1, 9])
def test_images_that_are_not_turned(tmp_path: Path, orientation: int):
    path = save_turned(tmp_path / "a.png", STORED, orientation)
    for exif in Exif:
        np.testing.assert_array_equal(read_image(path, "a", exif), STORED)


# Every loader of photographs. In all of them the map is in the shown frame.

LABELS = (np.arange(22 * 16).reshape(22, 16) % 3 == 0).astype(np.int64)


def coco(root: Path, labels: np.ndarray) -> str:
    save_turned(root / "images" / "a.png", STORED, 6)
    shape = (labels.shape[0], labels.shape[1])
    made = content([{"id": 1, "name": "one"}], [(3, 1, [polygon(1, 1, 9, 9)])], shape)
    made["images"] = [image for image in made["images"] if image["id"] == 3]
    return f"coco:{write(root / 'mine.json', made)}"


def broden(root: Path, labels: np.ndarray) -> str:
    images = [BrodenImage("ade20k/a.png", cells={"object": [labels]})]
    write_broden(root, [("one", "object(1)")], images)
    save_turned(root / "images" / "ade20k" / "a.png", STORED, 6)
    return f"broden:{root}"


def ade20k(root: Path, labels: np.ndarray) -> str:
    write_ade(root, {"x/ADE_val_1": labels})
    write_table(root / "list.csv", ["id", "name"], [[1, "one"]])
    save(root / "images/ADE/validation/x/ADE_val_1_seg.png", ade_png(labels))
    save_turned(root / "images/ADE/validation/x/ADE_val_1.jpg", STORED, 6)
    return f"ade20k:{root},classes=list.csv"


def cityscapes(root: Path, labels: np.ndarray) -> str:
    write_cityscapes(root, {}, {"ulm/ulm_1": labels})
    save_turned(root / "leftImg8bit" / "val" / "ulm" / "ulm_1_leftImg8bit.png", STORED, 6)
    return f"cityscapes:{root}"


@pytest.mark.parametrize("make", [folder, coco, broden, ade20k, cityscapes])
def test_all_loaders_ask_and_obey(tmp_path: Path, make):
    spec = make(tmp_path / "data", LABELS)
    with pytest.raises(BadSampleError, match=r"EXIF orientation 6.*exif=apply"):
        DatasetSpec.parse(spec).open()[0]
    applied = DatasetSpec.parse(f"{spec},exif=apply").open()
    assert applied[0].image.shape == (22, 16, 3)
    assert applied[0].maps[0].shape == (22, 16)
    # What a model is shown has the frame of the table.
    np.testing.assert_array_equal(image_of(applied, 0), applied[0].image)
    with pytest.raises(BadSampleError, match=r"22 x 16 .* image is 16 x 22"):
        DatasetSpec.parse(f"{spec},exif=ignore").open()[0]
    with pytest.raises(ValueError, match="'apply' or 'ignore'; got 'yes'"):
        DatasetSpec.parse(f"{spec},exif=yes").open()


def test_from_python_and_in_builds(tmp_path: Path):
    spec = DatasetSpec.parse(folder(tmp_path / "data", LABELS))
    with pytest.raises(BadSampleError, match=r"exif=apply"):
        build_table(spec.open(), tmp_path / "t.zarr", spec=spec)
    spec = DatasetSpec.parse(f"{spec},exif=apply")
    table = build_table(spec.open(), tmp_path / "t.zarr", spec=spec, mask_shape=(22, 16))
    np.testing.assert_array_equal(table.mask("one")[0], LABELS == 1)


# Shapes.

sides = st.integers(1, 3000)


@examples(300)
@given(sides, sides, st.floats(0.001, 1), st.sampled_from([np.floor, np.ceil, np.rint]))
def test_maps_that_were_scaled_down_are_accepted(height: int, width: int, scale: float, rounded):
    small = tuple(max(1, int(rounded(side * scale))) for side in (height, width))
    if min(height, width) * scale >= 1:
        check_aspect((height, width), (small[0], small[1]), "map", "a")
        check_aspect((small[0], small[1]), (height, width), "map", "a")


@examples(200)
@given(sides, sides, st.sampled_from([1, 2]))
def test_maps_in_a_turned_frame_are_refused(height: int, width: int, part: int):
    if max(height, width) >= min(height, width) + part and min(height, width) >= 2 * part:
        turned = (width // part, height // part)
        if (height % part, width % part) == (0, 0):
            with pytest.raises(BadSampleError, match=r"turned, cropped or stretched"):
                check_aspect((height, width), turned, "map", "a")
