"""Masks of COCO annotations: polygons, run lengths, and run lengths packed into a string."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.datasets.layout import short
from optexp_jax.datasets.polygons import clip_polygon

# The packed form writes a number five bits at a time, lowest first, as characters from "0" on.
_FIRST_CHARACTER = 48
_BITS = 5
_SIGN = 0x10
_MORE = 0x20
_MOST_CHARACTERS = 7
"""Of a number: 35 bits. Without an end, one number of a megabyte of digits would take minutes."""
_FARTHEST = 2**40
"""A coordinate up to here is clipped with an error far below a pixel."""
_MOST_STEPS = 2**25


def decode_mask(segmentation: Any, height: int, width: int) -> Bool[np.ndarray, "height width"]:
    """The mask of a region. ValueErrors read as the end of "annotation 7 ..."."""
    if is_polygons(segmentation):
        return _fill(segmentation, height, width)
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise ValueError("has no segmentation: neither polygons nor run lengths.")
    if segmentation["size"] != [height, width]:
        raise ValueError(
            f"is of size {short(segmentation['size'])}; its image has {[height, width]}."
        )
    counts = segmentation["counts"]
    if isinstance(counts, str):
        return _spread(unpack_runs(counts), height, width)
    if not isinstance(counts, list) or not all(type(run) is int for run in counts):
        raise ValueError("has run lengths that are neither whole numbers nor a string.")
    if counts and not 0 <= min(counts) <= max(counts) <= height * width:
        raise ValueError(f"has run lengths that are not from 0 to {height} x {width}.")
    return _spread(np.array(counts, np.int64), height, width)


def _spread(
    runs: Int64[np.ndarray, " runs"], height: int, width: int
) -> Bool[np.ndarray, "height width"]:
    if (runs < 0).any() or (runs > height * width).any() or runs.sum() != height * width:
        raise ValueError(f"has run lengths that do not add up to {height} x {width}.")
    # Runs go down the columns and start outside of the mask.
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def unpack_runs(text: str) -> Int64[np.ndarray, " runs"]:
    """The run lengths in a string; from the fourth on it holds differences to two runs before.

    They are read here, as pycocotools returns memory as it finds it when a string is too short.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    bits = codes.astype(np.int64) - _FIRST_CHARACTER
    strange = np.flatnonzero((bits < 0) | (bits >= 2 * _MORE))
    if len(strange):
        raise ValueError(f"has run lengths with the character {text[strange[0]]!r} in them.")
    ends = np.flatnonzero(bits < _MORE)
    if len(bits) and (not len(ends) or ends[-1] != len(bits) - 1):
        raise ValueError("has run lengths that break off.")
    starts = np.concatenate([[0], ends + 1])[: len(ends)].astype(np.int64)
    lengths = ends - starts + 1
    if (lengths > _MOST_CHARACTERS).any():
        raise ValueError("has run lengths of more digits than any image needs.")
    if not len(ends):
        return np.empty(0, np.int64)
    place = np.arange(len(bits)) - np.repeat(starts, lengths)
    values = np.add.reduceat((bits & (_MORE - 1)) << (_BITS * place), starts)
    values -= np.where(bits[ends] & _SIGN, 1 << (_BITS * lengths), 0)
    # Differences to the run before the last one: odd and even runs add up apart. The first three
    # are no differences.
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


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
    kept = [clip_polygon(_corners(polygon), height, width) for polygon in polygons]
    flat = [corners.reshape(-1).tolist() for corners in kept if len(corners) >= 3]
    if not flat:
        return np.zeros((height, width), np.bool_)
    # pycocotools walks along every side in steps of a fifth of a pixel, and keeps all steps.
    steps = sum(5 * float(np.abs(np.diff(c, axis=0, append=c[:1])).max(1).sum()) for c in kept)
    if steps > _MOST_STEPS:
        raise ValueError(f"has polygons whose outlines are {steps / 5:.0f} pixels long together.")
    api = polygon_api()
    filled = api.merge(api.frPyObjects(flat, height, width))
    return _spread(unpack_runs(filled["counts"].decode()), height, width)


def _corners(polygon: Any) -> Float64[np.ndarray, "corners 2"]:
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        raise ValueError("has a polygon that is not x, y, x, y, ... of three points or more.")
    if not all(type(value) in (int, float) for value in polygon):
        raise ValueError("has a polygon with a coordinate that is not a number.")
    # Python compares whole numbers of any length; NaN compares as false.
    if not all(-_FARTHEST <= value <= _FARTHEST for value in polygon):
        raise ValueError("has a polygon with a coordinate that is beyond all images or no number.")
    return np.array(polygon, np.float64).reshape(-1, 2)
