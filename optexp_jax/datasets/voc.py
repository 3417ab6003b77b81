"""Pascal VOC segmentation, as distributed: palette masks, or the same in colours."""

from pathlib import Path

from optexp_jax.datasets.colour_codes import ColourCodes
from optexp_jax.datasets.folder import Folder
from optexp_jax.datasets.folder_entries import FolderEntry, LabelFile
from optexp_jax.datasets.folder_layers import FolderLayer
from optexp_jax.datasets.layout import check_names_inside, check_root, listing, read_text
from optexp_jax.datasets.name_lists import Colour
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError
from optexp_jax.datasets.values import NONE, ValueCodes

_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
"""Of the values 1 to 20."""
_BACKGROUND, _VOID = 0, 255


def voc_colour(value: int) -> Colour:
    """The colour of a value in VOC's palette: its bits, dealt out to red, green and blue."""
    channels = [0, 0, 0]
    for bit in range(8):
        channels[bit % 3] |= (value >> bit & 1) << (7 - bit // 3)
    red, green, blue = channels
    return red, green, blue


def open_voc(
    root: Path,
    *,
    split: str = "val",
    labels: str = "SegmentationClass",
    background: bool = False,
    exif: str | None = None,
) -> Folder:
    """Pascal VOC in `root`, the folder `VOCdevkit/VOC2012` or that of another year.

    `split` is one of the lists in `ImageSets/Segmentation`. `labels` is the folder of masks, whose
    indices, grey values or colours are VOC's. With `background=true`, what is none of the 20
    classes is a concept too. `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    needed = ("JPEGImages", labels, "ImageSets/Segmentation")
    check_root(
        root,
        "Pascal VOC",
        ", ".join(f"{name}/" for name in needed),
        lambda folder: all((folder / name).is_dir() for name in needed),
    )
    lists = root / "ImageSets" / "Segmentation"
    path = lists / f"{split}.txt"
    if not path.is_file():
        found = sorted(each.stem for each in lists.glob("*.txt"))
        raise LayoutError(
            f"Pascal VOC: there is no split {split!r} in {lists}, which has "
            f"{listing(found) or 'none'}."
        )
    names = sorted(set(read_text(path, "Pascal VOC").split()))
    if not names:
        raise LayoutError(f"Pascal VOC: {path} lists no image.")
    images, masks = root / "JPEGImages", root / labels
    check_names_inside((f"{name}.jpg" for name in names), images, root, f"Pascal VOC, {path.name}")
    named = {value: value - 1 for value in range(1, len(_CLASSES) + 1)}
    named |= {_BACKGROUND: len(_CLASSES) if background else NONE, _VOID: NONE}
    layer = FolderLayer(
        masks,
        ValueCodes.of(named, "the list of VOC's classes"),
        ColourCodes.of(
            {voc_colour(value): concept for value, concept in named.items()},
            "the list of VOC's colours",
        ),
    )
    entries = [FolderEntry(f"{name}.jpg", [LabelFile(0, masks / f"{name}.png")]) for name in names]
    concepts = (*_CLASSES, "background") if background else _CLASSES
    return Folder(
        root, images, (layer,), (), tuple(map(ConceptInfo, concepts)), tuple(entries), turned
    )
