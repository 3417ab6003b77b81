"""Mosaics: samples cut into cells with uneven borders, many at a time.

Cells are drawn on a coarse grid and enlarged, so that 22 000 samples take seconds: what matters to
a search is which concepts meet, where and how much, not how smooth their borders are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

GRAIN = 4
"""Locations along one side of the smallest thing that is drawn."""
WAVES = 3
"""Sine waves that bend the borders of a sample."""
FAR = 1e6


@dataclass(frozen=True, eq=False)
class Grid:
    """The coarse grid of samples of some size."""

    size: int

    @property
    def side(self) -> int:
        """Fields along one side."""
        return max(1, self.size // GRAIN)

    def enlarge(self, fields: Int64[np.ndarray, " fields"]) -> Int64[np.ndarray, " locations"]:
        """The value of every location, row by row, from the values of the fields."""
        nearest = np.arange(self.size) * self.side // self.size
        return fields.reshape(self.side, self.side)[nearest[:, None], nearest].reshape(-1)


def draw_bends(
    rng: np.random.Generator, n_samples: int, grid: Grid
) -> Float32[np.ndarray, "samples fields two"]:
    """Where each field is taken to lie, in units of the side: bent by a few waves a sample."""
    line = ((np.arange(grid.side) + 0.5) / grid.side).astype(np.float32)
    plain = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    bent = np.repeat(plain[None], n_samples, axis=0)
    for _ in range(WAVES):
        direction = rng.normal(0, 6, (n_samples, 2, 1)).astype(np.float32)
        phase = rng.uniform(0, 2 * np.pi, (n_samples, 1, 2)).astype(np.float32)
        height = rng.normal(0, 0.03, (n_samples, 1, 2)).astype(np.float32)
        bent += height * np.sin(plain @ direction + phase)
    return bent


def draw_cells(
    rng: np.random.Generator, bends: Float32[np.ndarray, "samples fields two"], n_cells: np.ndarray
) -> Int64[np.ndarray, "samples fields"]:
    """The cell of each field, one of `n_cells[x]` in sample x: that of the nearest centre."""
    most = int(n_cells.max())
    centres = rng.random((len(bends), most, 2), dtype=np.float32)
    centres[np.arange(most) >= n_cells[:, None]] = FAR
    # |p - c|² without |p|², which is the same for all centres of a field.
    near = -2 * bends @ centres.swapaxes(1, 2) + (centres**2).sum(-1)[:, None]
    return near.argmin(-1)
