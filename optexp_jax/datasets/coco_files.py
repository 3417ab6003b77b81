"""Finding and reading the JSON files of COCO-style datasets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optexp_jax.datasets.layout import listing
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError

_KINDS = ("instances", "stuff")


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
        split = self.json_files[0].stem.partition("_")[2]
        names = [split, f"images/{split}", "images", "."] if split else ["images", "."]
        places = [self.base / name for name in names]
        found = next((place for place in places if (place / image).is_file()), None)
        if found is None:
            raise LayoutError(
                f"COCO: the image {image!r} is in none of {', '.join(map(str, places))}. Say where "
                "the images are with the option images=FOLDER."
            )
        return found


def find_files(root: Path, annotations: str | None, split: str | None) -> CocoFiles:
    """The annotation files, as given or as they are named usually."""
    if not root.exists():
        raise LayoutError(f"COCO: there is no folder or file {root}.")
    if root.is_file():
        folder = root.parent
        return CocoFiles(folder.parent if folder.name == "annotations" else folder, (root,))
    files = _usual(root, split) if annotations is None else _named(root, annotations)
    return CocoFiles(root, tuple(files))


def read_annotations(files: Sequence[Path]) -> CocoAnnotations:
    """The annotations of all files. Images are told apart by id, concepts by name."""
    ids: dict[str, int] = {}
    concepts: list[ConceptInfo] = []
    images: dict[Any, CocoImage] = {}
    for path in files:
        content = _load(path)
        try:
            meaning: dict[Any, int] = {}
            for category in content["categories"]:
                name = str(category["name"])
                if name not in ids:
                    ids[name] = len(concepts)
                    concepts.append(ConceptInfo(name, category.get("supercategory") or None))
                meaning[category["id"]] = ids[name]
            for entry in content["images"]:
                image = CocoImage(entry["file_name"], int(entry["height"]), int(entry["width"]))
                known = images.setdefault(entry["id"], image)
                if known.name != image.name:
                    raise LayoutError(
                        f"COCO: image {entry['id']} is {known.name} in one file and {image.name} "
                        f"in {path.name}: the files are not about the same images."
                    )
            for number, entry in enumerate(content["annotations"]):
                region = CocoRegion(
                    entry.get("id", f"number {number}"),
                    meaning[entry["category_id"]],
                    entry.get("segmentation"),
                )
                images[entry["image_id"]].regions.append(region)
        except (KeyError, TypeError, AttributeError) as error:
            raise LayoutError(
                f"COCO: {path} is not complete ({error!r}). It must have images (id, file_name, "
                "height, width), categories (id, name) and annotations (image_id, category_id, "
                "segmentation) that refer to them."
            ) from error
    if not concepts or not images:
        raise LayoutError(
            f"COCO: {listing([path.name for path in files])} hold no annotated images."
        )
    return CocoAnnotations(
        tuple(concepts), tuple(sorted(images.values(), key=lambda image: image.name))
    )


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise LayoutError(f"COCO: {path} is not JSON: {error}") from error


def _named(root: Path, annotations: str) -> list[Path]:
    files: list[Path] = []
    for name in filter(None, annotations.split("+")):
        places = [root / name, root / "annotations" / name]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise LayoutError(f"COCO: there is neither {places[0]} nor {places[1]}.")
        files.append(found)
    return files


def _usual(root: Path, split: str | None) -> list[Path]:
    folders = (root / "annotations", root)
    found = [
        path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.json"))
    ]
    if split is not None:
        wanted = [path for path in found if path.stem in {f"{kind}_{split}" for kind in _KINDS}]
    elif len(found) > 1:
        wanted = [path for path in found if path.stem.partition("_")[0] in _KINDS]
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
