"""The canvas: an image and the layers of concepts that are painted together with it."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int32

from optexp_jax.datasets.shapes.outlines import Outline
from optexp_jax.datasets.shapes.paint import Paint
from optexp_jax.datasets.shapes.vocabulary import CONCEPT_IDS

NONE = -1
SHADOW_LIGHT = 0.55
"""What a shadow leaves of the light."""
COVERED_SHARE = 0.05
"""A thing is occluded if other things cover more than this share of it."""


@dataclass(frozen=True)
class ThingPart:
    """A piece of a thing; later parts lie over earlier ones."""

    name: str | None
    outline: Outline
    paint: Paint


@dataclass(frozen=True)
class Thing:
    """A figure in the scene. Places and lengths are in shorter sides of the image."""

    kind: str
    parts: tuple[ThingPart, ...]
    x: float
    y: float
    radius: float
    angle: float
    """Radians, clockwise."""
    size: str
    tilted: bool


class Canvas:
    """Things painted one over another, with what each pixel shows."""

    def __init__(self, height: int, width: int):
        shape = height, width
        self.unit = min(shape)
        """Pixels of a shorter side."""
        self.image = np.zeros((*shape, 3), np.float32)
        self.kinds = np.full(shape, NONE, np.int32)
        """The thing or material."""
        self.parts = np.full(shape, NONE, np.int32)
        self.colours = np.full(shape, NONE, np.int32)
        self.textures = np.full(shape, NONE, np.int32)
        self.sizes = np.full(shape, NONE, np.int32)
        self.tilts = np.full(shape, NONE, np.int32)
        self.shadows = np.full(shape, NONE, np.int32)
        self._instances = np.full(shape, NONE, np.int32)
        self._painted: list[int] = []  # pixels of each thing when it was painted

    @property
    def shape(self) -> tuple[int, int]:
        return self.kinds.shape[0], self.kinds.shape[1]

    def grid(
        self, rows: slice, columns: slice
    ) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
        """x and y of pixel centres, in shorter sides."""
        y = (np.arange(rows.start, rows.stop, dtype=np.float32) + 0.5) / self.unit
        x = (np.arange(columns.start, columns.stop, dtype=np.float32) + 0.5) / self.unit
        across, down = np.meshgrid(x, y)
        return across, down

    def cover(
        self,
        material: str,
        where: Bool[np.ndarray, "h w"],
        paint: Paint,
        light: Float32[np.ndarray, "h w"],
    ) -> None:
        """Paint a part of the background, brighter or darker by `light`."""
        rgb, colours = paint.lay(*self.grid(*(slice(0, side) for side in self.shape)))
        np.copyto(self.image, rgb * light[..., None], where=where[..., None])
        self.kinds[where] = CONCEPT_IDS[material]
        self.textures[where] = CONCEPT_IDS[paint.texture]
        np.copyto(self.colours, colours, where=where)

    def paint(self, thing: Thing, shadow: tuple[float, float]) -> None:
        """Paint a thing and, first, its shadow, which falls by `shadow` radii."""
        reach = 1.45 * thing.radius  # the square from -1 to 1 in any direction
        rows, columns = (
            _pixels(centre - reach, centre + reach, side, self.unit)
            for centre, side in zip((thing.y, thing.x), self.shape, strict=True)
        )
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return
        x, y = self.grid(rows, columns)
        x, y = x - np.float32(thing.x), y - np.float32(thing.y)
        cos, sin = np.float32(math.cos(thing.angle)), np.float32(math.sin(thing.angle))
        turned_x, turned_y = cos * x + sin * y, cos * y - sin * x
        u, v = (axis / np.float32(thing.radius) for axis in (turned_x, turned_y))

        owner = np.full(u.shape, NONE, np.int32)  # which part shows
        for place, part in enumerate(thing.parts):
            owner[part.outline(u, v)] = place
        mask = owner != NONE
        here = rows, columns
        self._cast_shadow(
            here, mask, [round(axis * thing.radius * self.unit) for axis in reversed(shadow)]
        )

        light = _relief(x / np.float32(thing.radius), y / np.float32(thing.radius))
        for place, part in enumerate(thing.parts):
            shown = owner == place
            rgb, colours = part.paint.lay(turned_x, turned_y)
            np.copyto(self.image[here], rgb * light, where=shown[..., None])
            np.copyto(self.colours[here], colours, where=shown)
            self.textures[here][shown] = CONCEPT_IDS[part.paint.texture]
            self.parts[here][shown] = NONE if part.name is None else CONCEPT_IDS[part.name]
        self.kinds[here][mask] = CONCEPT_IDS[thing.kind]
        self.sizes[here][mask] = CONCEPT_IDS[thing.size]
        self.tilts[here][mask] = CONCEPT_IDS["tilted"] if thing.tilted else NONE
        self.shadows[here][mask] = NONE
        self._instances[here][mask] = len(self._painted)
        self._painted.append(int(np.count_nonzero(mask)))

    def occluded(self) -> Int32[np.ndarray, "h w"]:
        """What shows of the things that others cover in part."""
        painted = np.array([*self._painted, 0])  # the last stands for the background, -1
        visible = np.bincount(self._instances.reshape(-1) + 1, minlength=len(painted))
        visible = np.roll(visible, -1)
        covered = visible < (1 - COVERED_SHARE) * painted
        return np.where(covered[self._instances], CONCEPT_IDS["occluded"], NONE).astype(np.int32)

    def maps(self) -> tuple[Int32[np.ndarray, "h w"], ...]:
        """All layers of concepts."""
        return (
            self.kinds,
            self.parts,
            self.colours,
            self.textures,
            self.sizes,
            self.tilts,
            self.shadows,
            self.occluded(),
        )

    def _cast_shadow(
        self, here: tuple[slice, slice], mask: Bool[np.ndarray, "h w"], by: list[int]
    ) -> None:
        moved = np.zeros_like(mask)
        targets = [slice(max(step, 0), min(step, 0) or None) for step in by]
        sources = [slice(max(-step, 0), min(-step, 0) or None) for step in by]
        moved[tuple(targets)] = mask[tuple(sources)]
        moved &= ~mask
        self.image[here][moved] *= np.float32(SHADOW_LIGHT)
        self.shadows[here][moved] = CONCEPT_IDS["shadow"]


def _pixels(low: float, high: float, side: int, unit: int) -> slice:
    """The pixels that lie between two places."""
    return slice(max(0, math.floor(low * unit)), min(side, math.ceil(high * unit)))


def _relief(
    x: Float32[np.ndarray, "h w"], y: Float32[np.ndarray, "h w"]
) -> Float32[np.ndarray, "h w 1"]:
    """Light from above on the left, which falls off towards the edges of a thing."""
    light = 1.06 - np.float32(0.1) * (x + y) - np.float32(0.09) * (x**2 + y**2)
    return np.clip(light, 0.6, 1.25)[..., None]
