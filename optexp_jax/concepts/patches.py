"""Patches: where in the dataset each signature lies.

A *patch* is all locations of one sample that share a signature. Per-sample quantities are sums over
a sample's patches, and the map of a sample needs only the patch's rank within the sample (one or
two bytes a location) instead of a signature id.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int32, Int64, Shaped, UInt

CHUNK_BYTES = 2**22
"""The size of a piece of the map that is stored, and read, as one."""


@runtime_checkable
class RankArray(Protocol):
    """`[sample, location] -> rank of the location's patch in its sample`: numpy, or lazily Zarr."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, key: slice, /) -> np.ndarray: ...


def rank_dtype(n_locations: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that holds any rank: a sample has at most one patch per location."""
    return np.min_scalar_type(max(n_locations - 1, 0))


def samples_per_chunk(sample_size: int) -> int:
    """How many samples of so many locations each make a chunk of the map."""
    return max(1, CHUNK_BYTES // (sample_size * rank_dtype(sample_size).itemsize))


@dataclass(frozen=True, eq=False)
class Patches:
    """Patches by sample: those of sample x are `indptr[x]:indptr[x + 1]`, ascending signatures."""

    indptr: Int64[np.ndarray, "samples_plus_one"]
    signature: Int32[np.ndarray, " patches"]
    size: Int64[np.ndarray, " patches"]

    def __len__(self) -> int:
        return len(self.signature)

    @property
    def n_samples(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def sample(self) -> Int64[np.ndarray, " patches"]:
        """The sample of each patch."""
        return np.repeat(np.arange(self.n_samples), np.diff(self.indptr))


@dataclass(frozen=True, eq=False)
class SampleMap:
    """The layout of locations: their shape in a sample, and the patch of each."""

    location_shape: tuple[int, ...]
    ranks: RankArray
    digest: str
    """A checksum of all ranks, part of the table's fingerprint."""

    @property
    def n_samples(self) -> int:
        return self.ranks.shape[0]

    @property
    def sample_size(self) -> int:
        return self.ranks.shape[1]

    def block(self, start: int, stop: int) -> UInt[np.ndarray, "samples locations"]:
        """Ranks of the samples `start:stop`, read now."""
        return np.asarray(self.ranks[start:stop])

    def rows(
        self, samples: Int64[np.ndarray, " samples"]
    ) -> Iterator[Int64[np.ndarray, " locations"]]:
        """Ranks of one sample after another. A chunk on disk serves all neighbours in a row."""
        step = samples_per_chunk(self.sample_size)
        start, held = 0, np.empty((0, self.sample_size), np.uint8)
        for sample in samples.tolist():
            if not start <= sample < start + len(held):
                start = sample - sample % step
                held = self.block(start, min(start + step, self.n_samples))
            yield held[sample - start].astype(np.int64)

    def spread(
        self, patches: Patches, values: Shaped[np.ndarray, " patches"], start: int, stop: int
    ) -> Shaped[np.ndarray, "samples *location"]:
        """A value per patch laid out over the locations of the samples `start:stop`."""
        patch = patches.indptr[start:stop, None] + self.block(start, stop)
        return values[patch].reshape(-1, *self.location_shape)
