"""The tight search at the scale of Broden and of ADE20K, on generated data.

    python benchmarks/tight.py               all rows that end within minutes
    python benchmarks/tight.py --rows length3 hard

Prints what each kind of work takes after a warm-up unit, with the time that compilation took
apart, and writes the same as JSON. Every search has a time limit; one that reaches it counts as
infinite.
"""

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from harness import Figure, benchmark_parser, interleave, report, say
from jaxtyping import Bool
from peer import Peer, peer_version

import optexp_jax as ox
from optexp_jax.internal.transfers import Transfers, counted_transfers
from optexp_jax.stand_ins import (
    Setting,
    counted_ade20k,
    counted_broden,
    counted_unit,
    make_planted,
)

MIXED_UNITS = 20
LIKE_PEER = Setting(
    "30 concepts", samples=200, size=28, objects=11, parts=8, materials=4, colours=4, scenes=3
)
PEER_UNITS, PEER_BUDGET = 7, 400.0
HARD_KINDS = ("weak", "random", "broad", "dominant")
SMALLER, KERNEL_ROUNDS = 200_000, 5
"""Regions of the smaller table, and rounds, for kernels next to each other."""


@dataclass(frozen=True)
class Run:
    """One unit's search."""

    kind: str
    seconds: float
    explanation: ox.Explanation


def search(
    table: ox.ConceptTable,
    neurons: Sequence[tuple[str, ox.NeuronCounts]],
    method: ox.AbstractMethod,
) -> list[Run]:
    """Explain units one after another, telling each."""
    runs: list[Run] = []
    for kind, neuron in neurons:
        start = time.perf_counter()
        found = ox.explain(table, neuron, method)
        runs.append(Run(kind, time.perf_counter() - start, found))
        say(f"  {kind}: {runs[-1].seconds:.3f} s, {found}")
    return runs


def units(
    table: ox.ConceptTable, kinds: Sequence[str], seed: int
) -> list[tuple[str, ox.NeuronCounts]]:
    return [(kind, counted_unit(table, seed + k, kind).counts) for k, kind in enumerate(kinds)]


def summarise(
    name: str, runs: Sequence[Run], median: float | None, worst: float | None
) -> list[Figure]:
    """Median and worst seconds; a search that was stopped has taken forever."""
    stopped = [run.explanation.stats.stopped_by is not None for run in runs]
    seconds = [math.inf if stop else run.seconds for run, stop in zip(runs, stopped, strict=True)]
    note = f"{len(runs)} units"
    if any(stopped):
        note += f", {sum(stopped)} not proved in {max(run.seconds for run in runs):.0f} s"
    return [
        Figure(f"{name}, median", statistics.median(seconds), "s", median, note),
        Figure(f"{name}, worst", max(seconds), "s", worst, note),
    ]


def length_three(table: ox.ConceptTable, limit: float) -> list[Figure]:
    method = ox.Optimal(length=3, time_limit=limit)
    runs = search(table, units(table, ["mixed"] * MIXED_UNITS, 100), method)
    return summarise("length 3", runs, 0.5, 3.0)


def hard(table: ox.ConceptTable, limit: float) -> list[Figure]:
    method = ox.Optimal(length=3, time_limit=limit)
    runs = search(table, units(table, HARD_KINDS * 2, 200), method)
    return [
        Figure(f"length 3, {kind}", max(r.seconds for r in runs if r.kind == kind), "s", 5.0)
        for kind in HARD_KINDS
    ]


def length_four(table: ox.ConceptTable, limit: float) -> list[Figure]:
    method = ox.Optimal(length=4, time_limit=limit)
    (first,) = search(table, units(table, ["mixed"], 299), method)  # compiles
    mixed = search(table, units(table, ["mixed"] * 3, 300), method)
    dominant = search(table, units(table, ["dominant"], 310), method)
    weak = search(table, units(table, ["weak"] * 4, 320), method)
    figures = summarise("length 4", mixed, None, 5.0)
    figures += summarise("length 4, dominant", dominant, None, 120.0)
    figures += summarise("length 4, weak", weak, None, 5.0)
    gaps = [run.explanation.gap for run in (*mixed, *dominant, *weak)]
    return [
        *figures,
        Figure("length 4, largest gap left", max(gaps), "", None),
        Figure("length 4, first call, compilation included", first.seconds, "s"),
    ]


def disjoint(table: ox.ConceptTable, limit: float) -> list[Figure]:
    ade = counted_ade20k()
    figures: list[Figure] = []
    for length, must in ((3, 0.2), (8, 1.0)):
        method = ox.Optimal(length=length, time_limit=limit)
        search(ade, units(ade, ["mixed"], 400), method)
        runs = search(ade, units(ade, ["mixed"] * 5, 401), method)
        figures += summarise(f"ADE-like, disjoint, length {length}", runs, None, must)
    return figures


def beam(table: ox.ConceptTable, limit: float) -> list[Figure]:
    method = ox.Beam(length=3, size=5)
    search(table, units(table, ["mixed"], 500), method)
    runs = search(table, units(table, ["mixed"] * 3, 501), method)
    return summarise("guided beam, size 5, length 3", runs, None, 0.5)


def peer(table: ox.ConceptTable, limit: float) -> list[Figure]:
    """Units of 30 overlapping concepts, ours and the released code of earlier work in turns."""
    if peer_version() is None:
        say("compositional-explanations is not installed: no comparison")
        return []
    planted = make_planted(LIKE_PEER, PEER_UNITS, seed=0)
    bitmaps, method = [unit.bitmap for unit in planted.units], ox.Optimal(3, time_limit=limit)
    ratios: list[float] = []
    with Peer(planted.table, bitmaps, length=3, beam_size=5, threads=2) as other:
        for k, bitmap in enumerate(bitmaps):
            before = _many_times(planted.table, bitmap, method)
            theirs = other.run(k, "optimal", PEER_BUDGET)
            ours = statistics.median([*before, *_many_times(planted.table, bitmap, method)])
            seconds = PEER_BUDGET if theirs is None else theirs.seconds
            ratios.append(ours / seconds)
            found = ox.explain(planted.table, bitmap, method)
            say(f"  ours {ours:.4f} s, {found}; peer {theirs}; 1/{1 / ratios[-1]:.0f}")
    note = f"{len(ratios)} units, 1/{1 / max(ratios):.0f} to 1/{1 / min(ratios):.0f}"
    return [Figure("ours / peer, 30 concepts, median", statistics.median(ratios), "", 1e-3, note)]


def _many_times(
    table: ox.ConceptTable, bitmap: Bool[np.ndarray, "..."], method: ox.Optimal
) -> list[float]:
    """Seconds of a hundred searches, each of which takes some milliseconds."""
    taken: list[float] = []
    for _ in range(100):
        start = time.perf_counter()
        ox.explain(table, bitmap, method)
        taken.append(time.perf_counter() - start)
    return taken[1:]  # The first may compile.


def explain_with(
    choice: str, table: ox.ConceptTable, neuron: ox.NeuronCounts, method: ox.Optimal
) -> Transfers:
    """Explain a unit with the host's or the device's kernels; what was moved."""
    with ox.kernels(choice), counted_transfers() as moved:
        ox.explain(table, neuron, method)
    return moved


def kernels(table: ox.ConceptTable, limit: float) -> list[Figure]:
    """The device's kernels next to the host's, in turns, on this table and on a smaller one."""
    figures: list[Figure] = []
    method = ox.Optimal(length=3, time_limit=limit)
    for each in (counted_broden(n_regions=SMALLER), table):
        size = f"{len(each.signatures) // 1000} 000 signatures"
        ratios: list[float] = []
        back: list[int] = []
        for kind, neuron in units(each, ("mixed", *HARD_KINDS), 600):
            work = {
                choice: partial(explain_with, choice, each, neuron, method)
                for choice in ("host", "device")
            }
            timings = interleave(work, KERNEL_ROUNDS)
            ratios.append(timings["device"].ratio_to(timings["host"]))
            back.append(work["device"]().down)
            say(f"  {size}, {kind}: {ratios[-1]:.2f}, {back[-1] / 1e6:.2f} MB back")
        note = f"{min(ratios):.2f} to {max(ratios):.2f}"
        figures += [
            Figure(f"device / host kernels, {size}", statistics.median(ratios), "", 1.2, note),
            Figure(f"most bytes back for a unit, {size}", max(back) / 1e6, "MB", 4.0),
        ]
    return figures


def fresh(table: ox.ConceptTable, limit: float) -> list[Figure]:
    """The first search of a process, with JAX's cache of compiled programs empty and filled."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        for name, must in (("cold", 30.0), ("warm", 5.0)):
            done = subprocess.run(
                [sys.executable, __file__, "--first-call"],
                env={**os.environ, **settings},
                check=True,
                capture_output=True,
                text=True,
            )
            say(f"  {name}: {done.stdout.strip()} s")
            figures.append(
                Figure(f"first call of a process, {name} cache", float(done.stdout), "s", must)
            )
    return figures


def first_call() -> None:
    """Print the seconds of this process's first search."""
    table = counted_broden()
    neuron = counted_unit(table, 1).counts
    start = time.perf_counter()
    ox.explain(table, neuron, ox.Optimal(length=3))
    print(time.perf_counter() - start)


ROWS: dict[str, Callable[[ox.ConceptTable, float], list[Figure]]] = {
    "length3": length_three,
    "hard": hard,
    "length4": length_four,
    "disjoint": disjoint,
    "beam": beam,
    "peer": peer,
    "kernels": kernels,
    "fresh": fresh,
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__doc__ or "", "tight")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds a unit")
    parser.add_argument("--first-call", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.first_call:
        first_call()
        return 0

    say("Building the Broden-like table")
    table = counted_broden()
    say(repr(table))
    # The interpreter, JAX and the table are up; what the first search adds is compilation.
    first = search(table, units(table, ["mixed"], 1), ox.Optimal(length=3))[0]
    again = search(table, units(table, ["mixed"], 1), ox.Optimal(length=3))[0]
    figures = [
        Figure("first call, compilation included", first.seconds, "s", 30.0),
        Figure("the same unit again", again.seconds, "s"),
        Figure("programs compiled", first.explanation.stats.compilations),
    ]
    for row in arguments.rows:
        say(f"Row {row}")
        figures += ROWS[row](table, arguments.time_limit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures.append(Figure("peak memory of the process", peak, "GiB", 3.0, "generation included"))
    settings = {
        "signatures": len(table.signatures),
        "concepts": table.n_concepts,
        "locations": table.n_locations,
        "time_limit": arguments.time_limit,
        "rows": arguments.rows,
    }
    return report("The tight search", figures, settings, arguments.json)


if __name__ == "__main__":
    raise SystemExit(main())
