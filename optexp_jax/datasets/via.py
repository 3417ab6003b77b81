"""Annotations of VGG Image Annotator (VIA): regions of many images in one JSON or CSV file."""

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.folder_tables import NOT_CONCEPTS
from optexp_jax.datasets.layout import check_names_inside, check_root, listing, short
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.outlines import (
    FARTHEST,
    Outline,
    OutlinedImage,
    OutlinedImages,
    Shape,
    to_points,
)
from optexp_jax.datasets.protocol import LayoutError
from optexp_jax.datasets.via_files import (
    ViaFile,
    ViaImage,
    ViaRegion,
    is_via,
    read_via,
    region_values,
)

_LOG = logging.getLogger(__name__)
_ELLIPSE_CORNERS = 720
"""Of a radius of 10,000 pixels, their sides are a tenth of a pixel from the ellipse."""
_AREAS = ("polygon", "rect", "circle", "ellipse")
_LINES = ("polyline", "line", "point")
"""Shapes without an area."""


@dataclass(frozen=True)
class _Region:
    """A region with an area: its form and points, and the values of each of its attributes."""

    image: str
    shape: Shape
    points: tuple[tuple[float, float], ...]
    values: Mapping[str, tuple[str, ...]]


def open_via(
    root: Path,
    *,
    annotations: str | None = None,
    images: str | None = None,
    attributes: str | None = None,
    unnamed: str | None = None,
    polylines: str | None = None,
    exif: str | None = None,
) -> OutlinedImages:
    """The images of a VIA project, or of annotations that were exported as JSON or CSV.

    `root` is the file, or the folder that it is in; `annotations` names it there, or several joined
    by `+`. `attributes` says which attributes of regions name concepts, if there are several in
    use; `unnamed` is the concept of regions that have none. Points and lines have no area and are
    left out, but closed polylines are polygons, and with `polylines=fill` all are. `images` is the
    folder of the images. `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    if polylines not in (None, "fill"):
        raise ValueError(f"The option polylines is 'fill', or left out; got {polylines!r}.")
    base, paths = _files(root, annotations)
    read = [read_via(path) for path in paths]
    found = [image for file in read for image in file.images]
    _check_distinct(image.name for image in found)
    if not found:
        raise LayoutError(f"VIA: {listing([path.name for path in paths])} holds no image.")
    folder = _image_folder(base, found, read, images)
    check_names_inside((image.name for image in found), folder, base, "VIA")
    regions = {
        image.name: _regions(image, filled=polylines == "fill") for image in found
    }  # fmt: skip
    every = [region for listed in regions.values() for region in listed]
    _warn_of_lines(found, every, paths)
    chosen = _chosen(every, attributes, unnamed)
    shared = _shared_values(every, chosen)
    vocabulary = ConceptList()
    entries = [
        OutlinedImage(
            image.name,
            tuple(
                outline
                for region in regions[image.name]
                for outline in _outlines(region, chosen, shared, unnamed, vocabulary)
            ),
            changed=_is_changed(folder / image.name, image.n_bytes),
        )
        for image in sorted(found, key=lambda image: image.name)
    ]
    if not vocabulary.infos():
        raise LayoutError(
            f"VIA: {listing([path.name for path in paths])} holds no region with an area, of "
            f"{', '.join(_AREAS)}."
        )
    kind = f"VIA, {base.resolve().name}"
    return OutlinedImages(
        kind, base, folder, paths, vocabulary.infos(), tuple(entries), exif=turned
    )


def _files(root: Path, annotations: str | None) -> tuple[Path, tuple[Path, ...]]:
    """The folder of the dataset, and the files with the annotations."""
    if root.is_file():
        return root.parent, (root,)
    wanted = "a JSON or CSV file of VIA"
    if annotations is None:
        check_root(root, "VIA", wanted, lambda folder: bool(_candidates(folder)))
        found = _candidates(root)
        if len(found) > 1:
            raise LayoutError(
                f"VIA: {root} has several files of VIA, {listing([path.name for path in found])}; "
                "choose with the option annotations=FILE, or FILE+FILE for several parts."
            )
        return root, tuple(found)
    check_root(root, "VIA", wanted, lambda _: True)
    named = [root / name for name in annotations.split("+") if name]
    return root, tuple(dict.fromkeys(named))


def _candidates(folder: Path) -> list[Path]:
    try:
        listed = sorted(folder.iterdir())
    except OSError:  # It may not be read; others near by are looked at for a hint.
        return []
    files = [path for path in listed if path.suffix.lower() in (".json", ".csv")]
    return [path for path in files if path.is_file() and is_via(path)]


def _image_folder(
    base: Path, found: Sequence[ViaImage], read: Sequence[ViaFile], given: str | None
) -> Path:
    name = found[0].name
    told = [base / file.folder for file in read if file.folder and not os.path.isabs(file.folder)]
    usual = [base, base / "images", *told]
    places = usual if given is None else [base / given]
    folder = next((place for place in places if os.path.isfile(place / name)), None)
    if folder is None:
        raise LayoutError(
            f"VIA: the image {name!r} is in none of {', '.join(map(str, places))}. Say where the "
            "images are with the option images=FOLDER."
        )
    return folder


def _check_distinct(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LayoutError(
                f"VIA: two entries annotate the image {name!r}. VIA keeps files of one name apart "
                "by their size, which does not tell which of them is meant."
            )
        seen.add(name)


def _regions(image: ViaImage, *, filled: bool) -> tuple[_Region, ...]:
    regions: list[_Region] = []
    for number, region in enumerate(image.regions):
        try:
            drawn = _draw(region, filled=filled)
            if drawn is None:
                continue
            values = {
                str(name): tuple(region_values(value)) for name, value in region.attributes.items()
            }
        except ValueError as error:
            raise LayoutError(f"VIA: {image.name}: region {number} {error}") from error
        regions.append(_Region(image.name, drawn.shape, drawn.points, values))
    return tuple(regions)


def _draw(region: ViaRegion, *, filled: bool) -> Outline | None:
    """The outline, of no concept yet; None if it has no area."""
    shape, kind = region.shape, region.shape.get("name")
    if kind in ("polygon", "polyline"):
        xs, ys = shape.get("all_points_x"), shape.get("all_points_y")
        if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
            raise ValueError("must have all_points_x and all_points_y, of one length.")
        points = to_points(list(zip(xs, ys, strict=True)))
        closed = len(points) > 3 and points[0] == points[-1]
        if kind == "polyline" and not (filled or closed):
            return None
        if len(points) < 3:
            raise ValueError(f"is a {kind} of {len(points)} points.")
        return Outline(-1, "polygon", points)
    if kind == "rect":
        x, y, width, height = _numbers(shape, "x", "y", "width", "height")
        return Outline(-1, "rectangle", to_points([(x, y), (x + width, y + height)]))
    if kind == "circle":
        x, y, radius = _numbers(shape, "cx", "cy", "r")
        return Outline(-1, "circle", to_points([(x, y), (x + radius, y)]))
    if kind == "ellipse":
        return Outline(-1, "polygon", _ellipse(shape))
    if kind in _LINES:
        return None
    raise ValueError(f"is a {short(kind)}; {', '.join(_AREAS)} are read.")


def _ellipse(shape: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    x, y, wide, high = _numbers(shape, "cx", "cy", "rx", "ry")
    (turn,) = _numbers({"theta": 0, **shape}, "theta")  # Older releases do not turn them.
    cos, sin = math.cos(turn), math.sin(turn)
    angles = (2 * math.pi * step / _ELLIPSE_CORNERS for step in range(_ELLIPSE_CORNERS))
    around = [(wide * math.cos(angle), high * math.sin(angle)) for angle in angles]
    # At whole pixels: Pillow cuts off what is behind the point, to the left and upwards.
    corners = [(x + cos * u - sin * v, y + sin * u + cos * v) for u, v in around]
    return to_points([(float(round(u)), float(round(v))) for u, v in corners])


def _numbers(shape: Mapping[str, Any], *names: str) -> list[float]:
    values: list[Any] = [shape.get(name) for name in names]
    if not all(type(value) in (int, float) for value in values):
        raise ValueError(f"must have the numbers {', '.join(names)}; got {short(dict(shape))}.")
    if not all(-FARTHEST <= value <= FARTHEST for value in values):  # nor if NaN
        raise ValueError(f"has {', '.join(names)} that are beyond all images or no numbers.")
    return [float(value) for value in values]


def _chosen(regions: Sequence[_Region], given: str | None, unnamed: str | None) -> tuple[str, ...]:
    """The attributes that name concepts: as given, or the only one that is in use."""
    used: dict[str, dict[str, None]] = {}
    for region in regions:
        for attribute, values in region.values.items():
            if values:
                used.setdefault(attribute, {}).update(dict.fromkeys(values))
    shown = "; ".join(f"{name}: {listing(list(values))}" for name, values in used.items())
    if given is not None:
        chosen = tuple(dict.fromkeys(name for name in given.split("+") if name))
        unknown = [name for name in chosen if name not in used]
        if unknown or not chosen:
            raise LayoutError(
                f"VIA: no region has a value of the attribute {unknown[0] if unknown else given!r}."
                f" Attributes with their values: {shown or 'none'}."
            )
        return chosen
    if len(used) > 1:
        raise LayoutError(
            "VIA: regions have several attributes. Say which of them name concepts with the option "
            f"attributes=NAME, or NAME+NAME. Attributes with their values: {shown}."
        )
    if regions and not used and unnamed is None:
        raise LayoutError(
            "VIA: no region says what it is: all attributes are empty. Name the concept that was "
            "drawn with the option unnamed=NAME."
        )
    return tuple(used)


def _shared_values(regions: Sequence[_Region], chosen: Sequence[str]) -> frozenset[str]:
    """Values that several attributes have: `yes` of two of them is not one concept."""
    of = {name: {v for region in regions for v in region.values.get(name, ())} for name in chosen}
    return frozenset(
        value
        for name, values in of.items()
        for value in values
        if any(value in others for other, others in of.items() if other != name)
    )


def _outlines(
    region: _Region,
    chosen: Sequence[str],
    shared: frozenset[str],
    unnamed: str | None,
    vocabulary: ConceptList,
) -> list[Outline]:
    """The region once for each of its concepts."""
    concepts = {
        f"{attribute} {value}" if value in shared else value: attribute
        for attribute in chosen
        for value in region.values.get(attribute, ())
    }
    if not concepts:
        if unnamed is None:
            raise LayoutError(
                f"VIA: a region of {region.image} has no value of {', '.join(chosen)}. Name the "
                "concept of such regions with the option unnamed=NAME; unnamed=void leaves them "
                "out."
            )
        concepts = {unnamed: None}
    return [
        Outline(
            vocabulary.add(name, attribute if len(chosen) > 1 else None),
            region.shape,
            region.points,
        )
        for name, attribute in concepts.items()
        if name.lower() not in NOT_CONCEPTS
    ]


def _warn_of_lines(
    images: Sequence[ViaImage], regions: Sequence[_Region], paths: Sequence[Path]
) -> None:
    left = sum(len(image.regions) for image in images) - len(regions)
    if left:
        _LOG.warning(
            "%s: %d regions are points or open lines, which have no area; they are left out. With "
            "the option polylines=fill, lines are closed and filled.",
            listing([path.name for path in paths]), left,
        )  # fmt: skip


def _is_changed(path: Path, n_bytes: int | None) -> bool:
    try:
        return n_bytes is not None and os.stat(path).st_size != n_bytes
    except OSError:  # That it is missing is told when it is read.
        return False
