"""Images with regions drawn as outlines, filled as labelme fills them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64, UInt8
from PIL import Image, ImageDraw

from optexp_jax.datasets.images import read_image
from optexp_jax.datasets.layout import inside
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.polygons import clip_polygon
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.values import maps_of_masks

FARTHEST = 2.0**40
"""A coordinate up to here is clipped with an error far below a pixel."""
_MOST_POINTS = 2**20
Shape = Literal["polygon", "rectangle", "circle"]


@dataclass(frozen=True)
class Outline:
    """A region of a concept: corners of a polygon, two opposite corners of a rectangle, or the
    centre of a circle and a point on it."""

    concept: int
    shape: Shape
    points: tuple[tuple[float, float], ...]
    """x and y, from the left upper corner; of 1 if the dataset says so."""


@dataclass(frozen=True)
class OutlinedImage:
    """An image and its regions."""

    name: str
    """Relative to the dataset's folder."""
    outlines: tuple[Outline, ...]
    size: tuple[int, int] | None = None
    """Height and width for which the points were drawn; None if that is not known."""
    changed: bool = False
    """Whether the file is another than the one that was annotated."""


@dataclass(frozen=True, eq=False)
class OutlinedImages:
    """Images with outlines of concepts, which may overlap: then a sample has several maps."""

    kind: str
    root: Path
    folder: Path
    """What names of images are relative to."""
    tables: tuple[Path, ...]
    """The files with the annotations."""
    infos: tuple[ConceptInfo, ...]
    entries: tuple[OutlinedImage, ...]
    relative: bool = False
    """Whether points are given in parts of the width and height."""
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Sample:
        entry, image = self.entries[index], self.image(index)
        shape = (image.shape[0], image.shape[1])
        if entry.size is not None and entry.size != shape:
            raise BadSampleError(
                entry.name,
                f"it is {shape[0]} x {shape[1]} (height x width), but was annotated as "
                f"{entry.size[0]} x {entry.size[1]}: it was turned or scaled since.",
            )
        scale = (shape[1], shape[0]) if self.relative else (1, 1)
        masks: dict[int, Bool[np.ndarray, "height width"]] = {}
        for outline in entry.outlines:
            points = np.array(outline.points, np.float64) * scale
            if entry.changed and _reaches_out(outline.shape, points, *shape):
                raise BadSampleError(
                    entry.name,
                    f"its file was changed since it was annotated, and a region reaches beyond its "
                    f"{shape[0]} x {shape[1]} pixels (height x width): it was scaled or cropped.",
                )
            try:
                mask = fill_outline(outline.shape, points, *shape)
            except ValueError as error:
                raise BadSampleError(entry.name, f"a region {error}") from error
            masks[outline.concept] = masks.get(outline.concept, np.bool_(False)) | mask
        return Sample(entry.name, image, maps_of_masks(dict(sorted(masks.items()))))

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        name = self.entries[index].name
        return read_image(inside(self.folder, name, self.root, name), name, self.exif)

    def sample_names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)

    def files(self) -> tuple[Path, ...]:
        return (*self.tables, *(self.folder / entry.name for entry in self.entries))

    def describe(self) -> str:
        return f"{self.kind}: {len(self)} images, {len(self.infos)} concepts"


def to_points(values: Any) -> tuple[tuple[float, float], ...]:
    """Points out of a file, [[x, y], ...]; ValueErrors read as the end of "a region ..."."""
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) > _MOST_POINTS:
        raise ValueError("has points that are no list of [x, y].")
    points: list[tuple[float, float]] = []
    for value in values:
        if not isinstance(value, Sequence) or len(value) != 2 or isinstance(value, str):
            raise ValueError("has a point that is not [x, y].")
        x, y = value
        if type(x) not in (int, float) or type(y) not in (int, float):
            raise ValueError("has a coordinate that is not a number.")
        if not (-FARTHEST <= x <= FARTHEST and -FARTHEST <= y <= FARTHEST):  # nor if NaN
            raise ValueError("has a coordinate that is beyond all images or no number.")
        points.append((float(x), float(y)))
    return tuple(points)


def _reaches_out(
    shape: Shape, points: Float64[np.ndarray, "points 2"], height: int, width: int
) -> bool:
    """Whether a region is beyond its image by more than its edge."""
    if shape == "circle":
        return not ((points[0] >= -1) & (points[0] <= (width + 1, height + 1))).all()
    return not ((points >= -1) & (points <= (width + 1, height + 1))).all()


def fill_outline(
    shape: Shape, points: Float64[np.ndarray, "points 2"], height: int, width: int
) -> Bool[np.ndarray, "height width"]:
    """The pixels of a region, its edge included."""
    drawn = Image.new("1", (width, height))
    draw = ImageDraw.Draw(drawn)
    if shape == "polygon":
        corners = clip_polygon(points, height, width)
        if len(corners) >= 2:
            draw.polygon([(x, y) for x, y in corners.tolist()], fill=1, outline=1)
        return np.array(drawn, np.bool_)
    (x, y), (other_x, other_y) = points.tolist()
    if shape == "rectangle":
        left, right = np.clip(sorted([x, other_x]), -1, width).tolist()
        top, bottom = np.clip(sorted([y, other_y]), -1, height).tolist()
        if right >= 0 and bottom >= 0 and left < width and top < height:
            draw.rectangle((left, top, right, bottom), fill=1, outline=1)
        return np.array(drawn, np.bool_)
    radius = math.hypot(other_x - x, other_y - y)
    if max(abs(x), abs(y), radius) > 4 * (height + width):
        raise ValueError("has a circle that is far larger than its image, or far outside.")
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=1, outline=1)
    return np.array(drawn, np.bool_)
