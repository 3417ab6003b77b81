"""Files of labelme, in the layouts in which it writes them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_cases import write
from helpers.dataset_fixtures import assert_explained, masks_of, picture, save
from helpers.turned_images import save_turned

from optexp_jax.datasets import BadSampleError, DatasetSpec, LayoutError
from optexp_jax.datasets.labelme import open_labelme

SHAPE = (20, 30)


def shape(label: str, points: list[list[float]], kind: str | None = "polygon") -> dict[str, Any]:
    return {"label": label, "points": points, "group_id": None, "shape_type": kind, "flags": {}}


def corners(top: float, left: float, bottom: float, right: float) -> list[list[float]]:
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def box(top: int, left: int, bottom: int, right: int) -> np.ndarray:
    """Both edges included, as labelme's `shape_to_mask` gives it."""
    mask = np.zeros(SHAPE, bool)
    mask[top : bottom + 1, left : right + 1] = True
    return mask


def file(shapes: list[Any], image: str, size: tuple[int, int] = SHAPE) -> dict[str, Any]:
    return {
        "version": "5.4.1",
        "flags": {},
        "shapes": shapes,
        "imagePath": image,
        "imageData": None,
        "imageHeight": size[0],
        "imageWidth": size[1],
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "mine"
    save(root / "a.png", picture(0, SHAPE))
    save(root / "photos" / "b.png", picture(1, SHAPE))
    disc = shape("sun", [[20, 10], [20, 13]], "circle")
    line = shape("wire", [[0, 0], [9, 9]], "line")
    write(root / "a.json", file([
        shape("boat", corners(2, 3, 9, 12)),
        shape("boat", [[15, 1], [20, 4]], "rectangle"),
        shape("sail", corners(5, 8, 15, 20), None),
        disc, line,
    ], "a.png"))  # fmt: skip
    far = corners(-1e9, 10, 1e9, 1e9)
    write(root / "labels" / "b.json", file([shape("sea", far)], "..\\photos\\b.png"))
    return root


def test_masks(root: Path, tmp_path: Path):
    dataset = DatasetSpec.parse(f"labelme:{root}").open()
    assert [c.name for c in dataset.concepts()] == ["boat", "sail", "sun", "sea"]
    assert [dataset[x].name for x in range(2)] == ["a.png", "photos/b.png"]
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    found = masks_of(dataset[0], 4, SHAPE)
    np.testing.assert_array_equal(found[0], box(2, 3, 9, 12) | box(1, 15, 4, 20))
    np.testing.assert_array_equal(found[1], box(5, 8, 15, 20))
    inner, outer = (np.hypot(x - 20, y - 10) <= radius for radius in (2.4, 3.6))
    assert (found[2] >= inner).all()
    assert (found[2] <= outer).all()
    assert not found[3].any()
    np.testing.assert_array_equal(masks_of(dataset[1], 4, SHAPE)[3], box(0, 10, 19, 29))
    bitmap = np.stack(
        [box(2, 3, 9, 12) | box(1, 15, 4, 20) | box(5, 8, 15, 20), np.zeros(SHAPE, bool)]
    )
    assert_explained(dataset, bitmap, "boat OR sail", tmp_path)


@pytest.mark.parametrize(("entry", "said"), [
    (shape("", corners(0, 0, 9, 9)), "shape 0 has the label ''"),
    (shape("x", [[0, 0], [1, 1]]), "shape 0 is a polygon of 2 points"),
    (shape("x", [[0, 0]], "rectangle"), "is a rectangle of 1 points"),
    (shape("x", [[0, 0], [1, 1]], "blob"), "is a 'blob'; polygon, rectangle, circle are read"),
    (shape("x", [[0, float("nan")], [1, 1], [2, 2]]), "beyond all images or no number"),
    (shape("x", [[0, "1"], [1, 1], [2, 2]]), "not a number"),  # pyright: ignore[reportArgumentType]
    (shape("x", [[0], [1, 1], [2, 2]]), r"not \[x, y\]"),
    ("nonsense", "is not an object with label and points"),
])  # fmt: skip
def test_shapes_that_are_refused(root: Path, entry: Any, said: str):
    write(root / "a.json", file([entry], "a.png"))
    with pytest.raises(LayoutError, match=rf"a\.json: .*{said}"):
        open_labelme(root)


def test_files_that_are_refused(root: Path, tmp_path: Path):
    good = [shape("boat", corners(2, 3, 9, 12))]
    for name in ("../../x.png", "/etc/x.png", "..\\..\\x.png", "a\0.png"):
        write(root / "a.json", file(good, name))
        with pytest.raises(LayoutError, match="must not lead out"):
            open_labelme(root)
    write(root / "a.json", file(good, "photos/b.png"))
    with pytest.raises(LayoutError, match=r"two files annotate the image 'photos/b\.png'"):
        open_labelme(root)
    write(root / "a.json", file(good, "a.png", (30, 20)))
    with pytest.raises(BadSampleError, match="was annotated as 30 x 20: it was turned or scaled"):
        open_labelme(root)[0]
    huge = [shape("sun", [[1e9, 1], [0, 0]], "circle")]
    write(root / "a.json", file(huge, "a.png"))
    with pytest.raises(BadSampleError, match="a circle that is far larger than its image"):
        open_labelme(root)[0]
    (root / "a.json").write_text("{")
    with pytest.raises(LayoutError, match=r"a\.json is not JSON"):
        open_labelme(root)
    write(tmp_path / "other" / "x.json", {"images": []})
    with pytest.raises(LayoutError, match=r"no JSON file in .*other has `shapes`.*x\.json"):
        open_labelme(tmp_path / "other")


def test_a_link_that_leads_out(root: Path, tmp_path: Path):
    save(tmp_path / "outside.png", picture(0, SHAPE))
    (root / "a.png").unlink()
    (root / "a.png").symlink_to(tmp_path / "outside.png")
    with pytest.raises(BadSampleError, match="out of the dataset's folder"):
        open_labelme(root)[0]


def test_turned_images(root: Path):
    save_turned(root / "a.png", picture(0, (SHAPE[1], SHAPE[0])), 6)
    with pytest.raises(BadSampleError, match="exif=apply"):
        open_labelme(root)[0]
    assert open_labelme(root, exif="apply")[0].image.shape == (*SHAPE, 3)
    with pytest.raises(BadSampleError, match="turned or scaled"):
        open_labelme(root, exif="ignore")[0]
