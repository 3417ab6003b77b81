"""Smooth noise, for light that is not even."""

import numpy as np
from jaxtyping import Float32


def smooth_noise(
    rng: np.random.Generator, height: int, width: int, cells: int
) -> Float32[np.ndarray, "h w"]:
    """Noise of standard deviation near 1 whose blotches are a cell wide."""
    values = rng.standard_normal((cells, cells)).astype(np.float32)
    rows, columns = (_interpolation(side, cells) for side in (height, width))
    return rows @ values @ columns.T


def _interpolation(side: int, cells: int) -> Float32[np.ndarray, "side cells"]:
    """Linear interpolation from `cells` values to `side` of them, as a matrix."""
    place = (np.arange(side) + 0.5) / side * (cells - 1)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(cells))).astype(np.float32)
