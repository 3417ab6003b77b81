"""Bilinear up-sampling (half-pixel centres, as `align_corners=False`), exact to the last bit.

A compiler may fuse a multiplication and an addition, which rounds once instead of twice, so float32
code gives other last bits under XLA than under NumPy. Here every product is exact: weights are
multiples of 2**-24 that sum to exactly 1, and the product of two float32 numbers fits a float64.
What is left is one rounding per axis, which no fusion changes. The weighted mean then also never
leaves the span of the cells it is made of.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Int64

WEIGHT_STEPS = 2**24
TINY = float(np.finfo(np.float32).tiny)
"""Smaller numbers count as zero: XLA flushes them on some devices, NumPy does not."""


@dataclass(frozen=True, eq=False)
class AxisWeights:
    """Each output position is `before * cell[left] + after * cell[right]`."""

    left: Int64[np.ndarray, " out"]
    right: Int64[np.ndarray, " out"]
    before: Float64[np.ndarray, " out"]
    after: Float64[np.ndarray, " out"]

    def as_matrix(self, n_cells: int) -> Float64[np.ndarray, "cells out"]:
        """The same as a matrix; the zeros in it change no bit of a product."""
        matrix = np.zeros((n_cells, len(self.left)))
        positions = np.arange(len(self.left))
        matrix[self.left, positions] += self.before
        matrix[self.right, positions] += self.after
        return matrix


@lru_cache(maxsize=64)
def axis_weights(n_cells: int, n_out: int) -> AxisWeights:
    """Weights of one axis, from exact fractions: position i lies at ((2i + 1) n / m - 1) / 2."""
    halves = np.maximum((2 * np.arange(n_out, dtype=np.int64) + 1) * n_cells - n_out, 0)
    left = np.minimum(halves // (2 * n_out), n_cells - 1)
    right = np.minimum(left + 1, n_cells - 1)
    fraction = (halves - left * 2 * n_out) / (2 * n_out)
    after = np.where(left == right, 0.0, np.round(fraction * WEIGHT_STEPS) / WEIGHT_STEPS)
    return AxisWeights(left, right, 1.0 - after, after)


def as_maps(maps: np.ndarray) -> Float32[np.ndarray, "..."]:
    """Activations ready for up-sampling: float32, finite, without subnormal numbers."""
    values = np.asarray(maps, np.float32)
    if not np.isfinite(values).all():
        raise ValueError("Activations must be finite: there are NaN or infinite values.")
    small = np.abs(values) < TINY
    return np.where(small, np.float32(0), values) if small.any() else values


def as_ends(ends: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Ends of ranges that mean the same, none of them subnormal.

    Up-sampled values are 0 or far larger than the smallest normal float64, so that nothing lies
    between a subnormal end and that number.
    """
    smallest = np.finfo(np.float64).tiny
    subnormal = (ends != 0) & (np.abs(ends) < smallest)
    return np.where(subnormal, np.copysign(smallest, ends), ends)


def upsample(
    maps: Float32[np.ndarray, "maps rows columns"], shape: tuple[int, int]
) -> Float64[np.ndarray, "maps height width"]:
    """Up-sample with NumPy: the plain reference. `maps` come from `as_maps`."""
    across = axis_weights(maps.shape[2], shape[1])
    down = axis_weights(maps.shape[1], shape[0])
    cells = maps.astype(np.float64)
    wide = cells[:, :, across.left] * across.before + cells[:, :, across.right] * across.after
    wide = np.where(np.abs(wide) < TINY, 0.0, wide).astype(np.float32).astype(np.float64)
    above, below = wide[:, down.left], wide[:, down.right]
    above *= down.before[:, None]
    below *= down.after[:, None]
    above += below
    return above


def active(
    maps: Float32[Array, "maps rows columns"],
    low: Float64[Array, " maps"],
    high: Float64[Array, " maps"],
    shape: tuple[int, int],
) -> Bool[Array, "maps height width"]:
    """Where the up-sampled maps lie strictly between `low` and `high`; for use inside `jit`.

    It must be traced with 64-bit types enabled.
    """
    n_maps, rows, columns = maps.shape
    across = jnp.asarray(axis_weights(columns, shape[1]).as_matrix(columns))
    down = axis_weights(rows, shape[0])
    # Along the short rows a product with a matrix is the fast way, along columns whole rows move.
    wide = (maps.astype(jnp.float64).reshape(n_maps * rows, columns) @ across).reshape(
        n_maps, rows, shape[1]
    )
    wide = jnp.where(jnp.abs(wide) < TINY, 0.0, wide).astype(jnp.float32).astype(jnp.float64)
    above = wide[:, down.left] * down.before[None, :, None]
    value = above + wide[:, down.right] * down.after[None, :, None]
    return (value > low[:, None, None]) & (value < high[:, None, None])
