"""Building a concept table and counting units on it: time, memory and compression.

The build runs in processes of its own: one for time and the rise of the resident size, one for the
most that Python and numpy held allocated (`tracemalloc`, which slows the build). The label maps are
there before and do not count. Generating the data is not timed.
"""

import dataclasses
import json
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.resident import forget_peak, peak_bytes, resident_bytes
from optexp_jax.bench.turns import Spread, Tell, Turns, interleave, ratios
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.counting import (
    BlockKernel,
    count_active_patches,
    count_on_device,
    count_on_host,
)
from optexp_jax.stand_ins import make_annotations, make_bitmaps

ACTIVE, SEED, MEGABYTE = 0.005, 0, 10**6


@dataclass(frozen=True)
class TableSizes:
    """Samples of how many locations a side, and units."""

    samples: int = 500
    size: int = 112
    units: int = 256
    device_units: int = 16

    @classmethod
    def quick(cls) -> "TableSizes":
        return cls(samples=100, size=56, units=32, device_units=4)


@dataclass(frozen=True)
class TableBuild:
    """What building a table took."""

    seconds: float
    resident_bytes: int
    traced_bytes: int | None


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """Build, then count."""
    sizes = TableSizes.quick() if plan.quick else TableSizes()
    tell(f"building a table of {sizes.samples} samples of {sizes.size}x{sizes.size}")
    table = _make(sizes)
    figures = [*_build_figures(sizes, table, plan), *_counting_figures(sizes, table, plan, tell)]
    settings = {**dataclasses.asdict(sizes), "turns": plan.turns, "table": repr(table)}
    return SuiteReport("table", "Concept tables", tuple(figures), settings=settings)


def _make(sizes: TableSizes) -> ConceptTable:
    made = make_annotations(sizes.samples, sizes.size, SEED)
    return ConceptTable.from_label_maps(made.maps, made.layers, made.scenes)


def build_here(sizes: TableSizes, traced: bool) -> TableBuild:
    """Build a table in this process, which should do nothing else."""
    made = make_annotations(sizes.samples, sizes.size, SEED)
    if traced:
        tracemalloc.start()
    forget_peak()
    before = resident_bytes()
    start = time.perf_counter()
    ConceptTable.from_label_maps(made.maps, made.layers, made.scenes)
    seconds = time.perf_counter() - start
    rise = max(0, peak_bytes() - before)
    return TableBuild(seconds, rise, tracemalloc.get_traced_memory()[1] if traced else None)


def _build_apart(sizes: TableSizes, kind: str) -> TableBuild:
    content = json.dumps(dataclasses.asdict(sizes))
    command = [sys.executable, "-m", "optexp_jax.bench.suites.table", kind, content]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return TableBuild(**json.loads(done.stdout))


def _build_figures(sizes: TableSizes, table: ConceptTable, plan: BenchPlan) -> list[BenchFigure]:
    build = _build_apart(sizes, "plain")
    traced = _build_apart(sizes, "traced").traced_bytes
    assert traced is not None
    dense = table.n_concepts * table.n_locations / 8
    seconds, megabytes = (None, None) if plan.quick else (10.0, 500.0)
    return [
        BenchFigure("build", build.seconds, "s", seconds, "a process of its own"),
        BenchFigure("peak resident", build.resident_bytes / MEGABYTE, "MB", megabytes, "rise"),
        BenchFigure("peak allocated", traced / MEGABYTE, "MB", megabytes, "tracemalloc"),
        BenchFigure("signatures", len(table.signatures)),
        BenchFigure("patches", len(table.patches), note="(sample, signature) pairs"),
        BenchFigure("dense bits", dense / MEGABYTE, "MB", note="concepts x locations / 8"),
        BenchFigure("table", dense / table.compression / MEGABYTE, "MB"),
        BenchFigure("compression", table.compression, "x", note="dense bits / table"),
    ]


def _counting_figures(
    sizes: TableSizes, table: ConceptTable, plan: BenchPlan, tell: Tell
) -> list[BenchFigure]:
    tell(f"generating {sizes.units} units")
    bitmaps = make_bitmaps(sizes.units, sizes.samples, sizes.size, ACTIVE, SEED)
    turns = interleave(
        {"bitmaps.sum()": bitmaps.sum, "count_many": lambda: table.count_many(bitmaps)},
        plan.turns,
        tell=tell,
    )
    few = bitmaps[: sizes.device_units]
    flat = few.reshape(len(few), sizes.samples, -1)
    kernels = interleave(
        {
            "sum of a few": few.sum,
            "host kernel": lambda: _count(table, flat, count_on_host),
            "device kernel": lambda: _count(table, flat, count_on_device),
        },
        plan.turns,
        tell=tell,
    )
    note, limit = f"{len(few)} units, over one pass", None if plan.quick else 4.0
    reading = kernels["sum of a few"]
    return [
        BenchFigure("bitmaps.sum()", turns["bitmaps.sum()"].median, "s", note="one pass"),
        _over("count_many / one pass", turns["count_many"], turns["bitmaps.sum()"], "", limit),
        _over("host kernel / one pass", kernels["host kernel"], reading, note),
        _over("device kernel / one pass", kernels["device kernel"], reading, note),
        BenchFigure("device kernel, compiling", kernels["device kernel"].compiling, "s"),
    ]


def _count(
    table: ConceptTable, flat: Bool[np.ndarray, "units samples locations"], kernel: BlockKernel
) -> None:
    count_active_patches(table, flat, kernel)


def _over(
    name: str,
    work: Turns[object],
    reference: Turns[object],
    note: str,
    limit: float | None = None,
) -> BenchFigure:
    spread = Spread.of(ratios(work, reference))
    return BenchFigure(name, spread.median, "x", limit, note, spread, watched=True)


if __name__ == "__main__":
    built = build_here(TableSizes(**json.loads(sys.argv[2])), traced=sys.argv[1] == "traced")
    print(json.dumps(dataclasses.asdict(built)))
