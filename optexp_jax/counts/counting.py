"""Counting active locations by patch, for many units at once.

Two kernels that give the same integers: one skips the inactive locations on the host, one streams
over all of them on the device. Both go over the map in blocks of samples, so a map on disk is read
once and never held whole.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, UInt

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.padding import round_up_to_power_of_two

BLOCK_COUNTS = 2**24
"""Counts, one a unit and patch, that are held at once."""


@dataclass(frozen=True, eq=False)
class ActivePatches:
    """The patches of one unit that hold active locations, ascending, and how many."""

    patches: Int64[np.ndarray, " active"]
    counts: Int64[np.ndarray, " active"]


BlockKernel = Callable[
    [
        Bool[np.ndarray, "units samples locations"],
        UInt[np.ndarray, "samples locations"],
        Int64[np.ndarray, " edges"],
    ],
    Int64[np.ndarray, "units patches"],
]


def count_active_patches(
    table: ConceptTable,
    bitmaps: Bool[np.ndarray, "units samples locations"],
    kernel: BlockKernel | None = None,
) -> list[ActivePatches]:
    """Active locations of each unit by patch."""
    if kernel is None:
        kernel = count_on_host if prefers_host_kernels() else count_on_device
    located = table.require_map("count")
    found: list[list[ActivePatches]] = [[] for _ in bitmaps]
    for start, stop in table.sample_blocks():
        ranks = located.block(start, stop)
        first = table.patches.indptr[start]
        indptr = table.patches.indptr[start : stop + 1] - first
        step = max(1, BLOCK_COUNTS // int(indptr[-1]))
        for begin in range(0, len(bitmaps), step):
            block = kernel(bitmaps[begin : begin + step, start:stop], ranks, indptr)
            for unit, counts in enumerate(block, begin):
                active = np.flatnonzero(counts)
                found[unit].append(ActivePatches(active + first, counts[active]))
    return [
        ActivePatches(
            np.concatenate([block.patches for block in blocks]),
            np.concatenate([block.counts for block in blocks]),
        )
        for blocks in found
    ]


def count_on_host(
    bitmaps: Bool[np.ndarray, "units samples locations"],
    ranks: UInt[np.ndarray, "samples locations"],
    indptr: Int64[np.ndarray, " edges"],
) -> Int64[np.ndarray, "units patches"]:
    """Count by looking up the patches of active locations only."""
    n_patches = int(indptr[-1])
    rank_of = ranks.reshape(-1)
    counts = np.empty((len(bitmaps), n_patches), np.int64)
    for unit, bitmap in enumerate(bitmaps):
        active = np.flatnonzero(bitmap)
        # Active locations ascend, so those of one sample stand together.
        edges = np.searchsorted(active, np.arange(1, len(ranks)) * ranks.shape[1])
        in_sample = np.diff(edges, prepend=0, append=len(active))
        patch = rank_of[active] + np.repeat(indptr[:-1], in_sample)
        counts[unit] = np.bincount(patch, minlength=n_patches)
    return counts


def count_on_device(
    bitmaps: Bool[np.ndarray, "units samples locations"],
    ranks: UInt[np.ndarray, "samples locations"],
    indptr: Int64[np.ndarray, " edges"],
) -> Int64[np.ndarray, "units patches"]:
    """Count by one scatter-add over all locations; sizes are padded to a few compiled shapes."""
    n_units, n_patches = len(bitmaps), int(indptr[-1])
    patch = ranks + indptr[:-1, None]
    flat = bitmaps.reshape(n_units, patch.size)
    padded = np.zeros((round_up_to_power_of_two(n_units), patch.size), np.bool_)
    padded[:n_units] = flat
    # A block has fewer than 2**31 locations, so its counts fit int32.
    counts = _scatter_counts(
        jnp.asarray(padded),
        jnp.asarray(patch.reshape(-1).astype(np.int32)),
        round_up_to_power_of_two(n_patches),
    )
    return np.asarray(counts)[:n_units, :n_patches].astype(np.int64)


@jax.jit(static_argnums=2)
def _scatter_counts(
    bitmaps: Bool[Array, "units locations"], patch: Int32[Array, " locations"], n_patches: int
) -> Int32[Array, "units patches"]:
    zeros = jnp.zeros((bitmaps.shape[0], n_patches), jnp.int32)
    return zeros.at[:, patch].add(bitmaps.astype(jnp.int32))
