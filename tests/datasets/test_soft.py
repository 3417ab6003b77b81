"""Folders of soft masks."""

from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import assert_explained, masks_of, picture, save
from helpers.turned_images import save_turned

from optexp_jax.datasets import BadSampleError, DatasetSpec, LayoutError
from optexp_jax.datasets.soft import open_soft

SHAPE = (12, 18)
SCORES = np.random.default_rng(0).random((2, 3, 6, 9))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "soft"
    (root / "scores" / "sub").mkdir(parents=True)
    for x, (name, kind) in enumerate((("a", np.float16), ("sub/b", np.float64))):
        save(root / "images" / f"{name}.png", picture(x, SHAPE))
        np.save(root / "scores" / f"{name}.npy", SCORES[x].astype(kind))
    (root / "classes.txt").write_text("dog\ncat\nsky\n")
    return root


def test_thresholds(root: Path, tmp_path: Path):
    one = DatasetSpec.parse(f"soft:{root}").open()
    assert [concept.name for concept in one.concepts()] == ["dog", "cat", "sky"]
    np.testing.assert_array_equal(masks_of(one[1], 3, (6, 9)), SCORES[1] > 0.5)
    np.testing.assert_array_equal(masks_of(one[0], 3, (6, 9)), SCORES[0].astype(np.float16) > 0.5)
    two = DatasetSpec.parse(f"soft:{root},thresholds=0.75+0.25").open()
    assert [c.name for c in two.concepts()][:3] == ["dog>0.25", "dog>0.75", "cat>0.25"]
    stacked = [SCORES[1][k] > t for k in range(3) for t in (0.25, 0.75)]
    np.testing.assert_array_equal(masks_of(two[1], 6, (6, 9)), stacked)
    rounded = [SCORES[0].astype(np.float16), SCORES[1]]
    bitmap = np.stack([(score[0] > 0.25) & ~(score[0] > 0.75) for score in rounded])
    assert_explained(two, bitmap, "dog>0.25 AND NOT dog>0.75", tmp_path)


def test_what_is_refused(root: Path):
    with pytest.raises(ValueError, match="thresholds is a number, or several joined by"):
        open_soft(root, thresholds="high")
    (root / "classes.txt").write_text("1: dog\n2: cat\n")
    with pytest.raises(LayoutError, match="must name the concepts 0, 1, 2"):
        open_soft(root)
    (root / "classes.txt").write_text("dog\ncat\n")
    with pytest.raises(BadSampleError, match="3 soft masks and 2 names"):
        open_soft(root)[0]
    np.save(root / "scores" / "a.npy", SCORES[0][0])
    with pytest.raises(BadSampleError, match=r"soft masks are \[concept, height, width\]; it is"):
        open_soft(root)[0]
    np.save(root / "scores" / "a.npy", np.zeros((2, 9, 6)))
    with pytest.raises(BadSampleError, match="turned, cropped or stretched"):
        open_soft(root)[0]
    (root / "scores" / "a.npy").unlink()
    with pytest.raises(BadSampleError, match=r"a\.npy does not exist"):
        open_soft(root)[0]
    save(root / "images" / "a.jpg", picture(0, SHAPE))
    with pytest.raises(LayoutError, match="several images are called a"):
        open_soft(root)


def test_turned_images(root: Path):
    save_turned(root / "images" / "a.png", picture(0, (SHAPE[1], SHAPE[0])), 6)
    with pytest.raises(BadSampleError, match="exif=apply"):
        open_soft(root)[0]
    assert open_soft(root, exif="apply")[0].image.shape == (*SHAPE, 3)
