"""Worker processes: two of one thread each against one such worker, on the same units.

Workers are started and have compiled everything before the clock starts, as in a run of many units.
Each turn does a whole run, from claiming units to storing them.
"""

import functools
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.turns import Spread, Tell, interleave, ratios
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.methods import Optimal
from optexp_jax.runs import AbstractOpener, LocalWorkers, UnitResult, explain_layer
from optexp_jax.runs.shared import open_shared_table, share_table
from optexp_jax.stand_ins import counted_broden, counted_unit

UNITS, QUICK_UNITS = 48, 8
REGIONS, QUICK_REGIONS = 950_000, 30_000


@dataclass(frozen=True, eq=False)
class CountedLayer:
    """Units that were counted before, so that the clock measures searches and the run."""

    table: ConceptTable
    folder: Path
    n_units: int
    fingerprint: str = "generated"

    def counts(
        self,
        units: Sequence[int],
        *,
        order: np.ndarray | None = None,
        shifts: np.ndarray | None = None,
    ) -> list[NeuronCounts]:
        stored = [np.load(self.folder / f"{each}.npy") for each in units]
        return [NeuronCounts.from_patches(self.table, *arrays) for arrays in stored]

    def bitmap(self, unit: int) -> np.ndarray:
        raise NotImplementedError("The table is made of counts.")


@dataclass(frozen=True)
class SharedCountedLayer(AbstractOpener):
    """Opens such units over a table that all workers map."""

    table: str
    folder: str
    n_units: int

    def open(self) -> CountedLayer:
        return CountedLayer(open_shared_table(Path(self.table)), Path(self.folder), self.n_units)


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """One worker and two, in turns."""
    n_units = QUICK_UNITS if plan.quick else UNITS
    n_regions = QUICK_REGIONS if plan.quick else REGIONS
    tell("making data")
    table = counted_broden(n_regions=n_regions)
    method = Optimal(length=3)
    with tempfile.TemporaryDirectory(prefix="optexp-bench-") as folder:
        shared = share_table(table, Path(folder))
        _store_units(table, Path(folder), n_units)
        layer = SharedCountedLayer(str(shared), folder, n_units)
        size = sum(path.stat().st_size for path in shared.iterdir()) / 2**20
        with LocalWorkers(1, threads=1) as one, LocalWorkers(2) as two:
            used: dict[str, float] = {}

            def work(name: str, workers: LocalWorkers) -> list[UnitResult]:
                before = processor_seconds(workers.pids)
                with tempfile.TemporaryDirectory(dir=folder) as run:
                    found = explain_layer(Path(run) / "run", layer, method, executor=workers)
                    results = found.results
                used[name] = processor_seconds(workers.pids) - before
                return results

            turns = interleave(
                {
                    "one worker": functools.partial(work, "one worker", one),
                    "two workers": functools.partial(work, "two workers", two),
                },
                plan.turns,
                tell=tell,
            )
            private = max(private_megabytes(pid) for pid in (*one.pids, *two.pids))
    alone, together = turns["one worker"], turns["two workers"]
    pairs = zip(alone.result or [], together.result or [], strict=True)
    differing = sum(not a.same_finding(b) for a, b in pairs)
    spread = Spread.of(ratios(together, alone))
    limit = None if plan.quick else 1 / 1.6
    figures = (
        BenchFigure("one worker, a unit", alone.median / n_units, "s"),
        BenchFigure("two workers, a unit", together.median / n_units, "s"),
        BenchFigure(
            "two workers / one worker",
            spread.median,
            "",
            limit,
            "1.6 times as fast",
            spread,
            watched=True,
        ),
        BenchFigure(
            "processor time of two / that of one",
            used["two workers"] / used["one worker"],
            note="1 if they do not slow each other down; says what an idle machine would do",
        ),
        BenchFigure("units that differ", differing, "", 0),
        BenchFigure("arrays that workers share", size, "MiB"),
        BenchFigure("memory of a worker that it does not share", private, "MiB"),
    )
    settings = {"units": n_units, "turns": plan.turns, "table": repr(table)}
    return SuiteReport("workers", "Worker processes", figures, settings=settings)


def _store_units(table: ConceptTable, folder: Path, n_units: int) -> None:
    for k in range(n_units):
        counts = counted_unit(table, 1000 + k, "mixed").counts
        np.save(folder / f"{k}.npy", np.stack([counts.active_patches, counts.active_counts]))


def private_megabytes(pid: int) -> float:
    """Memory that a process shares with no other."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = [int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")]
    return sum(kilobytes) / 1024


def processor_seconds(pids: Sequence[int]) -> float:
    """Processor time that processes have used so far."""
    fields = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids
    ]
    return sum(int(ticks) for pair in fields for ticks in pair) / os.sysconf("SC_CLK_TCK")
