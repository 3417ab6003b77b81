"""Masks of COCO annotations: polygons, run lengths, and run lengths packed into a string."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

# The packed form writes a number five bits at a time, lowest first, as characters from "0" on.
_FIRST_CHARACTER = 48
_BITS = 5
_SIGN = 0x10
_MORE = 0x20


def decode_mask(segmentation: Any, height: int, width: int) -> Bool[np.ndarray, "height width"]:
    """The mask of a region. ValueErrors read as the end of "annotation 7 ..."."""
    if is_polygons(segmentation):
        return _fill(segmentation, height, width)
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise ValueError("has no segmentation: neither polygons nor run lengths.")
    if list(segmentation["size"]) != [height, width]:
        raise ValueError(f"is of size {segmentation['size']}; its image has {[height, width]}.")
    counts = segmentation["counts"]
    if not isinstance(counts, str | list):
        raise ValueError("has run lengths that are neither a list nor a string.")
    return _spread(unpack_runs(counts) if isinstance(counts, str) else counts, height, width)


def _spread(runs: Sequence[int], height: int, width: int) -> Bool[np.ndarray, "height width"]:
    if any(run < 0 for run in runs) or sum(runs) != height * width:
        raise ValueError(f"has run lengths that do not add up to {height} x {width}.")
    # Runs go down the columns and start outside of the mask.
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def unpack_runs(text: str) -> list[int]:
    """The run lengths in a string; from the fourth on it holds differences to two runs before.

    They are read here, as pycocotools returns memory as it finds it when a string is too short.
    """
    runs: list[int] = []
    value, shift = 0, 0
    for character in text:
        bits = ord(character) - _FIRST_CHARACTER
        if not 0 <= bits < 2 * _MORE:
            raise ValueError(f"has run lengths with the character {character!r} in them.")
        value |= (bits & (_MORE - 1)) << shift
        shift += _BITS
        if bits & _MORE:
            continue
        if bits & _SIGN:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value, shift = 0, 0
    if shift:
        raise ValueError("has run lengths that break off.")
    return runs


def is_polygons(segmentation: Any) -> bool:
    """Whether a segmentation is a list of polygons."""
    return isinstance(segmentation, list)


def polygon_api() -> Any:
    """pycocotools, whose way of filling polygons is the one that counts."""
    try:
        from pycocotools import mask
    except ImportError as error:
        raise ImportError(
            'Reading COCO polygons needs pycocotools: pip install "optexp-jax[coco]"'
        ) from error
    return mask


def _fill(polygons: Sequence[Any], height: int, width: int) -> Bool[np.ndarray, "height width"]:
    if not polygons:
        return np.zeros((height, width), np.bool_)
    for polygon in polygons:
        if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
            raise ValueError("has a polygon that is not x, y, x, y, ... of three points or more.")
        if not np.isfinite(np.asarray(polygon, np.float64)).all():
            raise ValueError("has a polygon with a coordinate that is not a number.")
    api = polygon_api()
    filled = api.merge(api.frPyObjects(polygons, height, width))
    return _spread(unpack_runs(filled["counts"].decode()), height, width)
