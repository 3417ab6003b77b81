"""COCO panoptic annotations: a JSON file of segments, and a PNG of segment ids for each image."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32

from optexp_jax.datasets.coco_files import (
    CocoFiles,
    check_distinct,
    find_files,
    load_json,
    read_categories,
)
from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.images import read_colours
from optexp_jax.datasets.json_kinds import hint_at_kind
from optexp_jax.datasets.labelled_images import AbstractLabelledImages
from optexp_jax.datasets.layout import check_names_inside, inside, short
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError
from optexp_jax.datasets.values import NONE

_NO_SEGMENT = 0
"""Of pixels: nobody has annotated them."""


@dataclass(frozen=True, eq=False)
class PanopticImage:
    """An image, its map of segments, and the concept of each segment."""

    name: str
    png: str
    concepts: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Panoptic(AbstractLabelledImages):
    """Images of which every pixel is in at most one segment of one category."""

    root: Path
    json_file: Path
    folder: Path
    masks: Path
    infos: tuple[ConceptInfo, ...]
    entries: tuple[PanopticImage, ...]
    names: tuple[str, ...]
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def files(self) -> tuple[Path, ...]:
        images = (self.folder / name for name in self.names)
        return (self.json_file, *images, *(self.masks / entry.png for entry in self.entries))

    def describe(self) -> str:
        return (
            f"COCO panoptic, {self.json_file.name}: {len(self)} images, {len(self.infos)} concepts"
        )

    def _image_path(self, index: int) -> Path:
        name = self.names[index]
        return inside(self.folder, name, self.root, name)

    def _label_path(self, index: int) -> Path:
        return inside(self.masks, self.entries[index].png, self.root, self.names[index])

    def _labels(self, index: int) -> Int32[np.ndarray, "height width"]:
        entry, path = self.entries[index], self._label_path(index)
        channels = read_colours(path, entry.name, self.exif).astype(np.int32)
        # The number of a segment, lowest byte first: red + 256 * green + 256**2 * blue.
        segments = channels[:, :, 0] | channels[:, :, 1] << 8 | channels[:, :, 2] << 16
        numbers, place = np.unique(segments, return_inverse=True)
        known = {_NO_SEGMENT: NONE, **entry.concepts}
        unknown = [number for number in numbers.tolist() if number not in known]
        if unknown:
            raise BadSampleError(
                entry.name,
                f"{path} holds the segment {unknown[0]}, which {self.json_file.name} does not list "
                f"for it ({len(unknown)} such segments).",
            )
        ids = np.array([known[number] for number in numbers.tolist()], np.int32)
        return ids[place.reshape(segments.shape)]


def open_panoptic(
    root: Path,
    *,
    annotations: str | None = None,
    images: str | None = None,
    masks: str | None = None,
    split: str | None = None,
    exif: str | None = None,
) -> Panoptic:
    """Panoptic annotations in `root`, a folder or a JSON file such as `panoptic_val2017.json`.

    `masks` is the folder of the PNG files; by default the one beside the JSON file, of its name.
    The other options are those of the kind `coco`.
    """
    turned = Exif.parse(exif)
    found = find_files(root, annotations, split, ("panoptic",))
    if len(found.json_files) != 1:
        raise LayoutError("COCO panoptic: give one annotation file, annotations=FILE.")
    (path,) = found.json_files
    vocabulary = ConceptList()
    entries = _read(path, vocabulary)
    folder = found.image_folder(entries[0].name, images)
    drawn = _mask_folder(found, path, masks, entries[0].png)
    check_names_inside((entry.name for entry in entries), folder, found.base, "COCO panoptic")
    check_names_inside((entry.png for entry in entries), drawn, found.base, "COCO panoptic")
    return Panoptic(
        found.base,
        path,
        folder,
        drawn,
        vocabulary.infos(),
        entries,
        tuple(entry.name for entry in entries),
        turned,
    )


def _read(path: Path, vocabulary: ConceptList) -> tuple[PanopticImage, ...]:
    content = load_json(path)
    try:
        meaning = read_categories(content["categories"], vocabulary, path)
        names = {entry["id"]: entry["file_name"] for entry in content["images"]}
        entries = [_image(entry, names, meaning, path) for entry in content["annotations"]]
    except (KeyError, TypeError, AttributeError) as error:
        hint = hint_at_kind(content, "panoptic")
        raise LayoutError(
            f"COCO panoptic: {path} is not complete ({short(error)}).{hint} It must have images "
            "(id, file_name), categories (id, name) and annotations (image_id, file_name, "
            "segments_info with id and category_id)."
        ) from error
    if not entries or not meaning:
        raise LayoutError(f"COCO panoptic: {path} holds no annotated images.")
    ordered = sorted(entries, key=lambda entry: entry.name)
    check_distinct([entry.name for entry in ordered])
    return tuple(ordered)


def _image(
    entry: Any, names: Mapping[Any, Any], meaning: Mapping[Any, int], path: Path
) -> PanopticImage:
    name, png = names[entry["image_id"]], entry["file_name"]
    if not (isinstance(name, str) and isinstance(png, str) and name and png):
        raise LayoutError(f"COCO panoptic: {path} names an image {short(name)}, {short(png)}.")
    segments = {one["id"]: meaning[one["category_id"]] for one in entry["segments_info"]}
    if not all(type(number) is int for number in segments):
        raise LayoutError(f"COCO panoptic: {path}, {name}: ids of segments are whole numbers.")
    return PanopticImage(name, png, segments)


def _mask_folder(found: CocoFiles, path: Path, given: str | None, png: str) -> Path:
    places = (
        [path.with_suffix(""), found.base / path.stem] if given is None else [found.base / given]
    )
    folder = next((place for place in places if os.path.isfile(place / png)), None)
    if folder is None:
        raise LayoutError(
            f"COCO panoptic: the segments {png!r} are in none of {', '.join(map(str, places))}. "
            "Unpack them there, or say where they are with the option masks=FOLDER."
        )
    return folder
