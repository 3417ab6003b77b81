"""LayerUnits: the units of a layer, ready to be explained."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int, Int64

from optexp_jax.activations.counting import PairKernel, Thresholds, count_layer, mask_shape
from optexp_jax.activations.ranges import AbstractRangeRule, ActivationRange, TopQuantile
from optexp_jax.activations.store import ActivationStore
from optexp_jax.activations.upsample import as_maps, upsample
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.datasets.provenance import find_provenance

BLOCK_BYTES = 2**28
"""Of raw maps that are held at once: all samples of some units."""
CACHED_LOCATIONS = 2**17
"""Up-sampled locations that stay in a core's cache while a bitmap is made."""


@dataclass(frozen=True, eq=False)
class LayerUnits:
    """A table, stored activations of a layer over its samples, and how to threshold them."""

    table: ConceptTable
    store: ActivationStore
    rule: AbstractRangeRule = field(default_factory=TopQuantile)
    _ranges: dict[int, ActivationRange] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        located = self.table.require_map("LayerUnits")
        if self.store.shape[0] != self.table.n_samples:
            raise ValueError(
                f"{self.store.path} holds activations of {self.store.shape[0]} samples, but the "
                f"table has {self.table.n_samples}. Make both from the same dataset."
            )
        mask_shape(located.location_shape, self.store.shape[2:])

    @classmethod
    def open(
        cls,
        table: ConceptTable | str | Path,
        store: str | Path,
        rule: AbstractRangeRule | None = None,
    ) -> "LayerUnits":
        """Open a table and a store by their paths; they must be of the same samples."""
        opened, activations = table, ActivationStore.open(store)
        if not isinstance(opened, ConceptTable):
            check_same_samples(opened, activations)
            opened = ConceptTable.load(opened)
        return cls(opened, activations, TopQuantile() if rule is None else rule)

    @cached_property
    def _reader(self) -> "_ChunkReader":
        return _ChunkReader(self.store)

    @cached_property
    def _rows(self) -> "_RowReader":
        return _RowReader(self.store)

    @property
    def n_units(self) -> int:
        return self.store.shape[1]

    @property
    def fingerprint(self) -> str:
        """A checksum of everything that the counts depend on."""
        parts = (
            self.table.fingerprint,
            self.store.metadata.key.fingerprint,
            self.store.content,
            repr(self.rule),
        )
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def range_of(self, unit: int) -> ActivationRange:
        """The unit's range; one that is skipped says why."""
        self._check_units([unit])
        if unit in self._ranges:
            return self._ranges[unit]
        return self._learn_range(unit, self._reader.read(unit))

    def counts(
        self,
        units: Sequence[int],
        *,
        order: Int[np.ndarray, " samples"] | None = None,
        shifts: Int[np.ndarray, "samples 2"] | None = None,
        kernel: PairKernel | None = None,
    ) -> list[NeuronCounts]:
        """Active locations of some units, in one pass over the samples for as many as fit memory.

        For null models sample x of the table is shown the map of sample `order[x]`, and the
        up-sampled map is rolled by `shifts[x]` rows and columns.
        """
        self._check_units(units)
        found: list[NeuronCounts] = []
        for group, maps in self._blocks(units):
            ranges = [self._learn_range(unit, maps[:, k]) for k, unit in enumerate(group)]
            thresholds = Thresholds(
                np.array([each.low for each in ranges], np.float64),
                np.array([each.high for each in ranges], np.float64),
            )
            patches = count_layer(
                self.table,
                maps,
                thresholds,
                order=self._check_order(order),
                shifts=None if shifts is None else self._check_shifts(shifts),
                kernel=kernel,
            )
            found += [
                NeuronCounts.from_patches(self.table, each.patches, each.counts) for each in patches
            ]
        return found

    def bitmap(self, unit: int) -> Bool[np.ndarray, "samples *location"]:
        """Where a unit is active: the plain reference, which shares no code with `counts` but
        reading and the weights of up-sampling."""
        chosen = self.range_of(unit)
        located = self.table.require_map("bitmap")
        shape = mask_shape(located.location_shape, self.store.shape[2:])
        bits = np.empty((self.table.n_samples, located.sample_size), np.bool_)
        maps = as_maps(self._reader.read(unit))
        step = max(1, CACHED_LOCATIONS // located.sample_size)
        for start in range(0, len(maps), step):
            stop = min(start + step, len(maps))
            values = upsample(maps[start:stop], shape)
            inside = (values > chosen.low) & (values < chosen.high)
            bits[start:stop] = inside.reshape(stop - start, -1)
        return bits.reshape(self.table.n_samples, *located.location_shape)

    def sample_bitmaps(
        self, sample: int, units: Sequence[int]
    ) -> Bool[np.ndarray, "units *location"]:
        """Where some units are active in one sample, as `bitmap` has it.

        Samples in ascending order are read from the store once.
        """
        self._check_units(units)
        located = self.table.require_map("sample_bitmaps")
        shape = mask_shape(located.location_shape, self.store.shape[2:])
        ranges = [self.range_of(unit) for unit in units]
        low = np.array([each.low for each in ranges], np.float64).reshape(-1, 1, 1)
        high = np.array([each.high for each in ranges], np.float64).reshape(-1, 1, 1)
        values = upsample(as_maps(self._rows.read(sample)[list(units)]), shape)
        return ((values > low) & (values < high)).reshape(len(units), *located.location_shape)

    def peaks(self, unit: int) -> Float32[np.ndarray, " samples"]:
        """The highest raw cell of each sample below the upper end of the unit's range; minus
        infinity where there is none."""
        high = self.range_of(unit).high
        cells = self._reader.read(unit).reshape(self.table.n_samples, -1)
        return np.where(cells < high, cells, np.float32(-np.inf)).max(axis=1)

    def _learn_range(
        self, unit: int, maps: Float32[np.ndarray, "samples rows columns"]
    ) -> ActivationRange:
        if unit not in self._ranges:
            self._ranges[unit] = self.rule.range_of(unit, maps.reshape(-1))
        return self._ranges[unit]

    def _blocks(
        self, units: Sequence[int]
    ) -> Iterator[tuple[list[int], Float32[np.ndarray, "samples units rows columns"]]]:
        """Groups of the units in their order, with their maps."""
        n_samples, _, rows, columns = self.store.shape
        most = max(1, BLOCK_BYTES // (n_samples * rows * columns * 4))
        for begin in range(0, len(units), most):
            group = list(units[begin : begin + most])
            maps = np.empty((n_samples, len(group), rows, columns), np.float32)
            for place, unit in enumerate(group):
                maps[:, place] = self._reader.read(unit)
            yield group, as_maps(maps)

    def _check_units(self, units: Sequence[int]) -> None:
        for unit in units:
            if not 0 <= unit < self.n_units:
                raise ValueError(
                    f"There is no unit {unit}: this layer has units 0 to {self.n_units - 1}."
                )

    def _check_order(
        self, order: Int[np.ndarray, " samples"] | None
    ) -> Int64[np.ndarray, " samples"] | None:
        n_samples = self.table.n_samples
        if order is None:
            return None
        if order.shape != (n_samples,) or order.min() < 0 or order.max() >= n_samples:
            raise ValueError(
                f"order must name a sample, 0 to {n_samples - 1}, for each of the {n_samples}; got "
                f"shape {order.shape}."
            )
        return order.astype(np.int64)

    def _check_shifts(self, shifts: Int[np.ndarray, "samples 2"]) -> Int64[np.ndarray, "samples 2"]:
        if shifts.shape != (self.table.n_samples, 2):
            raise ValueError(
                f"shifts must be [sample, 2] = {(self.table.n_samples, 2)}; got {shifts.shape}."
            )
        return shifts.astype(np.int64)


def check_same_samples(table: str | Path, store: ActivationStore) -> None:
    """Refuse a stored table whose samples are not those of the activations, as far as both tell."""
    provenance = find_provenance(table)
    known = store.metadata.samples
    if provenance is None or known is None:
        return
    if known != provenance.samples:
        raise ValueError(
            f"{table} and {store.path} are not of the same samples in the same order. Record the "
            "activations for this table: optexp activations --data TABLE ..., or in Python "
            "find_images(dataset, table=TABLE) with the dataset that it was built from."
        )


class _ChunkReader:
    """Reads one unit after another, keeping the chunks that the last one was in."""

    def __init__(self, store: ActivationStore):
        self._store = store
        self._first = 0
        self._held = np.empty((0, 0, 0, 0), np.float32)

    def read(self, unit: int) -> Float32[np.ndarray, "samples rows columns"]:
        """All maps of a unit."""
        if not self._first <= unit < self._first + self._held.shape[1]:
            per_chunk = self._store.units_per_chunk
            self._first = unit - unit % per_chunk
            stop = min(self._first + per_chunk, self._store.shape[1])
            self._held = self._store.units(self._first, stop)
        return self._held[:, unit - self._first]


class _RowReader:
    """Reads one sample after another, keeping the row of chunks that the last one was in."""

    def __init__(self, store: ActivationStore):
        self._store = store
        self._first = 0
        self._held = np.empty((0, 0, 0, 0), np.float32)

    def read(self, sample: int) -> Float32[np.ndarray, "units rows columns"]:
        """The maps of all units in a sample."""
        if not self._first <= sample < self._first + len(self._held):
            per_chunk = self._store.samples_per_chunk
            self._first = sample - sample % per_chunk
            stop = min(self._first + per_chunk, self._store.shape[0])
            self._held = self._store.block(self._first, stop)
        return self._held[sample - self._first]
