"""The tight search at the scale of Broden and of ADE20K, on generated counts.

Everything is measured after a warm-up unit; what compilation took stands apart. Every search has a
time limit; one that reaches it counts as infinite.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.resident import peak_bytes
from optexp_jax.bench.turns import Spread, Tell, interleave, ratios
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import explain
from optexp_jax.explanation import Explanation
from optexp_jax.internal.kernel_choice import kernels
from optexp_jax.internal.transfers import Transfers, counted_transfers
from optexp_jax.methods import AbstractMethod, Beam, Optimal
from optexp_jax.stand_ins import counted_ade20k, counted_broden, counted_unit

HARD_KINDS = ("weak", "random", "broad", "dominant")
GIBIBYTE = 2**30


@dataclass(frozen=True)
class TightSizes:
    """Regions of the table, concepts of the disjoint one, and units."""

    regions: int = 950_000
    disjoint: int = 847
    mixed: int = 20
    longer: int = 3
    smaller: int = 200_000
    """Regions of the second table that kernels are compared on."""
    limits: bool = True

    @classmethod
    def quick(cls) -> "TightSizes":
        return cls(regions=30_000, disjoint=200, mixed=4, longer=1, smaller=10_000, limits=False)


@dataclass(frozen=True)
class TimedSearch:
    """One unit's search."""

    kind: str
    seconds: float
    explanation: Explanation


@dataclass(frozen=True)
class _Session:
    """What all parts of the suite need."""

    table: ConceptTable
    sizes: TightSizes
    plan: BenchPlan
    tell: Tell

    def limit(self, value: float) -> float | None:
        return value if self.sizes.limits else None

    def search(
        self, kinds: Sequence[str], seed: int, method: AbstractMethod, table: ConceptTable
    ) -> list[TimedSearch]:
        """Explain units of some kinds, one after another."""
        found: list[TimedSearch] = []
        for k, kind in enumerate(kinds):
            self.tell(f"{kind} unit, {k + 1} of {len(kinds)}")
            neuron = counted_unit(table, seed + k, kind).counts
            start = time.perf_counter()
            explanation = explain(table, neuron, method)
            found.append(TimedSearch(kind, time.perf_counter() - start, explanation))
        return found

    def optimal(self, length: int) -> Optimal:
        return Optimal(length=length, time_limit=self.plan.budget)


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """All parts, on one table."""
    sizes = TightSizes.quick() if plan.quick else TightSizes()
    tell("making data")
    session = _Session(counted_broden(n_regions=sizes.regions), sizes, plan, tell)
    figures = [
        *_first(session),
        *_length_three(session),
        *_length_four(session),
        *_disjoint(session),
        *_beam(session),
        *_kernels(session),
        *_fresh(session),
        BenchFigure(
            "peak memory of the process",
            peak_bytes() / GIBIBYTE,
            "GiB",
            session.limit(3.0),
            "generation included",
        ),
    ]
    table = session.table
    settings = {
        "signatures": len(table.signatures),
        "concepts": table.n_concepts,
        "locations": table.n_locations,
        "time_limit": plan.budget,
        "turns": plan.turns,
    }
    return SuiteReport("tight", "The tight search", tuple(figures), settings=settings)


def _first(session: _Session) -> list[BenchFigure]:
    # The interpreter, JAX and the table are up; what the first search adds is compilation.
    first, again = (
        session.search(["mixed"], 1, Optimal(length=3), session.table)[0] for _ in range(2)
    )
    return [
        BenchFigure("first call, compilation included", first.seconds, "s", session.limit(30.0)),
        BenchFigure("the same unit again", again.seconds, "s"),
        BenchFigure("programs compiled", first.explanation.stats.compilations),
    ]


def _length_three(session: _Session) -> list[BenchFigure]:
    method, table = session.optimal(3), session.table
    mixed = session.search(["mixed"] * session.sizes.mixed, 100, method, table)
    hard = session.search(HARD_KINDS * 2, 200, method, table)
    figures = _summary(session, "length 3", mixed, 0.5, 3.0)
    for kind in HARD_KINDS:
        worst = max(proved_seconds(each) for each in hard if each.kind == kind)
        figures.append(BenchFigure(f"length 3, {kind}", worst, "s", session.limit(5.0)))
    return figures


def _length_four(session: _Session) -> list[BenchFigure]:
    method, table, many = session.optimal(4), session.table, session.sizes.longer
    (first,) = session.search(["mixed"], 299, method, table)  # compiles
    mixed = session.search(["mixed"] * many, 300, method, table)
    dominant = session.search(["dominant"], 310, method, table)
    weak = session.search(["weak"] * (many + 1), 320, method, table)
    gaps = [each.explanation.gap for each in (*mixed, *dominant, *weak)]
    return [
        *_summary(session, "length 4", mixed, None, 5.0),
        *_summary(session, "length 4, dominant", dominant, None, 120.0),
        *_summary(session, "length 4, weak", weak, None, 5.0),
        BenchFigure("length 4, largest gap left", max(gaps)),
        BenchFigure("length 4, first call, compilation included", first.seconds, "s"),
    ]


def _disjoint(session: _Session) -> list[BenchFigure]:
    table = counted_ade20k(n_concepts=session.sizes.disjoint)
    figures: list[BenchFigure] = []
    for length, limit in ((3, 0.2), (8, 1.0)):
        method = session.optimal(length)
        session.search(["mixed"], 400, method, table)
        found = session.search(["mixed"] * 5, 401, method, table)
        figures += _summary(session, f"ADE-like, disjoint, length {length}", found, None, limit)
    return figures


def _beam(session: _Session) -> list[BenchFigure]:
    method = Beam(length=3, size=5)
    session.search(["mixed"], 500, method, session.table)
    found = session.search(["mixed"] * 3, 501, method, session.table)
    return _summary(session, "guided beam, size 5, length 3", found, None, 0.5)


def _kernels(session: _Session) -> list[BenchFigure]:
    """The device's kernels next to the host's, in turns, on this table and on a smaller one."""
    figures: list[BenchFigure] = []
    smaller = counted_broden(n_regions=session.sizes.smaller)
    for table in (smaller, session.table):
        size = f"{len(table.signatures):,} signatures"
        every: list[float] = []
        back: list[int] = []
        for k, kind in enumerate(("mixed", *HARD_KINDS)):
            neuron = counted_unit(table, 600 + k, kind).counts
            turns = interleave(
                {
                    choice: partial(_explain_with, choice, table, neuron, session.optimal(3))
                    for choice in ("host", "device")
                },
                session.plan.turns,
                tell=partial(_told, session.tell, f"{size}, {kind}"),
            )
            every += ratios(turns["device"], turns["host"])
            moved = turns["device"].result
            back.append(0 if moved is None else moved.down)
        spread = Spread.of(every)
        figures += [
            BenchFigure(
                f"device / host kernels, {size}",
                spread.median,
                "",
                session.limit(1.2),
                spread=spread,
            ),
            BenchFigure(
                f"most bytes back for a unit, {size}", max(back) / 1e6, "MB", session.limit(4.0)
            ),
        ]
    return figures


def _told(tell: Tell, where: str, text: str) -> None:
    tell(f"{where}: {text}")


def _explain_with(
    choice: str, table: ConceptTable, neuron: NeuronCounts, method: Optimal
) -> Transfers:
    """Explain a unit with the host's or the device's kernels; what was moved."""
    with kernels(choice), counted_transfers() as moved:
        explain(table, neuron, method)
    return moved


def _fresh(session: _Session) -> list[BenchFigure]:
    """The first search of a process, with JAX's cache of compiled programs empty and filled."""
    figures: list[BenchFigure] = []
    with tempfile.TemporaryDirectory(prefix="optexp-bench-") as cache:
        settings = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        for name, limit in (("cold", 30.0), ("warm", 5.0)):
            session.tell(f"first call of a process, {name} cache")
            done = subprocess.run(
                [sys.executable, "-m", "optexp_jax.bench.suites.tight", str(session.sizes.regions)],
                env={**os.environ, **settings},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            figures.append(
                BenchFigure(
                    f"first call of a process, {name} cache",
                    json.loads(done.stdout),
                    "s",
                    session.limit(limit),
                )
            )
    return figures


def first_call(n_regions: int) -> float:
    """Seconds of this process's first search."""
    table = counted_broden(n_regions=n_regions)
    neuron = counted_unit(table, 1).counts
    start = time.perf_counter()
    explain(table, neuron, Optimal(length=3))
    return time.perf_counter() - start


def proved_seconds(found: TimedSearch) -> float:
    """A search that was stopped has taken forever."""
    return found.seconds if found.explanation.stats.stopped_by is None else math.inf


def _summary(
    session: _Session,
    name: str,
    found: Sequence[TimedSearch],
    median: float | None,
    worst: float,
) -> list[BenchFigure]:
    seconds = [proved_seconds(each) for each in found]
    stopped = sum(not math.isfinite(each) for each in seconds)
    note = f"{len(found)} units" + (f", {stopped} not proved in time" if stopped else "")
    middle = None if median is None else session.limit(median)
    return [
        BenchFigure(f"{name}, median", statistics.median(seconds), "s", middle, note),
        BenchFigure(f"{name}, worst", max(seconds), "s", session.limit(worst), note),
    ]


if __name__ == "__main__":
    print(json.dumps(first_call(int(sys.argv[1]))))
