"""Rectangles of binary masks: bounding boxes and largest inscribed rectangles, for many masks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32


class Rectangles(eqx.Module):
    """Axis-aligned rectangles `[top, bottom) x [left, right)`; an empty one is all zeros."""

    top: Int32[Array | np.ndarray, "..."]
    left: Int32[Array | np.ndarray, "..."]
    bottom: Int32[Array | np.ndarray, "..."]
    right: Int32[Array | np.ndarray, "..."]

    @property
    def area(self) -> Int32[Array | np.ndarray, "..."]:
        return (self.bottom - self.top) * (self.right - self.left)


def overlap_area(a: Rectangles, b: Rectangles) -> Int32[Array, "..."]:
    """Locations that both rectangles hold; 0 if either is empty."""
    height = jnp.minimum(a.bottom, b.bottom) - jnp.maximum(a.top, b.top)
    width = jnp.minimum(a.right, b.right) - jnp.maximum(a.left, b.left)
    return jnp.maximum(height, 0) * jnp.maximum(width, 0)


@jax.jit
def bounding_boxes(masks: Bool[Array, "masks height width"]) -> Rectangles:
    """The smallest rectangle around each mask."""
    top, bottom = _span(masks.any(2))
    left, right = _span(masks.any(1))
    return Rectangles(top, left, bottom, right)


def _span(
    occupied: Bool[Array, "masks length"],
) -> tuple[Int32[Array, " masks"], Int32[Array, " masks"]]:
    """The first occupied position and the one after the last; zeros where there is none."""
    length = occupied.shape[1]
    first = occupied.argmax(1).astype(jnp.int32)
    after_last = jnp.int32(length) - occupied[:, ::-1].argmax(1).astype(jnp.int32)
    return first, jnp.where(occupied.any(1), after_last, 0)


class _Columns(eqx.Module):
    """For each cell of a row: the rectangle of ones that is as high as the column of ones that ends
    there, and as wide as that height allows.

    Masks are the last axis, because they are what is worked on in parallel.
    """

    height: Int32[Array, "width masks"]
    left: Int32[Array, "width masks"]
    right: Int32[Array, "width masks"]


@jax.jit
def inscribed_rectangles(masks: Bool[Array, "masks height width"]) -> Rectangles:
    """A largest all-ones rectangle of each mask.

    One of the columns of a largest rectangle has no one above it, else it could grow upwards. So
    it is among the rectangles of `_Columns`, which are gone through row by row.
    """
    n_masks, _, width = masks.shape
    columns = jnp.arange(width, dtype=jnp.int32)
    none = jnp.zeros(n_masks, jnp.int32)

    def run_starts(row: Bool[Array, "width masks"]) -> Int32[Array, "width masks"]:
        """Where the run of ones that holds a cell starts."""

        def step(start: Array, cell: tuple[Array, Array]) -> tuple[Array, Array]:
            one, column = cell
            start = jnp.where(one, start, column + 1)
            return start, start

        return jax.lax.scan(step, none, (row, columns))[1]

    def run_ends(row: Bool[Array, "width masks"]) -> Int32[Array, "width masks"]:
        """The column after the end of that run."""

        def step(end: Array, cell: tuple[Array, Array]) -> tuple[Array, Array]:
            one, column = cell
            end = jnp.where(one, end, column)
            return end, end

        return jax.lax.scan(step, none + width, (row, columns), reverse=True)[1]

    def add_row(
        state: tuple[_Columns, Rectangles], row: tuple[Array, Array]
    ) -> tuple[tuple[_Columns, Rectangles], None]:
        above, best = state
        ones, y = row
        here = _Columns(
            jnp.where(ones, above.height + 1, 0),
            jnp.where(ones, jnp.maximum(above.left, run_starts(ones)), 0),
            jnp.where(ones, jnp.minimum(above.right, run_ends(ones)), width),
        )
        areas = here.height * (here.right - here.left)
        largest = areas.argmax(0)[None, :]
        height, left, right = (
            jnp.take_along_axis(part, largest, 0)[0]
            for part in (here.height, here.left, here.right)
        )
        found = Rectangles(y + 1 - height, left, none + y + 1, right)
        better = found.area > best.area
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), found, best)
        return (here, best), None

    blank = jnp.zeros((width, n_masks), jnp.int32)
    start = _Columns(blank, blank, blank + width), Rectangles(none, none, none, none)
    rows = masks.transpose(1, 2, 0), jnp.arange(masks.shape[1], dtype=jnp.int32)
    return jax.lax.scan(add_row, start, rows)[0][1]
