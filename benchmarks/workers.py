"""Worker processes: two of one thread each against one such worker, on the same units.

    python benchmarks/workers.py

Workers are started and have compiled everything before the clock starts, as in a run of many
units. Each round does a whole run, from claiming units to storing them.
"""

import argparse
import functools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from broden_like import broden_like, unit
from harness import Figure, benchmark_parser, interleave, report, say

import optexp_jax as ox
from optexp_jax.runs import LocalWorkers, Opener, UnitResult, explain_layer
from optexp_jax.runs.shared import open_shared_table, share_table


@dataclass(frozen=True, eq=False)
class Generated:
    """Units made on the spot, so that the clock measures searches and the run around them."""

    table: ox.ConceptTable
    n_units: int
    fingerprint: str = "generated"

    def counts(
        self,
        units: Sequence[int],
        *,
        order: np.ndarray | None = None,
        shifts: np.ndarray | None = None,
    ) -> list[ox.NeuronCounts]:
        return [_counts(self.table, each) for each in units]

    def bitmap(self, unit: int) -> np.ndarray:
        raise NotImplementedError("The table is made of counts.")


@functools.cache
def _counts(table: ox.ConceptTable, seed: int) -> ox.NeuronCounts:
    return unit(table, 1000 + seed, "mixed").counts


@dataclass(frozen=True)
class SharedGenerated(Opener):
    """Opens such units over a table that all workers map."""

    folder: str
    n_units: int

    def open(self) -> Generated:
        return Generated(open_shared_table(Path(self.folder)), self.n_units)


def private_megabytes(pid: int) -> float:
    """Memory that a process shares with no other."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = [int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")]
    return sum(kilobytes) / 1024


def main(argv: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__doc__ or "", "workers")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--units", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--regions", type=int, default=950_000, help="size of the table")
    arguments = parser.parse_args(argv)

    say("Building the Broden-like table")
    table = broden_like(n_regions=arguments.regions)
    say(repr(table))
    method = ox.Optimal(length=3)
    with tempfile.TemporaryDirectory() as folder:
        shared = share_table(table, Path(folder))
        layer = SharedGenerated(str(shared), arguments.units)
        size = sum(path.stat().st_size for path in shared.iterdir()) / 2**20
        with LocalWorkers(1, threads=1) as one, LocalWorkers(2) as two:
            found: dict[str, list[UnitResult]] = {}

            def work(name: str, workers: LocalWorkers) -> None:
                with tempfile.TemporaryDirectory(dir=folder) as run:
                    done = explain_layer(Path(run) / "run", layer, method, executor=workers)
                    found[name] = done.results

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
        Figure("units that differ", differing, "", 0),
        Figure("arrays that workers share", size, "MiB"),
        Figure("memory of a worker that it does not share", private, "MiB"),
    ]
    settings = {"units": arguments.units, "rounds": arguments.rounds, "table": repr(table)}
    return report("Worker processes", figures, settings, arguments.json)


if __name__ == "__main__":
    raise SystemExit(main())
