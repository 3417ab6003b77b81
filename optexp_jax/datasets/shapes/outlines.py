"""Outlines: where a figure lies, in coordinates of its own.

A figure fills the square from -1 to 1; `u` grows to the right and `v` downwards.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float32

Coordinates = Float32[np.ndarray, "h w"]
Mask = Bool[np.ndarray, "h w"]
Length = float | int
Outline = Callable[[Coordinates, Coordinates], Mask]


def disc(centre_u: Length, centre_v: Length, across: Length, down: Length | None = None) -> Outline:
    """An ellipse with these half axes; a circle with one."""
    high = across if down is None else down

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        return ((u - centre_u) / across) ** 2 + ((v - centre_v) / high) ** 2 <= 1

    return inside


def box(left: Length, top: Length, right: Length, bottom: Length) -> Outline:
    """An upright rectangle."""

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        return (u >= left) & (u <= right) & (v >= top) & (v <= bottom)

    return inside


def polygon(*corners: tuple[Length, Length]) -> Outline:
    """A convex polygon, its corners clockwise as seen on the screen."""
    edges = list(zip(corners, (*corners[1:], corners[0]), strict=True))

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        within = np.ones(u.shape, bool)
        for (u0, v0), (u1, v1) in edges:
            within &= (u1 - u0) * (v - v0) - (v1 - v0) * (u - u0) >= 0
        return within

    return inside


def union(*parts: Outline) -> Outline:
    """Where any of the outlines is."""

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        return np.logical_or.reduce([part(u, v) for part in parts])

    return inside


def without(whole: Outline, hole: Outline) -> Outline:
    """The first outline without the second."""

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        return whole(u, v) & ~hole(u, v)

    return inside


def scaled(outline: Outline, factor: Length) -> Outline:
    """The same figure, smaller or larger."""

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        return outline(u / factor, v / factor)

    return inside


def petals(count: int, inner: Length, centre_v: Length = 0.0, radius: Length = 1.0) -> Outline:
    """A rosette whose edge swings between `inner` and 1, times `radius`."""

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        down = v - centre_v
        swing = (1 + np.cos(count * np.arctan2(u, -down))) / 2
        return np.hypot(u, down) <= radius * (inner + (1 - inner) * swing)

    return inside


def star(points: int, inner: Length) -> Outline:
    """A star with straight edges, a point up."""
    sector = 2 * math.pi / points
    # The edge from a tip (radius 1, angle 0) to a notch (radius `inner`, half a sector on).
    notch_u, notch_v = inner * math.sin(sector / 2), inner * math.cos(sector / 2)

    def inside(u: Coordinates, v: Coordinates) -> Mask:
        angle = np.arctan2(u, -v)
        folded = np.abs((angle + sector / 2) % sector - sector / 2)
        radius = np.hypot(u, v)
        side, up = radius * np.sin(folded), radius * np.cos(folded)
        return notch_u * (up - 1) - (notch_v - 1) * side <= 0

    return inside


def _heart(u: Coordinates, v: Coordinates) -> Mask:
    x, y = 1.2 * u, 0.15 - 1.15 * v
    return (x**2 + y**2 - 1) ** 3 <= x**2 * y**3


def _hexagon() -> Outline:
    angles = [math.pi * k / 3 for k in range(6)]
    return polygon(*((math.cos(a), math.sin(a)) for a in angles))


FIGURES: dict[str, Outline] = {
    "circle": disc(0, 0, 0.92),
    "ellipse": disc(0, 0, 1.0, 0.6),
    "square": box(-0.82, -0.82, 0.82, 0.82),
    "rectangle": box(-1, -0.52, 1, 0.52),
    "triangle": polygon((0, -0.95), (1, 0.8), (-1, 0.8)),
    "diamond": polygon((0, -1), (0.7, 0), (0, 1), (-0.7, 0)),
    "hexagon": _hexagon(),
    "star": star(5, 0.45),
    "cross": union(box(-1, -0.33, 1, 0.33), box(-0.33, -1, 0.33, 1)),
    "ring": without(disc(0, 0, 0.98), disc(0, 0, 0.55)),
    "heart": _heart,
    "crescent": without(disc(0, 0, 0.98), disc(0.45, -0.15, 0.78)),
}
"""The simple shapes."""
