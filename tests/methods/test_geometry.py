"""Bounding boxes and inscribed rectangles against trying every rectangle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.methods.beam.guides.geometry import (
    Rectangles,
    bounding_boxes,
    inscribed_rectangles,
    overlap_area,
)

SHAPES = ((5, 6), (1, 8), (8, 1))


def all_rectangles(height: int, width: int) -> list[tuple[int, int, int, int]]:
    return [
        (top, left, bottom, right)
        for top in range(height)
        for bottom in range(top + 1, height + 1)
        for left in range(width)
        for right in range(left + 1, width + 1)
    ]


def corners(rectangles: Rectangles) -> np.ndarray:
    """`[mask, top left bottom right]`."""
    parts = (rectangles.top, rectangles.left, rectangles.bottom, rectangles.right)
    return np.stack([np.asarray(part) for part in parts], axis=1)


def draw_masks(seed: int, shape: tuple[int, int], n: int = 16) -> np.ndarray:
    """Chance at many densities, blobs, and the two extremes."""
    rng = np.random.default_rng(seed)
    masks = rng.random((n, *shape)) < rng.random((n, 1, 1))
    for mask in masks[n // 2 :]:  # unions of rectangles
        mask[:] = False
        for _ in range(rng.integers(1, 4)):
            top, left, bottom, right = all_rectangles(*shape)[
                rng.integers(len(all_rectangles(*shape)))
            ]
            mask[top:bottom, left:right] = True
    masks[0], masks[1] = False, True
    return masks


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers(0, 2**32 - 1))
@examples(10)
def test_rectangles_of_masks(shape: tuple[int, int], seed: int):
    masks = draw_masks(seed, shape)
    boxes = corners(bounding_boxes(jnp.asarray(masks)))
    inscribed = inscribed_rectangles(jnp.asarray(masks))
    inside = corners(inscribed)
    for k, mask in enumerate(masks):
        held = np.argwhere(mask)
        if not len(held):
            assert not boxes[k].any()
            assert not inside[k].any()
            continue
        np.testing.assert_array_equal(boxes[k], [*held.min(0), *(held.max(0) + 1)])
        areas = [
            (bottom - top) * (right - left)
            for top, left, bottom, right in all_rectangles(*shape)
            if mask[top:bottom, left:right].all()
        ]
        top, left, bottom, right = inside[k]
        assert mask[top:bottom, left:right].all()
        assert (bottom - top) * (right - left) == max(areas) == np.asarray(inscribed.area)[k]


def test_overlap_of_every_two_rectangles():
    shape = (3, 4)
    known = [(0, 0, 0, 0), *all_rectangles(*shape)]
    masks = np.zeros((len(known), *shape), int)
    for mask, (top, left, bottom, right) in zip(masks, known, strict=True):
        mask[top:bottom, left:right] = 1
    first, second = np.divmod(np.arange(len(known) ** 2), len(known))
    columns = jnp.asarray(np.array(known, np.int32))
    a, b = (Rectangles(*columns[rows].T) for rows in (first, second))
    expected = (masks[first] * masks[second]).sum((1, 2))
    np.testing.assert_array_equal(overlap_area(a, b), expected)


def test_large_mask_with_a_known_answer():
    masks = np.ones((2, 112, 112), bool)
    masks[0, 40, 30] = False  # the rest below it, or the strip to its right
    masks[1, ::2] = False  # single rows
    inscribed = corners(inscribed_rectangles(jnp.asarray(masks)))
    np.testing.assert_array_equal(inscribed[0], [0, 31, 112, 112])
    assert inscribed[1].tolist() == [1, 0, 2, 112]


def test_widths_of_the_counts_do_not_depend_on_the_x64_setting():
    masks = jnp.asarray(draw_masks(0, (5, 6)))
    plain = corners(inscribed_rectangles(masks))
    with jax.enable_x64(True):
        assert inscribed_rectangles(masks).top.dtype == jnp.int32
        assert bounding_boxes(masks).top.dtype == jnp.int32
        np.testing.assert_array_equal(corners(inscribed_rectangles(masks)), plain)
