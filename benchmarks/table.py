"""Building a concept table and counting units on it: time, memory and compression.

    python benchmarks/table.py

The build runs in processes of its own: one for time and the rise of the largest resident size
(`resource.getrusage`) over the resident size just before, one for the most that Python and numpy
held allocated (`tracemalloc`, which slows the build). The label maps are there before and do not
count. Generating the data is not timed.
"""

import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import Figure, benchmark_parser, interleave, report, say, stopwatch
from jaxtyping import Bool

from optexp_jax import ConceptTable
from optexp_jax.counts.counting import (
    BlockKernel,
    count_active_patches,
    count_on_device,
    count_on_host,
)
from optexp_jax.stand_ins import make_annotations, make_bitmaps

SAMPLES, SIZE, UNITS, ACTIVE, SEED = 500, 112, 256, 0.005, 0
DEVICE_UNITS = 16
ROUNDS = 5
MEGABYTE = 10**6


@dataclass(frozen=True)
class Build:
    """What building the table took."""

    seconds: float
    resident_bytes: int
    traced_bytes: int | None


def build_and_measure(traced: bool) -> Build:
    annotations = make_annotations(SAMPLES, SIZE, SEED)
    if traced:
        tracemalloc.start()
    before = _resident_bytes()
    start = time.perf_counter()
    ConceptTable.from_label_maps(annotations.maps, annotations.layers, annotations.scenes)
    seconds = time.perf_counter() - start
    rise = max(0, _largest_resident_bytes() - before)
    return Build(seconds, rise, tracemalloc.get_traced_memory()[1] if traced else None)


def build_in_fresh_process(kind: str) -> Build:
    command = [sys.executable, __file__, "--build-only", kind]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Build(**json.loads(done.stdout))


def _largest_resident_bytes() -> int:
    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _resident_bytes() -> int:
    """The resident size now; where the system does not tell, the largest one so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _largest_resident_bytes()
    return pages * os.sysconf("SC_PAGESIZE")


def measure_build(table: ConceptTable) -> list[Figure]:
    build = build_in_fresh_process("plain")
    traced = build_in_fresh_process("traced").traced_bytes
    assert traced is not None
    dense_bytes = table.n_concepts * table.n_locations / 8
    return [
        Figure("build", build.seconds, "s", 10, "fresh process"),
        Figure("peak resident", build.resident_bytes / MEGABYTE, "MB", 500, "getrusage, rise"),
        Figure("peak allocated", traced / MEGABYTE, "MB", 500, "tracemalloc"),
        Figure("signatures", len(table.signatures)),
        Figure("patches", len(table.patches), note="(sample, signature) pairs"),
        Figure("dense bits", dense_bytes / MEGABYTE, "MB", note="concepts x locations / 8"),
        Figure("table", dense_bytes / table.compression / MEGABYTE, "MB"),
        Figure("compression", table.compression, "x", note="dense bits / table"),
    ]


def measure_counting(table: ConceptTable) -> list[Figure]:
    bitmaps = make_bitmaps(UNITS, SAMPLES, SIZE, ACTIVE, SEED)
    say(f"Counting {UNITS} units ...")
    active = float(bitmaps.mean())
    timings = interleave({"sum": bitmaps.sum, "count": lambda: table.count_many(bitmaps)}, ROUNDS)
    return [
        Figure("active", 100 * active, "%", note=f"{UNITS} units"),
        Figure("bitmaps.sum()", timings["sum"].median, "s", note=f"{UNITS} units, one pass"),
        Figure("count_many", timings["count"].median, "s"),
        Figure("count_many ratio", timings["count"].ratio_to(timings["sum"]), "x", 4),
        *_measure_kernels(table, bitmaps[:DEVICE_UNITS]),
    ]


def _measure_kernels(
    table: ConceptTable, bitmaps: Bool[np.ndarray, "units samples height width"]
) -> list[Figure]:
    flat = bitmaps.reshape(len(bitmaps), SAMPLES, -1)

    def count(kernel: BlockKernel) -> None:
        count_active_patches(table, flat, kernel)

    first = stopwatch(lambda: count(count_on_device))
    timings = interleave(
        {
            "sum": bitmaps.sum,
            "host": lambda: count(count_on_host),
            "device": lambda: count(count_on_device),
        },
        ROUNDS,
    )
    note = f"{len(bitmaps)} units"
    return [
        Figure("host kernel ratio", timings["host"].ratio_to(timings["sum"]), "x", note=note),
        Figure("device kernel ratio", timings["device"].ratio_to(timings["sum"]), "x", note=note),
        Figure(
            "device compilation",
            max(0.0, first - timings["device"].median),
            "s",
            note="first call less others",
        ),
    ]


def main() -> int:
    parser = benchmark_parser("Build a concept table and count units on it.", "table")
    parser.add_argument(
        "--build-only",
        choices=["plain", "traced"],
        help="build the table once, print time and memory as JSON",
    )
    options = parser.parse_args()
    if options.build_only:
        build = build_and_measure(traced=options.build_only == "traced")
        print(json.dumps(dataclasses.asdict(build)))
        return 0
    say(f"Building a table of {SAMPLES} samples of {SIZE}x{SIZE} ...")
    annotations = make_annotations(SAMPLES, SIZE, SEED)
    table = ConceptTable.from_label_maps(annotations.maps, annotations.layers, annotations.scenes)
    say(repr(table))
    figures = measure_build(table)
    say(f"Generating {UNITS} units ...")
    figures += measure_counting(table)
    settings = {
        "samples": SAMPLES,
        "size": SIZE,
        "concepts": table.n_concepts,
        "layers": len(annotations.layers) + 1,
        "units": UNITS,
        "device_units": DEVICE_UNITS,
        "rounds": ROUNDS,
        "seed": SEED,
    }
    return report("Concept table", figures, settings, options.json)


if __name__ == "__main__":
    sys.exit(main())
