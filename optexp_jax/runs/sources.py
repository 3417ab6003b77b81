"""Where the units of a run come from: a table, and how often each unit is active where."""

import abc
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float32, Int

from optexp_jax.concepts.inputs import to_bool
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.stores.store import DataFileError


@runtime_checkable
class UnitSource(Protocol):
    """The units of a layer, over the samples of a concept table."""

    @property
    def table(self) -> ConceptTable:
        """The concepts, annotated on the samples that the units have seen."""
        ...

    @property
    def n_units(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """A checksum of the activations and of how they become bitmaps."""
        ...

    def counts(
        self,
        units: Sequence[int],
        *,
        order: Int[np.ndarray, " samples"] | None = None,
        shifts: Int[np.ndarray, "samples two"] | None = None,
    ) -> list[NeuronCounts]:
        """Active locations of some units, by signature.

        With `order`, sample x is given the activation map of sample `order[x]`; with `shifts`,
        that map is also rolled by so many rows and columns.
        """
        ...

    def bitmap(self, unit: int) -> Bool[np.ndarray, "samples *location"]:
        """Where one unit is active, by a path of its own that `counts` does not use."""
        ...


@runtime_checkable
class HasRanges(Protocol):
    """A source that knows which activations of a unit count as active."""

    def range_of(self, unit: int) -> Any:
        """A range; its `skipped` says why a unit has none, or is None."""
        ...


@runtime_checkable
class HasSampleBitmaps(Protocol):
    """A source that tells where units are active in one sample without the others."""

    def sample_bitmaps(
        self, sample: int, units: Sequence[int]
    ) -> Bool[np.ndarray, "units *location"]: ...


@runtime_checkable
class HasPeaks(Protocol):
    """A source that knows how high a unit's activation is in each sample."""

    def peaks(self, unit: int) -> Float32[np.ndarray, " samples"]:
        """The highest activation of each sample that is not above the unit's range."""
        ...


@dataclass(frozen=True)
class SourceIdentity:
    """Checksums of a source, to tell whether it is still the one that a run began with."""

    table: str
    source: str

    @classmethod
    def of(cls, source: UnitSource) -> "SourceIdentity":
        return cls(source.table.fingerprint, source.fingerprint)

    def check(self, source: UnitSource) -> None:
        """Refuse a source that was replaced by another since."""
        found = SourceIdentity.of(source)
        if found != self:
            what = "table" if found.table != self.table else "source"
            raise DataFileError(
                f"The {what} of the run was replaced by another since it began. Put the former one "
                "back, or begin another run."
            )


class AbstractOpener(abc.ABC):
    """How to open a source, in this process or another: small, hashable, picklable.

    Make it a frozen dataclass of numbers and strings, so that a run can keep it.
    """

    @abc.abstractmethod
    def open(self) -> UnitSource:
        """Open the source."""

    def share(self, folder: Path) -> "AbstractOpener":
        """The same for several processes; what they are to share can be written into the folder."""
        return self

    def origin(self) -> dict[str, Any]:
        """Where the units come from, as JSON: models, weights, layers, for the run's record."""
        return {}


@dataclass(frozen=True, eq=False)
class BitmapUnits:
    """Units given as bitmaps in memory, `[unit, sample, *location]`."""

    table: ConceptTable
    bitmaps: Any

    def __post_init__(self) -> None:
        bitmaps = to_bool(self.bitmaps, "bitmaps")
        located = self.table.require_map("BitmapUnits")
        wanted = (located.n_samples, *located.location_shape)
        if bitmaps.shape[1:] != wanted:
            raise ValueError(
                f"bitmaps must be [unit, sample, *location] with {wanted} after the units, as the "
                f"table; got {bitmaps.shape}."
            )
        object.__setattr__(self, "bitmaps", bitmaps)

    @property
    def n_units(self) -> int:
        return len(self.bitmaps)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(repr(self.bitmaps.shape).encode(), digest_size=16)
        for bitmap in self.bitmaps:
            digest.update(np.packbits(bitmap).tobytes())
        return digest.hexdigest()

    def counts(
        self,
        units: Sequence[int],
        *,
        order: Int[np.ndarray, " samples"] | None = None,
        shifts: Int[np.ndarray, "samples two"] | None = None,
    ) -> list[NeuronCounts]:
        chosen = self.bitmaps[list(units)]
        if order is not None:
            chosen = chosen[:, order]
        if shifts is not None:
            chosen = roll_maps(chosen, shifts)
        return self.table.count_many(chosen)

    def bitmap(self, unit: int) -> Bool[np.ndarray, "samples *location"]:
        return np.asarray(self.bitmaps[unit])

    def sample_bitmaps(
        self, sample: int, units: Sequence[int]
    ) -> Bool[np.ndarray, "units *location"]:
        return np.asarray(self.bitmaps[list(units), sample])


def roll_maps(
    maps: Bool[np.ndarray, "units samples rows columns"], shifts: Int[np.ndarray, "samples two"]
) -> Bool[np.ndarray, "units samples rows columns"]:
    """Each sample's map rolled by its own rows and columns; what leaves comes in again."""
    _, samples, rows, columns = maps.shape
    row = (np.arange(rows)[None, :] - shifts[:, :1]) % rows
    column = (np.arange(columns)[None, :] - shifts[:, 1:]) % columns
    sample = np.arange(samples)[:, None, None]
    return maps[:, sample, row[:, :, None], column[:, None, :]]
