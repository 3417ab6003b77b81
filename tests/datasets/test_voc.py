"""Pascal VOC in the layout of `VOCdevkit`."""

from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import assert_explained, blocks, masks_of, picture, save, save_palette

from optexp_jax.datasets import BadSampleError, DatasetSpec, LayoutError, build_table
from optexp_jax.datasets.voc import open_voc, voc_colour

SHAPE = (14, 20)
LABELS = [blocks(k, SHAPE, [0, 7, 15, 255], n=12) for k in range(3)]
# Of the development kit's colour map.
PALETTE = {0: (0, 0, 0), 7: (128, 128, 128), 15: (192, 128, 128), 255: (224, 224, 192)}


def write_voc(root: Path, coloured: bool = False) -> Path:
    for x, labels in enumerate(LABELS):
        save(root / "JPEGImages" / f"2007_00{x}.jpg", picture(x, SHAPE))
        path = root / "SegmentationClass" / f"2007_00{x}.png"
        if coloured:
            save(path, np.array([[PALETTE[v] for v in row] for row in labels.tolist()], np.uint8))
        else:
            save_palette(path, labels)
    save(root / "JPEGImages" / "2009_001.jpg", picture(9, SHAPE))  # has no mask, as most of them
    lists = root / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("2007_002\n2007_000\n")
    (lists / "trainval.txt").write_text("".join(f"2007_00{x}\n" for x in range(3)))
    return root


@pytest.mark.parametrize("value", PALETTE)
def test_colours(value: int):
    assert voc_colour(value) == PALETTE[value]


@pytest.mark.parametrize("coloured", [False, True])
def test_as_distributed(tmp_path: Path, coloured: bool):
    root = write_voc(tmp_path / "VOCdevkit" / "VOC2012", coloured)
    dataset = DatasetSpec.parse(f"voc:{root}").open()
    assert len(dataset.concepts()) == 20
    assert [dataset[x].name for x in range(2)] == ["2007_000.jpg", "2007_002.jpg"]
    every = open_voc(root, split="trainval", background=True)
    assert every.concepts()[-1].name == "background"
    for x, labels in enumerate(LABELS):
        found = masks_of(every[x], 21, SHAPE)
        np.testing.assert_array_equal(found[[20, 6, 14]], [labels == v for v in (0, 7, 15)])
        assert not np.delete(found, [20, 6, 14], axis=0).any()
    bitmap = np.stack([(LABELS[x] == 7) | (LABELS[x] == 15) for x in (0, 2)])
    assert_explained(dataset, bitmap, "car OR person", tmp_path)


def test_what_is_refused(tmp_path: Path):
    root = write_voc(tmp_path / "VOCdevkit" / "VOC2012")
    with pytest.raises(LayoutError, match=r"expected JPEGImages/.*you meant .*VOC2012"):
        open_voc(tmp_path / "VOCdevkit")
    with pytest.raises(LayoutError, match=r"no split 'test' in .*which has trainval, val"):
        open_voc(root, split="test")
    lists = root / "ImageSets" / "Segmentation"
    (lists / "odd.txt").write_text("../../x\n")
    with pytest.raises(LayoutError, match="must not lead out"):
        open_voc(root, split="odd")
    (lists / "odd.txt").write_text("\n")
    with pytest.raises(LayoutError, match="lists no image"):
        open_voc(root, split="odd")
    save(root / "SegmentationClass" / "2007_000.png", np.full(SHAPE, 33, np.uint8))
    with pytest.raises(BadSampleError, match="values that the list of VOC's classes does not: 33"):
        build_table(open_voc(root), tmp_path / "t.zarr")
    (root / "SegmentationClass" / "2007_000.png").unlink()
    with pytest.raises(BadSampleError, match=r"2007_000\.png does not exist"):
        open_voc(root)[0]
