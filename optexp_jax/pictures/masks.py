"""Masks at the table's resolution: of formulas, and of units on the samples that are shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.formulas.formula import Formula
from optexp_jax.pictures.missing import NoPicturesError
from optexp_jax.runs.sources import HasSampleBitmaps, UnitSource

UNITS_AT_ONCE = 64
"""Whose activations in a sample are up-sampled together."""


@dataclass(frozen=True, eq=False)
class UnitMask:
    """Where a unit is active in a sample, and where its formula holds."""

    unit: int
    sample: int
    active: Bool[np.ndarray, "rows columns"]
    held: Bool[np.ndarray, "rows columns"]
    """Nowhere, if there is no formula."""


def grid_shape(table: ConceptTable) -> tuple[int, int]:
    """Rows and columns of a sample; a sample of one location is one cell."""
    if table.sample_map is None:
        raise NoPicturesError(
            "There are no maps: this table was made of counts alone (from_signatures). Build it "
            "from masks, label maps or a dataset."
        )
    match table.sample_map.location_shape:
        case (rows, columns):
            return rows, columns
        case ():
            return 1, 1
        case other:
            raise NoPicturesError(
                f"The locations of this table have shape {other}, which is not rows and columns."
            )


def signature_grid(table: ConceptTable, sample: int) -> Int32[np.ndarray, "rows columns"]:
    """The signature of each location of a sample."""
    shape = grid_shape(table)
    if not 0 <= sample < table.n_samples:
        raise ValueError(f"There is no sample {sample}: they are 0 to {table.n_samples - 1}.")
    return table.signature_map(sample, sample + 1).reshape(shape)


def formula_mask(
    table: ConceptTable, formula: Formula | str | None, sample: int
) -> Bool[np.ndarray, "rows columns"]:
    """Where a formula, or a concept by its name, holds in a sample; None holds nowhere."""
    grid = signature_grid(table, sample)
    if formula is None:
        return np.zeros(grid.shape, np.bool_)
    return table.holds(Formula.concept(formula) if isinstance(formula, str) else formula)[grid]


def unit_masks(
    source: UnitSource,
    shown: Mapping[int, Sequence[int]],
    formulas: Mapping[int, Formula | None],
) -> Iterator[UnitMask]:
    """Masks of the samples that are shown of each unit, sample by sample in ascending order.

    Maps and activations are read once, in blocks; what is held does not grow with the samples.
    """
    table = source.table
    shape = grid_shape(table)
    held = {unit: _holds(table, formulas.get(unit)) for unit in shown}
    by_sample: dict[int, list[int]] = {}
    for unit, samples in shown.items():
        for sample in dict.fromkeys(samples):
            if not 0 <= sample < table.n_samples:
                raise ValueError(
                    f"There is no sample {sample}: they are 0 to {table.n_samples - 1}."
                )
            by_sample.setdefault(sample, []).append(unit)
    reader = source if isinstance(source, HasSampleBitmaps) else _Held(source, shown)
    samples = sorted(by_sample)
    for sample, grid in zip(samples, _grids(table, samples, shape), strict=True):
        for begin in range(0, len(by_sample[sample]), UNITS_AT_ONCE):
            units = by_sample[sample][begin : begin + UNITS_AT_ONCE]
            bitmaps = reader.sample_bitmaps(sample, units).reshape(len(units), *shape)
            for unit, active in zip(units, bitmaps, strict=True):
                yield UnitMask(unit, sample, active, held[unit][grid])


def _holds(table: ConceptTable, formula: Formula | None) -> Bool[np.ndarray, " signatures"]:
    if formula is None:
        return np.zeros(len(table.signatures), np.bool_)
    return table.holds(formula)


def _grids(
    table: ConceptTable, samples: Sequence[int], shape: tuple[int, int]
) -> Iterator[Int32[np.ndarray, "rows columns"]]:
    """Signature maps of ascending samples; a chunk on disk is read once."""
    located = table.require_map("unit_masks")
    patches = table.patches
    for sample, ranks in zip(samples, located.rows(np.array(samples, np.int64)), strict=True):
        yield patches.signature[patches.indptr[sample] + ranks].reshape(shape)


class _Held:
    """Bitmaps of a source that gives whole units only: packed, and of the shown samples alone."""

    def __init__(self, source: UnitSource, shown: Mapping[int, Sequence[int]]):
        located = source.table.require_map("unit_masks")
        self._shape, self._size = located.location_shape, located.sample_size
        self._packed: dict[tuple[int, int], np.ndarray] = {}
        for unit, samples in shown.items():
            bitmap = source.bitmap(unit)
            for sample in samples:
                self._packed[unit, sample] = np.packbits(bitmap[sample].reshape(-1))

    def sample_bitmaps(
        self, sample: int, units: Sequence[int]
    ) -> Bool[np.ndarray, "units *location"]:
        bits = [np.unpackbits(self._packed[unit, sample], count=self._size) for unit in units]
        return np.stack(bits).astype(np.bool_).reshape(len(units), *self._shape)
