"""Regions of samples, and the rectangles around and inside them."""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int64, UInt

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.internal.padding import round_up_to_power_of_two
from optexp_jax.internal.tracing import note_trace
from optexp_jax.methods.beam.guides.geometry import Rectangles, bounding_boxes, inscribed_rectangles

BLOCK_CELLS = 2**20
"""About how many mask cells are made at once."""


class RegionShapes(eqx.Module):
    """What the spatial guide knows of regions beside their sizes."""

    box: Rectangles
    """The smallest rectangle around each."""
    inscribed: Rectangles
    """A largest rectangle inside each."""

    @classmethod
    def zeros(cls, *shape: int) -> "RegionShapes":
        """Shapes of empty regions, on the host."""
        return cls(*(Rectangles(*np.zeros((4, *shape), np.int32)) for _ in range(2)))

    def put(self, at: Int64[np.ndarray, " some"], shapes: "RegionShapes") -> None:
        """Write shapes over some of these, which must be on the host."""
        for mine, new in zip(jax.tree.leaves(self), jax.tree.leaves(shapes), strict=True):
            mine.reshape(-1)[at] = new


@dataclass(frozen=True, eq=False)
class SampleRegions:
    """Sets of locations of one sample each, as unions of patches."""

    sample: Int64[np.ndarray, " regions"]
    patch: Int64[np.ndarray, " entries"]
    region: Int64[np.ndarray, " entries"]
    """The region that each patch is part of."""

    def only(self, chosen: Bool[np.ndarray, " regions"]) -> "SampleRegions":
        """Some of the regions."""
        number = np.cumsum(chosen) - 1
        kept = chosen[self.region]
        return SampleRegions(self.sample[chosen], self.patch[kept], number[self.region[kept]])

    def sorted(self, order: Int64[np.ndarray, " regions"]) -> "SampleRegions":
        """The regions in another order, their patches in the same order."""
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        region = place[self.region]
        entries = np.argsort(region, kind="stable")
        return SampleRegions(self.sample[order], self.patch[entries], region[entries])


def grid_shape(table: ConceptTable) -> tuple[int, int]:
    """Height and width of a sample; one row where locations have no more than one axis."""
    shape = table.require_map("MMESHGuide").location_shape
    if len(shape) > 2:
        raise ValueError(
            "MMESHGuide compares rectangles, so it needs samples of at most two axes; this table's "
            f"are of shape {shape}. Use QuantityGuide()."
        )
    height, width = (1,) * (2 - len(shape)) + shape
    return height, width


def measure(table: ConceptTable, regions: SampleRegions) -> RegionShapes:
    """Box and inscribed rectangle of each region, on the host."""
    height, width = grid_shape(table)
    size = np.zeros(len(regions.sample), np.int64)
    np.add.at(size, regions.region, table.patches.size[regions.patch])
    shapes = RegionShapes.zeros(len(size))
    whole = size == height * width
    for rectangles in (shapes.box, shapes.inscribed):
        np.asarray(rectangles.bottom)[whole] = height
        np.asarray(rectangles.right)[whole] = width
    partial_regions = np.flatnonzero(~whole)
    if len(partial_regions):
        shapes.put(partial_regions, _measure_masks(table, regions.only(~whole)))
    return shapes


def _measure_masks(table: ConceptTable, regions: SampleRegions) -> RegionShapes:
    """The same from the masks of the regions, a block of samples after another."""
    located, patches = table.require_map("MMESHGuide"), table.patches
    order = np.argsort(regions.sample, kind="stable")
    regions = regions.sorted(order)
    n = len(order)
    # One size for a table, whatever is measured: one compiled program.
    step = round_up_to_power_of_two(min(BLOCK_CELLS // located.sample_size, table.n_samples), 64)
    n_ranks = round_up_to_power_of_two(int(np.diff(patches.indptr).max()), 8)
    shapes = RegionShapes.zeros(n)
    for block_start, block_stop in table.sample_blocks():
        first, last = np.searchsorted(regions.sample, [block_start, block_stop])
        ranks = located.block(block_start, block_stop) if last > first else None
        for start in range(first, last, step):
            rows = np.arange(start, min(start + step, last))
            entries = slice(*np.searchsorted(regions.region, [rows[0], rows[-1] + 1]))
            row, patch = regions.region[entries], regions.patch[entries]
            held = np.zeros((step, n_ranks), np.bool_)
            held[row - start, patch - patches.indptr[regions.sample[row]]] = True
            padded = rows[np.minimum(np.arange(step), len(rows) - 1)]
            assert ranks is not None
            with jax.enable_x64(True):  # as everywhere, or it would be compiled twice
                found = _measure_block(
                    ranks[regions.sample[padded] - block_start], held, grid_shape(table)
                )
            found = jax.tree.map(lambda part, n=len(rows): np.asarray(part)[:n], found)
            shapes.put(order[rows], found)
    return shapes


@partial(jax.jit, static_argnums=2)
def _measure_block(
    ranks: UInt[Array | np.ndarray, "regions locations"],
    held: Bool[Array | np.ndarray, "regions ranks"],
    shape: tuple[int, int],
) -> RegionShapes:
    """`held` tells which ranks, patches of the region's sample, the region is made of."""
    note_trace("measure_regions")
    masks = jnp.take_along_axis(held, ranks.astype(jnp.int32), axis=1).reshape(-1, *shape)
    return RegionShapes(bounding_boxes(masks), inscribed_rectangles(masks))
