"""Annotations of labelme: a JSON file for each image, beside it or in a folder of their own."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.json_kinds import hint_at_kind
from optexp_jax.datasets.layout import check_names_inside, check_root, files_below, listing, short
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.outlines import Outline, OutlinedImage, OutlinedImages, Shape, to_points
from optexp_jax.datasets.protocol import LayoutError

_LOG = logging.getLogger(__name__)
_SHAPES: Mapping[str, Shape] = {
    "polygon": "polygon",
    "rectangle": "rectangle",
    "circle": "circle",
}
_POINTS: Mapping[Shape, int] = {"polygon": 3, "rectangle": 2, "circle": 2}
_LINES = ("line", "linestrip", "point", "points")
"""Shapes without an area."""


def open_labelme(root: Path, *, exif: str | None = None) -> OutlinedImages:
    """The images of all labelme files in `root` and its folders.

    Polygons, rectangles and circles are filled as labelme fills them. Lines and points have no area
    and are left out. `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    check_root(root, "labelme", "JSON files of labelme", lambda folder: bool(_json_files(folder)))
    vocabulary = ConceptList()
    strays: list[str] = []
    hint = ""
    entries: dict[str, OutlinedImage] = {}
    files: list[Path] = []
    for path in _json_files(root):
        content = _load(path)
        if not isinstance(content, dict) or "shapes" not in content or "imagePath" not in content:
            strays.append(path.name)
            hint = hint or hint_at_kind(content, "labelme").replace(" It", f" {path.name}", 1)
            continue
        entry = _entry(content, path, root, vocabulary)
        if entry.name in entries:
            raise LayoutError(f"labelme: two files annotate the image {entry.name!r}.")
        entries[entry.name] = entry
        files.append(path)
    if not entries or not vocabulary.infos():
        raise LayoutError(
            f"labelme: no JSON file in {root} has `shapes` with labels and an `imagePath`; there "
            f"are {listing(strays) or 'no others'}.{hint}"
        )
    if strays:
        _LOG.warning("%s: %d JSON files are not labelme's: %s", root, len(strays), listing(strays))
    ordered = tuple(entries[name] for name in sorted(entries))
    return OutlinedImages(
        f"labelme, {root.resolve().name}", root, root, tuple(files), vocabulary.infos(), ordered,
        exif=turned,
    )  # fmt: skip


def _entry(
    content: dict[str, Any], path: Path, root: Path, vocabulary: ConceptList
) -> OutlinedImage:
    named: Any = content["imagePath"]
    if not isinstance(named, str) or not named:
        raise LayoutError(f"labelme: {path} has the imagePath {short(named)}.")
    image = named.replace("\\", "/")  # Files are made on Windows too.
    check_names_inside([image], path.parent, root, f"labelme, {path.name}")
    # Normalised without following links: `inside` looks at those.
    parts: list[str] = []
    for part in (*path.parent.relative_to(root).parts, *Path(image).parts):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    height, width = content.get("imageHeight"), content.get("imageWidth")
    outlines: list[Outline] = []
    shapes: Any = content["shapes"]
    for number, shape in enumerate(shapes if isinstance(shapes, list) else [None]):
        try:
            outline = _outline(shape, vocabulary)
        except ValueError as error:
            raise LayoutError(f"labelme: {path}: shape {number} {error}") from error
        outlines += [] if outline is None else [outline]
    size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    return OutlinedImage("/".join(parts), tuple(outlines), size)


def _outline(shape: Any, vocabulary: ConceptList) -> Outline | None:
    if not isinstance(shape, dict):
        raise ValueError("is not an object with label and points.")
    label, kind = shape.get("label"), shape.get("shape_type") or "polygon"
    if not isinstance(label, str) or not label.strip():
        raise ValueError(f"has the label {short(label)}.")
    if kind in _LINES:
        return None
    if kind not in _SHAPES:
        raise ValueError(f"is a {short(kind)}; {', '.join(_SHAPES)} are read.")
    form = _SHAPES[kind]
    points = to_points(shape.get("points"))
    if len(points) < _POINTS[form] or (form != "polygon" and len(points) != 2):
        raise ValueError(f"is a {form} of {len(points)} points.")
    return Outline(vocabulary.add(label.strip(), None), form, points)


def _json_files(folder: Path) -> tuple[Path, ...]:
    return files_below(folder, [".json"])


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"labelme: {path} is not JSON: {error}") from error
