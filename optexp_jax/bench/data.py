"""What the suites measure on: stand-ins for the paper's datasets, a hard set, or real images.

Stand-ins have the shapes of the datasets that they are named after, and nothing else of them.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.datasets import DatasetSpec, build_table
from optexp_jax.stand_ins import (
    BrodenGroups,
    Setting,
    broden_scenes,
    disjoint_scenes,
    hard_cases,
    make_planted,
    plant_layer,
)

MOST_BITMAP = 2**26
"""Locations of the largest unit that is kept as a bitmap; beyond, it is kept as its counts."""
SEED = 0


@dataclass(frozen=True, eq=False)
class BenchUnit:
    """A unit: its counts and, if it is small, where it is active."""

    counts: NeuronCounts
    bitmap: Bool[np.ndarray, "samples *location"] | None = None

    @property
    def neuron(self) -> Any:
        """What a method begins with: the bitmap if there is one, so that counting it is timed."""
        return self.counts if self.bitmap is None else self.bitmap


@dataclass(frozen=True, eq=False)
class BenchData:
    """A table and units over it."""

    name: str
    about: str
    """What it stands for."""
    table: ConceptTable
    units: tuple[BenchUnit, ...]


@dataclass(frozen=True)
class DataSize:
    """How large the stand-ins are: those of a whole run or of a quick one."""

    units: int = 4
    low_samples: int = 500
    intermediate: tuple[int, int] = (847, 2000)
    """Concepts and samples."""
    high_samples: int = 22_210
    hard_samples: int = 2000
    groups: BrodenGroups = field(default_factory=BrodenGroups)
    size: int = 112

    @classmethod
    def quick(cls) -> "DataSize":
        return cls(
            units=2,
            low_samples=100,
            intermediate=(200, 250),
            high_samples=250,
            hard_samples=100,
            groups=BrodenGroups().scaled(0.05),
            size=56,
        )


def stand_ins(size: DataSize) -> Iterator[BenchData]:
    """The stand-ins, smallest first; each is made when it is asked for."""
    yield overlapping_data(size.units)
    low = disjoint_scenes(19, size.low_samples, size=size.size, seed=SEED)
    yield planted_data("low", _about("Cityscapes", low), low, size.units)
    n_concepts, n_samples = size.intermediate
    disjoint = disjoint_scenes(n_concepts, n_samples, size=size.size, seed=SEED)
    about = _about("ADE20K-Full", disjoint)
    yield planted_data("intermediate", about, disjoint, size.units)
    yield high_data(size)


def high_data(size: DataSize) -> BenchData:
    """Many concepts that overlap in groups."""
    table = broden_scenes(size.high_samples, groups=size.groups, size=size.size, seed=SEED)
    return planted_data("high", _about("Broden", table), table, size.units)


def overlapping_data(n_units: int) -> BenchData:
    """Thirty concepts that overlap: small enough for every method there is."""
    setting = Setting(
        "30 concepts", samples=200, size=28, objects=11, parts=8, materials=4, colours=4, scenes=3
    )
    planted = make_planted(setting, n_units, SEED)
    table = planted.table
    units = [BenchUnit(table.count(unit.bitmap), unit.bitmap) for unit in planted.units]
    about = f"{table.n_concepts} overlapping concepts, generated"
    return BenchData("overlapping", about, table, tuple(units))


def hard_data(size: DataSize) -> Iterator[BenchData]:
    """Data that makes searches long, one reason a dataset."""
    for case in hard_cases(
        size.units, n_samples=size.hard_samples, groups=size.groups, size=size.size, seed=SEED
    ):
        units = tuple(_with_bitmap(case.table, counts) for counts in case.units)
        about = f"{case.table.n_concepts} concepts, generated"
        yield BenchData(f"hard, {case.name}", about, case.table, units)


def real_data(source: str, n_units: int) -> Iterator[BenchData]:
    """Planted units over real annotations: a stored table, or a dataset such as `folder:ROOT`.

    A table that is built for it is there until the next dataset is asked for.
    """
    if Path(source).exists():
        yield planted_data("given", source, ConceptTable.load(source), n_units)
        return
    spec = DatasetSpec.parse(source)
    with tempfile.TemporaryDirectory(prefix="optexp-bench-") as folder:
        table = build_table(spec.open(), Path(folder) / "table.zarr", spec=spec)
        yield planted_data("given", str(spec), table, n_units)


def planted_data(name: str, about: str, table: ConceptTable, n_units: int) -> BenchData:
    """Units that respond to concepts of a table, with noise."""
    layer = plant_layer(table, n_units, seed=SEED)
    if table.n_locations > MOST_BITMAP:
        return BenchData(name, about, table, tuple(BenchUnit(each) for each in layer.counts()))
    bitmaps = [layer.bitmap(unit) for unit in range(n_units)]
    units = tuple(BenchUnit(table.count(bitmap), bitmap) for bitmap in bitmaps)
    return BenchData(name, about, table, units)


def _with_bitmap(table: ConceptTable, counts: NeuronCounts) -> BenchUnit:
    """A unit with a bitmap that has its counts: the first locations of each patch are active."""
    located = table.sample_map
    if located is None or table.n_locations > MOST_BITMAP:
        return BenchUnit(counts)
    ranks = located.block(0, located.n_samples).astype(np.int64)
    patch = (table.patches.indptr[:-1, None] + ranks.reshape(len(ranks), -1)).reshape(-1)
    order = np.argsort(patch, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(patch, minlength=len(table.patches)))])
    place = np.arange(len(patch)) - starts[patch[order]]
    active = np.zeros(len(patch), np.bool_)
    active[order] = place < counts.patch_inside(table)[patch[order]]
    return BenchUnit(counts, active.reshape(located.n_samples, *located.location_shape))


def _about(dataset: str, table: ConceptTable) -> str:
    return f"stand-in for {dataset}: {table.n_concepts} concepts x {table.n_samples} samples"
