"""Polygons that reach far beyond their image."""

import numpy as np
from jaxtyping import Float64


def clip_polygon(
    corners: Float64[np.ndarray, "corners 2"], height: int, width: int
) -> Float64[np.ndarray, "clipped 2"]:
    """The polygon, x and y of its corners, cut off at a distance from the image.

    One that stays within that distance is returned as it is, so that it is filled exactly as
    pycocotools fills it. Farther coordinates overflow there. Cutting by one straight line after
    another moves what is outside onto the line, and so leaves the filling of the image as it was.
    """
    margin = max(height, width)
    for axis, size in enumerate((width, height)):
        for sign, limit in ((-1.0, margin), (1.0, size + margin)):
            corners = _cut(corners, sign * corners[:, axis] - limit)
    return corners


def _cut(
    corners: Float64[np.ndarray, "corners 2"], beyond: Float64[np.ndarray, " corners"]
) -> Float64[np.ndarray, "cut 2"]:
    """Keep the side of a line on which `beyond`, the distance past it, is not positive."""
    if not (beyond > 0).any():
        return corners
    following, next_beyond = np.roll(corners, -1, axis=0), np.roll(beyond, -1)
    crosses = (beyond > 0) != (next_beyond > 0)
    span = np.where(crosses, beyond - next_beyond, 1.0)
    crossings = corners + (beyond / span)[:, None] * (following - corners)
    # Each side gives its first corner, if it is kept, and then the point where it crosses.
    pairs = np.stack([corners, crossings], axis=1)
    return pairs[np.stack([beyond <= 0, crosses], axis=1)]
