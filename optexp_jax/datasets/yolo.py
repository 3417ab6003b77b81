"""YOLO segmentation: a text file of polygons for each image, in parts of its width and height."""

from pathlib import Path
from typing import Any

import yaml

from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.images import IMAGE_SUFFIXES
from optexp_jax.datasets.layout import check_root, files_below, read_text, short
from optexp_jax.datasets.name_lists import LISTS, read_name_list
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.outlines import Outline, OutlinedImage, OutlinedImages, to_points
from optexp_jax.datasets.protocol import LayoutError

_YAML = ("data.yaml", "dataset.yaml", "data.yml")
_BOX = 4
"""Numbers of a box: its centre, width and height."""
_BEYOND = 0.25
"""How far a region may reach out of its image, in parts of it; those in pixels are far beyond."""


def open_yolo(
    root: Path, *, split: str | None = None, names: str | None = None, exif: str | None = None
) -> OutlinedImages:
    """The images and polygons of one split in `root`: `images/SPLIT` and `labels/SPLIT`,
    `SPLIT/images` and `SPLIT/labels`, or, without splits, `images` and `labels`.

    `names` is `data.yaml` or a list of names; an image without a file of labels has no concepts.
    `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    wanted = "images/ and labels/" if split is None else f"images/{split}/ and labels/{split}/"
    check_root(root, "YOLO", wanted, lambda folder: _folders(folder, split) is not None)
    folders = _folders(root, split)
    assert folders is not None
    images, labels = folders
    table = _table(root, names)
    vocabulary = ConceptList()
    concepts = {index: vocabulary.add(name, None) for index, name in _names(table).items()}
    found = files_below(images, IMAGE_SUFFIXES)
    if not found:
        raise LayoutError(f"YOLO: there are no images in {images}.")
    entries: list[OutlinedImage] = []
    files = [table]
    for path in found:
        listed = (labels / path.relative_to(images)).with_suffix(".txt")
        outlines: tuple[Outline, ...] = ()
        if listed.is_file():
            files.append(listed)
            outlines = _read(listed, concepts, table)
        entries.append(OutlinedImage(path.relative_to(root).as_posix(), outlines))
    if len(files) == 1:
        raise LayoutError(f"YOLO: no file in {labels} has the name of an image, with .txt.")
    kind = f"YOLO, {root.resolve().name}"
    return OutlinedImages(
        kind, root, root, tuple(files), vocabulary.infos(), tuple(entries), True, turned
    )


def _folders(root: Path, split: str | None) -> tuple[Path, Path] | None:
    ways = [("images", "labels")]
    if split is not None:
        ways = [(f"images/{split}", f"labels/{split}"), (f"{split}/images", f"{split}/labels")]
    for images, labels in ways:
        if (root / images).is_dir() and (root / labels).is_dir():
            return root / images, root / labels
    return None


def _table(root: Path, given: str | None) -> Path:
    if given is not None:
        return root / given
    found = next((root / f for f in (*_YAML, *LISTS) if (root / f).is_file()), None)
    if found is None:
        raise LayoutError(
            f"YOLO: {root} has neither data.yaml nor a list of names such as classes.txt; say "
            "which file it is with the option names=FILE."
        )
    return found


def _names(path: Path) -> dict[int, str]:
    if path.suffix.lower() not in (".yaml", ".yml"):
        return {row.value: row.name for row in read_name_list(path) if row.value is not None}
    try:
        content: Any = yaml.safe_load(read_text(path, "YOLO"))
    except (yaml.YAMLError, RecursionError) as error:
        told = " ".join(str(error).split())  # of several lines
        raise LayoutError(f"YOLO: {path} is not YAML: {told}") from error
    names: Any = content.get("names") if isinstance(content, dict) else None
    named = dict(enumerate(names)) if isinstance(names, list) else names
    if not isinstance(named, dict) or not all(
        type(index) is int and isinstance(name, str) and name for index, name in named.items()
    ):
        raise LayoutError(f"YOLO: {path} must have `names`, a list or 0: name; got {short(names)}.")
    return named


def _read(path: Path, concepts: dict[int, int], table: Path) -> tuple[Outline, ...]:
    outlines: list[Outline] = []
    for number, line in enumerate(read_text(path, "YOLO").splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        try:
            kind, values = int(words[0]), [float(word) for word in words[1:]]
            if len(values) == _BOX:
                raise ValueError("is a box; only polygons say where a concept is.")
            if len(values) < 6 or len(values) % 2:
                raise ValueError(f"has {len(values)} numbers; a polygon has x y, three or more.")
            if kind not in concepts:
                raise ValueError(f"has the class {kind}, which {table.name} does not name.")
            if not all(-_BEYOND <= value <= 1 + _BEYOND for value in values):
                raise ValueError(
                    "has a coordinate that is far from 0 to 1. Points are parts of the image's "
                    "width and height: divide pixels by them."
                )
            points = to_points(list(zip(values[::2], values[1::2], strict=True)))
        except ValueError as error:
            raise LayoutError(f"YOLO: {path}, line {number} {error}") from error
        outlines.append(Outline(concepts[kind], "polygon", points))
    return tuple(outlines)
