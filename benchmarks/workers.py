"""Worker processes: two of one thread each against one such worker, on the same units.

    python benchmarks/workers.py

Workers are started and have compiled everything before the clock starts, as in a run of many
units. Each round does a whole run, from claiming units to storing them.
"""

import argparse
import functools
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import Figure, benchmark_parser, interleave, report, say

import optexp_jax as ox
from optexp_jax.runs import AbstractOpener, LocalWorkers, UnitResult, explain_layer
from optexp_jax.runs.shared import open_shared_table, share_table
from optexp_jax.stand_ins import counted_broden, counted_unit


@dataclass(frozen=True, eq=False)
class Generated:
    """Units that were counted before, so that the clock measures searches and the run."""

    table: ox.ConceptTable
    folder: Path
    n_units: int
    fingerprint: str = "generated"

    def counts(
        self,
        units: Sequence[int],
        *,
        order: np.ndarray | None = None,
        shifts: np.ndarray | None = None,
    ) -> list[ox.NeuronCounts]:
        stored = [np.load(self.folder / f"{each}.npy") for each in units]
        return [ox.NeuronCounts.from_patches(self.table, *arrays) for arrays in stored]

    def bitmap(self, unit: int) -> np.ndarray:
        raise NotImplementedError("The table is made of counts.")


@dataclass(frozen=True)
class SharedGenerated(AbstractOpener):
    """Opens such units over a table that all workers map."""

    table: str
    folder: str
    n_units: int

    def open(self) -> Generated:
        return Generated(open_shared_table(Path(self.table)), Path(self.folder), self.n_units)


def store_units(table: ox.ConceptTable, folder: Path, n_units: int) -> None:
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


def main(argv: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__doc__ or "", "workers")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--units", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--regions", type=int, default=950_000, help="size of the table")
    arguments = parser.parse_args(argv)

    say("Building the Broden-like table")
    table = counted_broden(n_regions=arguments.regions)
    say(repr(table))
    method = ox.Optimal(length=3)
    with tempfile.TemporaryDirectory() as folder:
        shared = share_table(table, Path(folder))
        store_units(table, Path(folder), arguments.units)
        layer = SharedGenerated(str(shared), folder, arguments.units)
        size = sum(path.stat().st_size for path in shared.iterdir()) / 2**20
        with LocalWorkers(1, threads=1) as one, LocalWorkers(2) as two:
            found: dict[str, list[UnitResult]] = {}
            used: dict[str, float] = {}

            def work(name: str, workers: LocalWorkers) -> None:
                before = processor_seconds(workers.pids)
                with tempfile.TemporaryDirectory(dir=folder) as run:
                    done = explain_layer(Path(run) / "run", layer, method, executor=workers)
                    found[name] = done.results
                used[name] = processor_seconds(workers.pids) - before

            timings = interleave(
                {
                    "one": functools.partial(work, "one", one),
                    "two": functools.partial(work, "two", two),
                },
                arguments.rounds,
            )
            private = max(private_megabytes(pid) for pid in (*one.pids, *two.pids))
    pairs = zip(found["one"], found["two"], strict=True)
    differing = sum(not a.same_finding(b) for a, b in pairs)
    ratio = timings["two"].ratio_to(timings["one"])
    figures = [
        Figure("one worker, a unit", timings["one"].median / arguments.units, "s"),
        Figure("two workers, a unit", timings["two"].median / arguments.units, "s"),
        Figure("time of two over time of one", ratio, "", 1 / 1.6, "1.6 times as fast"),
        Figure(
            "processor time of two over that of one",
            used["two"] / used["one"],
            note="1 if they do not slow each other down; says what an idle machine would do",
        ),
        Figure("units that differ", differing, "", 0),
        Figure("arrays that workers share", size, "MiB"),
        Figure("memory of a worker that it does not share", private, "MiB"),
    ]
    settings = {"units": arguments.units, "rounds": arguments.rounds, "table": repr(table)}
    return report("Worker processes", figures, settings, arguments.json)


if __name__ == "__main__":
    raise SystemExit(main())
