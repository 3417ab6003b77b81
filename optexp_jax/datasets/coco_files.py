"""Finding and reading the JSON files of COCO-style datasets."""

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.layout import listing, short
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError

_KINDS = ("instances", "stuff")
"""What the names of annotation files begin with, in front of the split."""


@dataclass(frozen=True, eq=False)
class CocoRegion:
    """An annotated region of an image."""

    id: Any
    concept: int
    segmentation: Any


@dataclass(frozen=True, eq=False)
class CocoImage:
    """An image and its regions."""

    name: str
    height: int
    width: int
    regions: list[CocoRegion] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class CocoAnnotations:
    """What one or more JSON files say."""

    concepts: tuple[ConceptInfo, ...]
    images: tuple[CocoImage, ...]


@dataclass(frozen=True)
class CocoFiles:
    """The annotation files of a dataset and the folder that it is in."""

    base: Path
    json_files: tuple[Path, ...]

    def image_folder(self, image: str, given: str | None) -> Path:
        """The folder of images: as given, or the usual one that holds this image."""
        if given is not None:
            folder = self.base / given
            if not folder.is_dir():
                raise LayoutError(f"COCO: there is no folder of images {folder}.")
            return folder
        stem = self.json_files[0].stem  # such as instances_val2017 or person_keypoints_val2017
        splits = (
            dict.fromkeys([stem.partition("_")[2], stem.rpartition("_")[2]]) if "_" in stem else ()
        )
        names = [name for split in splits for name in (split, f"images/{split}")]
        names += ["images", "."]
        places = [self.base / name for name in names]
        found = next((place for place in places if os.path.isfile(place / image)), None)
        if found is None:
            raise LayoutError(
                f"COCO: the image {image!r} is in none of {', '.join(map(str, places))}. Say where "
                "the images are with the option images=FOLDER."
            )
        return found


def find_files(
    root: Path,
    annotations: str | None,
    split: str | None,
    kinds: Sequence[str] = _KINDS,
) -> CocoFiles:
    """The annotation files, as given or as they are named usually: by kind, then the split."""
    if not root.exists():
        raise LayoutError(f"COCO: there is no folder or file {root}.")
    if root.is_file():
        folder = root.parent
        return CocoFiles(folder.parent if folder.name == "annotations" else folder, (root,))
    files = _usual(root, split, kinds) if annotations is None else _named(root, annotations)
    return CocoFiles(root, tuple(files))


def read_annotations(files: Sequence[Path]) -> CocoAnnotations:
    """The annotations of all files. Images are told apart by id, concepts by name."""
    vocabulary = ConceptList()
    images: dict[Any, CocoImage] = {}
    for path in files:
        content = load_json(path)
        _refuse_others(content, path)
        try:
            meaning = read_categories(content["categories"], vocabulary, path)
            for entry in content["images"]:
                _add_image(entry, images, path)
            for number, entry in enumerate(content["annotations"]):
                region = CocoRegion(
                    entry.get("id", f"number {number}"),
                    meaning[entry["category_id"]],
                    entry.get("segmentation"),
                )
                images[entry["image_id"]].regions.append(region)
        except (KeyError, TypeError, AttributeError) as error:
            raise LayoutError(
                f"COCO: {path} is not complete ({short(error)}). It must have images (id, "
                "file_name, height, width), categories (id, name) and annotations (image_id, "
                "category_id, segmentation) that refer to them."
            ) from error
    concepts = vocabulary.infos()
    if not concepts or not images:
        raise LayoutError(
            f"COCO: {listing([path.name for path in files])} hold no annotated images."
        )
    ordered = sorted(images.values(), key=lambda image: image.name)
    check_distinct([image.name for image in ordered])
    return CocoAnnotations(concepts, tuple(ordered))


def check_distinct(names: Sequence[str]) -> None:
    """Refuse two images of one name; the names are sorted."""
    for before, after in itertools.pairwise(names):
        if before == after:
            raise LayoutError(f"COCO: two images have the file name {after!r}.")


def read_categories(entries: Any, vocabulary: ConceptList, path: Path) -> dict[Any, int]:
    """The concept of each category id; new names are added to the vocabulary."""
    meaning: dict[Any, int] = {}
    for entry in entries:
        name, group = entry["name"], entry.get("supercategory")
        if not isinstance(name, str | int) or isinstance(name, bool) or not str(name).strip():
            raise LayoutError(f"COCO: category {entry['id']} of {path} is named {short(name)}.")
        if not isinstance(group, str | None):
            raise LayoutError(
                f"COCO: category {entry['id']} of {path} has the supercategory {short(group)}, "
                "which is not text."
            )
        if entry["id"] in meaning:
            raise LayoutError(f"COCO: {path} has two categories of the id {entry['id']}.")
        meaning[entry["id"]] = vocabulary.add(str(name), group or None)
    return meaning


def _refuse_others(content: Any, path: Path) -> None:
    """Name files of COCO's that hold something else than regions."""
    entries = content.get("annotations") if isinstance(content, dict) else None
    listed = entries if isinstance(entries, list) else []
    found = [entry for entry in listed if isinstance(entry, dict)]
    if not found or len(found) < len(listed):
        return
    if "segments_info" in found[0]:
        raise LayoutError(
            f"COCO: {path} holds panoptic annotations, whose regions are in PNG files. Open it as "
            f"the kind panoptic: panoptic:{path}"
        )
    if "caption" in found[0]:
        raise LayoutError(f"COCO: {path} holds captions, which do not say where anything is.")
    if not any(entry.get("segmentation") for entry in found):
        held = "boxes" if "bbox" in found[0] else "annotations"
        raise LayoutError(
            f"COCO: {path} holds {held} without a segmentation; only regions say where a concept "
            "is."
        )


def _add_image(entry: Any, images: dict[Any, CocoImage], path: Path) -> None:
    name, size = entry["file_name"], (entry["height"], entry["width"])
    if not isinstance(name, str) or not name:
        raise LayoutError(f"COCO: image {entry['id']} of {path} has the name {short(name)}.")
    if not all(type(side) is int for side in size):
        raise LayoutError(
            f"COCO: image {entry['id']} of {path} is {short(size)} pixels high and wide; these "
            "must be whole numbers."
        )
    image = CocoImage(name, *size)
    known = images.setdefault(entry["id"], image)
    if (known.name, known.height, known.width) != (image.name, image.height, image.width):
        raise LayoutError(
            f"COCO: image {entry['id']} is {known.name} ({known.height} x {known.width}) in one "
            f"place and {image.name} ({image.height} x {image.width}) in {path.name}: these are "
            "not the same images."
        )


def load_json(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise LayoutError(f"COCO: {path} is not JSON: {error}") from error
    except RecursionError as error:
        raise LayoutError(f"COCO: {path} is nested too deeply to be annotations.") from error


def _named(root: Path, annotations: str) -> list[Path]:
    files: list[Path] = []
    for name in filter(None, annotations.split("+")):
        places = [root / name, root / "annotations" / name]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise LayoutError(f"COCO: there is neither {places[0]} nor {places[1]}.")
        files.append(found)
    return files


def _usual(root: Path, split: str | None, kinds: Sequence[str]) -> list[Path]:
    folders = (root / "annotations", root)
    found = [
        path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.json"))
    ]
    if split is not None:
        wanted = [path for path in found if path.stem in {f"{kind}_{split}" for kind in kinds}]
    elif len(found) > 1:
        wanted = [path for path in found if path.stem.partition("_")[0] in kinds]
        if len({path.stem.partition("_")[2] for path in wanted}) > 1:
            wanted = []
    else:
        wanted = found
    if not wanted:
        has = listing([path.name for path in found]) or "no JSON file"
        raise LayoutError(
            f"COCO: cannot tell which annotations to read; {folders[0]} and {root} have {has}. "
            "Choose with the option annotations=FILE+FILE or split=NAME."
        )
    return wanted
