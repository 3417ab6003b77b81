"""A small dataset in the formats of plain folders: label maps, colours, arrays, lists of names.

All formats hold the same two images with two rectangles each, so that one test reads them all.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from helpers.dataset_fixtures import picture, save, save_palette, write_table

SHAPE = (16, 32)  # Parts of powers of two are exact.
# For each image the first and the second concept: top, left, bottom and right, all included.
BOXES = [((2, 3, 8, 12), (9, 8, 15, 31)), ((0, 0, 4, 31), (6, 16, 12, 24))]


def box_mask(box: tuple[int, int, int, int]) -> np.ndarray:
    top, left, bottom, right = box
    mask = np.zeros(SHAPE, bool)
    mask[top : bottom + 1, left : right + 1] = True
    return mask


MASKS = [np.stack([box_mask(box) for box in boxes]) for boxes in BOXES]
"""By image: [concept, height, width]."""


def labels_of(x: int, values: tuple[int, int] = (1, 2), none: int = 0) -> np.ndarray:
    first, second = MASKS[x]
    return np.where(first, values[0], np.where(second, values[1], none))


def corners(box: tuple[int, int, int, int]) -> list[list[int]]:
    top, left, bottom, right = box
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def images(folder: Path, pattern: str = "i{x}.png") -> None:
    for x in range(2):
        save(folder / pattern.format(x=x), picture(x, SHAPE))


def grey(folder: Path, values: tuple[int, int] = (1, 2), pattern: str = "i{x}.png") -> None:
    for x in range(2):
        save(folder / pattern.format(x=x), labels_of(x, values).astype(np.uint8))


def coloured(folder: Path, colours: list[list[int]], pattern: str = "i{x}.png") -> None:
    """The last colour is that of no concept."""
    palette = np.array([colours[2], *colours[:2]], np.uint8)
    for x in range(2):
        save(folder / pattern.format(x=x), palette[labels_of(x)])


CAMVID = [[64, 128, 64], [192, 0, 128], [0, 0, 0]]


def own_grey(root: Path) -> None:
    images(root / "images")
    grey(root / "labels")
    write_table(root / "labels.csv", ["value", "name"], [[1, "boat"], [2, "sea"]])


def own_palette(root: Path) -> None:
    images(root / "images")
    for x in range(2):
        save_palette(root / "masks" / f"i{x}.png", labels_of(x))
    (root / "class_names.txt").write_text("0: unlabeled\n1: boat\n2: sea\n")


def own_colours(root: Path) -> None:
    images(root / "images")
    coloured(root / "labels", CAMVID)
    rows = [[name, *shade] for name, shade in zip(("boat", "sea", "void"), CAMVID, strict=True)]
    write_table(root / "class_dict.csv", ["name", "r", "g", "b"], rows)


def own_arrays(root: Path) -> None:
    images(root / "images")
    (root / "labels").mkdir(parents=True)
    for x in range(2):
        np.save(root / "labels" / f"i{x}.npy", labels_of(x, (0, 1), 255).astype(np.uint8))
    (root / "classes.txt").write_text("boat\nsea\n")


def suffixes(root: Path) -> None:
    images(root / "images", "i{x}_leftImg8bit.png")
    images(root / "images", "i{x}_rightImg8bit.png")
    grey(root / "labels", pattern="i{x}_gt.png")
    write_table(root / "labels.csv", ["id", "name"], [[1, "boat"], [2, "sea"]])


def camvid(root: Path) -> None:
    images(root / "701_StillsRaw_full", "0001TP_00{x}.png")
    coloured(root / "LabeledApproved_full", CAMVID, "0001TP_00{x}_L.png")
    (root / "label_colors.txt").write_text("64 128 64\tAnimal\n192 0 128\tArchway\n0 0 0\tVoid\n")


def camvid_of_kaggle(root: Path) -> None:
    images(root / "train", "0001TP_00{x}.png")
    coloured(root / "train_labels", CAMVID, "0001TP_00{x}_L.png")
    rows = [["Animal", *CAMVID[0]], ["Archway", *CAMVID[1]], ["Void", *CAMVID[2]]]
    write_table(root / "class_dict.csv", ["name", "r", "g", "b"], rows)


def camvid_of_fastai(root: Path) -> None:
    images(root / "images", "0001TP_00{x}.png")
    for x in range(2):
        values = labels_of(x, (0, 1), 2).astype(np.uint8)
        save(root / "labels" / f"0001TP_00{x}_P.png", values)
    (root / "codes.txt").write_text("Animal\nArchway\nVoid\n")
    (root / "valid.txt").write_text("0001TP_000.png\n")


def cvat(root: Path) -> None:
    images(root / "JPEGImages")
    colours = [[250, 50, 83], [61, 61, 245], [0, 0, 0]]
    coloured(root / "SegmentationClass", colours)
    coloured(root / "SegmentationObject", [[128, 0, 0], [0, 128, 0], [0, 0, 0]])
    text = (
        "# label:color_rgb:parts:actions\nbackground:0,0,0::\nboat:250,50,83::\nsea:61,61,245::\n"
    )
    (root / "labelmap.txt").write_text(text)
    (root / "ImageSets" / "Segmentation").mkdir(parents=True)
    (root / "ImageSets" / "Segmentation" / "default.txt").write_text("i0\ni1\n")


def voc(root: Path, *, palette: bool) -> None:
    images(root / "JPEGImages", "2007_00{x}.jpg")
    images(root / "JPEGImages", "2010_00{x}.jpg")  # without masks
    if palette:
        for x in range(2):
            save_palette(root / "SegmentationClass" / f"2007_00{x}.png", labels_of(x, (4, 15)))
    else:  # boat and person
        colours = [[0, 0, 128], [192, 128, 128], [0, 0, 0]]
        coloured(root / "SegmentationClass", colours, "2007_00{x}.png")
    (root / "ImageSets" / "Segmentation").mkdir(parents=True)
    (root / "ImageSets" / "Segmentation" / "val.txt").write_text("2007_000\n2007_001\n")


def soft(root: Path) -> None:
    images(root / "images")
    (root / "scores").mkdir(parents=True)
    for x in range(2):
        np.save(root / "scores" / f"i{x}.npy", np.where(MASKS[x], 0.9, 0.2).astype(np.float16))
    (root / "classes.txt").write_text("boat\nsea\n")


def npz(root: Path) -> None:
    root.mkdir(parents=True)
    pictures = np.stack([picture(x, SHAPE) for x in range(2)])
    masks = np.stack(MASKS, axis=1)
    np.savez(root / "data.npz", images=pictures, masks=masks, names=["boat", "sea"])


def jpeg_maps(root: Path) -> None:
    own_grey(root)
    for path in (root / "labels").iterdir():
        with Image.open(path) as image:
            image.save(path.with_suffix(".jpg"))
        path.unlink()
