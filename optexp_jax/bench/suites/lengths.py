"""Long formulas on large tables: lengths 4 to 6 at the scale of Broden, on generated counts.

Gaps are told for a time limit of two seconds and for the whole budget. The two further tables are
hard in other ways: one location a sample, and signatures of up to twelve concepts.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.resident import peak_bytes
from optexp_jax.bench.suites.tight import GIBIBYTE, TimedSearch, proved_seconds
from optexp_jax.bench.turns import Tell
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import explain
from optexp_jax.methods import Optimal
from optexp_jax.stand_ins import counted_broden, counted_unit, sample_attributes
from optexp_jax.stand_ins.layer import plant_layer
from optexp_jax.stand_ins.zipf import zipf

SHORT = 2.0
"""Seconds after which a gap is told."""


@dataclass(frozen=True)
class LengthSizes:
    """Regions of the table, units of each kind, and sizes of the other tables."""

    regions: int = 950_000
    units: int = 8
    few: int = 2
    attributes: int = 100
    samples: int = 10_000
    crowded: int = 60_000
    """Signatures of up to twelve concepts."""
    limits: bool = True

    @classmethod
    def quick(cls) -> "LengthSizes":
        return cls(
            regions=20_000, units=2, few=1, attributes=30, samples=500, crowded=2_000, limits=False
        )


@dataclass(frozen=True)
class _Timed:
    """Searches of one length over units of one kind."""

    name: str
    found: Sequence[TimedSearch]

    @property
    def seconds(self) -> list[float]:
        return [proved_seconds(each) for each in self.found]

    @property
    def gaps(self) -> list[float]:
        return [each.explanation.gap for each in self.found]

    def times(self, median: float | None, worst: float | None) -> list[BenchFigure]:
        note = f"{len(self.found)} units"
        return [
            BenchFigure(f"{self.name}, median", statistics.median(self.seconds), "s", median, note),
            BenchFigure(f"{self.name}, worst", max(self.seconds), "s", worst, note),
        ]

    def gap(self, limit: float | None = None) -> BenchFigure:
        return BenchFigure(f"{self.name}, median gap", statistics.median(self.gaps), "", limit)


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """All lengths on one table, then the other tables."""
    sizes = LengthSizes.quick() if plan.quick else LengthSizes()
    tell("making data")
    table = counted_broden(n_regions=sizes.regions)
    figures = [*_broden(table, sizes, plan, tell), *_others(sizes, plan, tell)]
    memory = peak_bytes() / GIBIBYTE
    figures.append(
        BenchFigure("peak memory of the process", memory, "GiB", 3.0 if sizes.limits else None)
    )
    settings = {
        "signatures": len(table.signatures),
        "concepts": table.n_concepts,
        "time_limit": plan.budget,
    }
    return SuiteReport("lengths", "Long formulas", tuple(figures), settings=settings)


def _broden(
    table: ConceptTable, sizes: LengthSizes, plan: BenchPlan, tell: Tell
) -> Iterator[BenchFigure]:
    def units(kind: str, n: int) -> list[NeuronCounts]:
        return [counted_unit(table, 700 + k, kind).counts for k in range(n)]

    def limit(value: float) -> float | None:
        return value if sizes.limits else None

    mixed = units("mixed", sizes.units)
    _search("first", table, mixed[:1], 5, plan.budget, tell)  # makes what is made once a table
    yield from _search("length 5, mixed", table, mixed, 5, plan.budget, tell).times(
        limit(5.0), limit(30.0)
    )
    yield _search("length 5, mixed, after 2 s", table, mixed, 5, SHORT, tell).gap(limit(0.2))
    for kind, worst in (("dominant", 3.0), ("weak", 1.0)):
        some = units(kind, sizes.few)
        _search("first", table, some[:1], 4, plan.budget, tell)
        found = _search(f"length 4, {kind}", table, some, 4, plan.budget, tell)
        yield from found.times(None, limit(worst))
    six = _search("length 6, mixed", table, mixed[: sizes.few], 6, plan.budget, tell)
    yield six.gap()


def _others(sizes: LengthSizes, plan: BenchPlan, tell: Tell) -> Iterator[BenchFigure]:
    plain = sample_attributes(sizes.attributes, sizes.samples)
    units = plant_layer(plain, sizes.few, seed=1).counts()
    found = _search("length 5, one location a sample", plain, units, 5, plan.budget, tell)
    yield from found.times(None, 30.0 if sizes.limits else None)
    crowded = crowded_table(sizes.crowded)
    some = [counted_unit(crowded, 700 + k).counts for k in range(sizes.few)]
    before = peak_bytes()
    found = _search("length 5, up to 12 concepts a signature", crowded, some, 5, plan.budget, tell)
    yield found.gap()
    yield BenchFigure(
        f"{found.name}, memory beyond the rest", (peak_bytes() - before) / GIBIBYTE, "GiB"
    )


def crowded_table(n_signatures: int, n_concepts: int = 1198, seed: int = 0) -> ConceptTable:
    """Signatures of one to twelve concepts, as where scenes, parts and materials meet."""
    rng = np.random.default_rng(seed)
    often = zipf(n_concepts, 0.8)
    lengths = rng.integers(1, 13, n_signatures)
    drawn = rng.choice(n_concepts, (n_signatures, 12), p=often)
    sets = [np.unique(row[:length]).tolist() for row, length in zip(drawn, lengths, strict=True)]
    sizes = np.maximum(1, 1000 * rng.lognormal(0.0, 1.8, n_signatures)).astype(np.int64)
    return ConceptTable.from_signatures(sets, sizes, [f"concept-{k}" for k in range(n_concepts)])


def _search(
    name: str,
    table: ConceptTable,
    units: Sequence[NeuronCounts],
    length: int,
    budget: float,
    tell: Tell,
) -> _Timed:
    method = Optimal(length, time_limit=budget)
    found: list[TimedSearch] = []
    for k, unit in enumerate(units):
        tell(f"{name}, {k + 1} of {len(units)}")
        start = time.perf_counter()
        explanation = explain(table, unit, method)
        found.append(TimedSearch(name, time.perf_counter() - start, explanation))
    return _Timed(name, found)
