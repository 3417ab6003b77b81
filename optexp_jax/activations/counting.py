"""Counting a layer's active locations by patch, straight from its raw maps.

One pass over the samples does all units: maps are up-sampled, thresholded and counted a batch at a
time, so no unit's bitmap is ever held. A (sample, unit) pair whose cells all lie outside the range
has no active location, because up-sampling never leaves the span of the cells, and is passed over.

Two kernels give the same integers. Both up-sample and threshold in one compiled program; the one
for devices counts in it too, the one for CPUs then looks up the patches of active locations only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Int32, Int64, UInt

from optexp_jax.activations.upsample import active, as_ends
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.counting import ActivePatches
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.padding import round_up_to_power_of_two

BATCH_LOCATIONS = 2**22
"""Up-sampled locations of all pairs of a batch, about."""
SMALLEST_BATCH = 64
"""Pairs; smaller batches are padded, so that few programs are compiled."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What counts as active, by unit: values strictly between the two."""

    low: Float64[np.ndarray, " units"]
    high: Float64[np.ndarray, " units"]


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Raw maps of (sample, unit) pairs, padded to a fixed number by maps that are never active."""

    maps: Float32[np.ndarray, "pairs rows columns"]
    low: Float64[np.ndarray, " pairs"]
    high: Float64[np.ndarray, " pairs"]
    sample: Int64[np.ndarray, " pairs"]
    """Index into the block's samples."""
    n_pairs: int
    """How many of them are real."""


Pending = Callable[[], Int64[np.ndarray, "pairs ranks"]]
"""Work under way: the call waits for it and gives active locations by pair and patch rank."""

PairKernel = Callable[
    [PairBatch, UInt[np.ndarray, "samples locations"], int, tuple[int, int]], Pending
]


def count_pairs_on_host(
    batch: PairBatch,
    ranks: UInt[np.ndarray, "samples locations"],
    n_ranks: int,
    shape: tuple[int, int],
) -> Pending:
    """Threshold on the device; look up the patches of active locations on the host."""
    with jax.enable_x64(True):
        started = _active(batch.maps, batch.low, batch.high, shape)

    def finish() -> Int64[np.ndarray, "pairs ranks"]:
        bits = np.asarray(started)
        counts = np.empty((batch.n_pairs, n_ranks), np.int64)
        for pair, sample in enumerate(batch.sample[: batch.n_pairs].tolist()):
            found = ranks[sample][np.flatnonzero(bits[pair])]
            counts[pair] = np.bincount(found, minlength=n_ranks)
        return counts

    return finish


def count_pairs_on_device(
    batch: PairBatch,
    ranks: UInt[np.ndarray, "samples locations"],
    n_ranks: int,
    shape: tuple[int, int],
) -> Pending:
    """Threshold and count in one compiled program, which streams over all locations."""
    with jax.enable_x64(True):
        started = _active_by_rank(
            batch.maps,
            batch.low,
            batch.high,
            batch.sample,
            ranks.astype(np.int32),
            shape,
            round_up_to_power_of_two(n_ranks),
        )

    def finish() -> Int64[np.ndarray, "pairs ranks"]:
        return np.asarray(started)[: batch.n_pairs, :n_ranks].astype(np.int64)

    return finish


@partial(jax.jit, static_argnums=3)
def _active(
    maps: Float32[Array, "pairs rows columns"],
    low: Float64[Array, " pairs"],
    high: Float64[Array, " pairs"],
    shape: tuple[int, int],
) -> Bool[Array, "pairs locations"]:
    return active(maps, low, high, shape).reshape(maps.shape[0], -1)


@partial(jax.jit, static_argnums=(5, 6))
def _active_by_rank(
    maps: Float32[Array, "pairs rows columns"],
    low: Float64[Array, " pairs"],
    high: Float64[Array, " pairs"],
    sample: Int64[Array, " pairs"],
    ranks: Int32[Array, "samples locations"],
    shape: tuple[int, int],
    n_ranks: int,
) -> Int32[Array, "pairs {n_ranks}"]:
    bits = active(maps, low, high, shape).reshape(maps.shape[0], -1)
    pair = jnp.arange(maps.shape[0], dtype=jnp.int32)[:, None]
    # A map has fewer than 2**31 locations, so its counts fit int32.
    zeros = jnp.zeros((maps.shape[0], n_ranks), jnp.int32)
    return zeros.at[pair, ranks[sample]].add(bits.astype(jnp.int32))


def count_layer(
    table: ConceptTable,
    maps: Float32[np.ndarray, "stored units rows columns"],
    thresholds: Thresholds,
    *,
    order: Int64[np.ndarray, " samples"] | None = None,
    shifts: Int64[np.ndarray, "samples 2"] | None = None,
    kernel: PairKernel | None = None,
) -> list[ActivePatches]:
    """Active locations of each unit by patch, from raw maps that come from `as_maps`.

    Sample x of the table is shown the map of sample `order[x]`, rolled down and right by
    `shifts[x]` locations.
    """
    if kernel is None:
        kernel = count_pairs_on_host if prefers_host_kernels() else count_pairs_on_device
    located = table.require_map("counting activations")
    shape = mask_shape(located.location_shape, maps.shape[2:])
    thresholds = Thresholds(as_ends(thresholds.low), as_ends(thresholds.high))
    reached = _reached(maps, thresholds)
    if maps.shape[2:] == (1, 1):
        return _count_whole_samples(table, reached if order is None else reached[order])
    found: list[list[ActivePatches]] = [[] for _ in range(maps.shape[1])]
    for start, stop in table.sample_blocks():
        source = np.arange(start, stop) if order is None else order[start:stop]
        sample, unit = np.nonzero(reached[source])
        first = table.patches.indptr[start:stop]
        n_ranks = int(np.diff(table.patches.indptr[start : stop + 1]).max())
        ranks = located.block(start, stop)
        if shifts is not None:
            ranks = _roll_back(ranks, shifts[start:stop], shape)
        blocks: list[list[ActivePatches]] = [[] for _ in found]
        batches = _batches(maps, thresholds, source, sample, unit, shape)
        for begin, counts in _in_turn(batches, kernel, ranks, n_ranks, shape):
            pair, rank = np.nonzero(counts)
            patch = first[sample[begin + pair]] + rank
            _append_by_unit(blocks, unit[begin + pair], patch, counts[pair, rank])
        for mine, parts in zip(found, blocks, strict=True):
            if parts:
                mine.append(_join(parts))
    return [_join(parts) for parts in found]


def _count_whole_samples(
    table: ConceptTable, on: Bool[np.ndarray, "samples units"]
) -> list[ActivePatches]:
    """Counts where a unit has one value a sample: it is active everywhere or nowhere."""
    patches = [np.flatnonzero(column[table.patches.sample]) for column in on.T]
    return [ActivePatches(mine, table.patches.size[mine]) for mine in patches]


def mask_shape(location_shape: tuple[int, ...], map_shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows and columns that maps are up-sampled to."""
    match location_shape:
        case (height, width):
            return height, width
        case ():
            return 1, 1
        case _ if map_shape == (1, 1):  # One value a sample fits any layout.
            return 1, int(np.prod(location_shape))
        case _:
            raise ValueError(
                f"Maps of {map_shape[0]}x{map_shape[1]} cells need a table whose samples have rows "
                f"and columns; the locations of this one have shape {location_shape}."
            )


def _reached(
    maps: Float32[np.ndarray, "stored units rows columns"], thresholds: Thresholds
) -> Bool[np.ndarray, "stored units"]:
    """Whether a map can have a value inside the range."""
    largest, smallest = maps.max(axis=(2, 3)), maps.min(axis=(2, 3))
    return (largest > thresholds.low) & (smallest < thresholds.high)


def _roll_back(
    ranks: UInt[np.ndarray, "samples locations"],
    shifts: Int64[np.ndarray, "samples 2"],
    shape: tuple[int, int],
) -> UInt[np.ndarray, "samples locations"]:
    """Ranks as the unrolled maps meet them: rolling the ranks back is rolling the map."""
    rolled = [
        np.roll(row.reshape(shape), (-down, -right), (0, 1)).reshape(-1)
        for row, (down, right) in zip(ranks, shifts.tolist(), strict=True)
    ]
    return np.stack(rolled)


def _batches(
    maps: Float32[np.ndarray, "stored units rows columns"],
    thresholds: Thresholds,
    source: Int64[np.ndarray, " samples"],
    sample: Int64[np.ndarray, " pairs"],
    unit: Int64[np.ndarray, " pairs"],
    shape: tuple[int, int],
) -> Iterator[PairBatch]:
    most = round_up_to_power_of_two(max(1, BATCH_LOCATIONS // (shape[0] * shape[1]) // 2))
    size = min(most, round_up_to_power_of_two(len(sample), SMALLEST_BATCH))
    for begin in range(0, len(sample), size):
        mine, units = sample[begin : begin + size], unit[begin : begin + size]
        padding = size - len(mine)
        yield PairBatch(
            np.pad(maps[source[mine], units], ((0, padding), (0, 0), (0, 0))),
            np.pad(thresholds.low[units], (0, padding), constant_values=np.inf),
            np.pad(thresholds.high[units], (0, padding), constant_values=-np.inf),
            np.pad(mine, (0, padding)),
            len(mine),
        )


def _in_turn(
    batches: Iterator[PairBatch],
    kernel: PairKernel,
    ranks: UInt[np.ndarray, "samples locations"],
    n_ranks: int,
    shape: tuple[int, int],
) -> Iterator[tuple[int, Int64[np.ndarray, "pairs ranks"]]]:
    """Counts of one batch after another, with the first pair's place; the next is under way."""
    begin, waiting = 0, None
    for batch in batches:
        started = kernel(batch, ranks, n_ranks, shape)
        if waiting is not None:
            counts = waiting()
            yield begin, counts
            begin += len(counts)
        waiting = started
    if waiting is not None:
        yield begin, waiting()


def _append_by_unit(
    blocks: list[list[ActivePatches]],
    unit: Int64[np.ndarray, " found"],
    patch: Int64[np.ndarray, " found"],
    count: Int64[np.ndarray, " found"],
) -> None:
    """Sort what a batch found by unit; patches of a unit came in ascending order and stay so."""
    if not len(unit):
        return
    by_unit = np.argsort(unit, kind="stable")
    units, starts = np.unique(unit[by_unit], return_index=True)
    patches = np.split(patch[by_unit], starts[1:])
    counts = np.split(count[by_unit], starts[1:])
    for k, patches_of_unit, counts_of_unit in zip(units.tolist(), patches, counts, strict=True):
        blocks[k].append(ActivePatches(patches_of_unit, counts_of_unit))


def _join(parts: list[ActivePatches]) -> ActivePatches:
    empty = np.empty(0, np.int64)
    return ActivePatches(
        np.concatenate([empty, *(part.patches for part in parts)]),
        np.concatenate([empty, *(part.counts for part in parts)]),
    )
