"""Time against concepts, signatures, length, beam size and units, with the exponent of growth."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from optexp_jax.bench.contenders import GUIDED, TIGHT, Patience, explain_in_time
from optexp_jax.bench.fit import Growth
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, BenchTable, SuiteReport, number
from optexp_jax.bench.turns import Tell, interleave
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.methods import AbstractMethod, Beam, Optimal
from optexp_jax.runs.many import explain_many
from optexp_jax.stand_ins import counted_unit
from optexp_jax.stand_ins.zipf import zipf

CONCEPTS, SIGNATURES, LENGTH, BEAM_SIZE, UNITS = (
    "concepts",
    "signatures",
    "length",
    "beam size",
    "units",
)
HELD = 4
"""Concepts of a signature."""
SEED = 0


@dataclass(frozen=True)
class GrowthSizes:
    """Sizes of each axis, what the others are meanwhile, and units at each point."""

    concepts: tuple[int, ...] = (50, 100, 200, 400, 800, 1_600)
    signatures: tuple[int, ...] = (5_000, 20_000, 80_000, 320_000)
    length: tuple[int, ...] = (2, 3, 4, 5)
    beam_size: tuple[int, ...] = (1, 2, 5, 10, 20, 50)
    units: tuple[int, ...] = (1, 2, 4, 8, 16)
    fixed_concepts: int = 200
    fixed_signatures: int = 20_000
    few_concepts: int = 40
    """For the axis of length, which grows fastest."""
    few_signatures: int = 2_000
    units_each: int = 4

    @classmethod
    def quick(cls) -> "GrowthSizes":
        return cls(
            concepts=(64, 128, 256, 512),
            signatures=(2_000, 8_000, 32_000),
            length=(2, 3, 4),
            beam_size=(2, 5, 20),
            units=(1, 2, 4, 8),
            fixed_concepts=128,
            fixed_signatures=8_000,
            few_concepts=24,
            few_signatures=500,
            units_each=2,
        )


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """Every axis, one after another; the sizes of an axis in turns."""
    sizes = GrowthSizes.quick() if plan.quick else GrowthSizes()
    grown = list(measure(sizes, plan, tell))
    return SuiteReport(
        "growth",
        "Time against size",
        tuple(_figure(each) for each in grown if each.exponent is not None),
        (_table(grown),),
        {**asdict(sizes), "turns": plan.turns, "seed": SEED},
        tuple(
            {"axis": each.axis, "method": each.method, "size": size, "seconds": list(seconds)}
            for each in grown
            for size, seconds in each.seconds.items()
        ),
    )


Explained = tuple[ConceptTable, Sequence[NeuronCounts]]


def measure(sizes: GrowthSizes, plan: BenchPlan, tell: Tell) -> Iterator[Growth]:
    """Each axis with the methods that it concerns."""
    tell("making data")
    tight, guided = Optimal(3, time_limit=plan.budget), Beam(3, size=5)
    searches: Mapping[str, AbstractMethod] = {TIGHT: tight, GUIDED: guided}
    wide = {n: _data(n, sizes.fixed_signatures, sizes.units_each) for n in sizes.concepts}
    long = {n: _data(sizes.fixed_concepts, n, sizes.units_each) for n in sizes.signatures}
    for axis, points in ((CONCEPTS, wide), (SIGNATURES, long)):
        for name, method in searches.items():
            works = {size: _explaining(*data, method) for size, data in points.items()}
            yield _grow(axis, name, works, plan, tell)
    small = _data(sizes.few_concepts, sizes.few_signatures, sizes.units_each)
    by_length = {
        length: _explaining(*small, Optimal(length, time_limit=plan.budget))
        for length in sizes.length
    }
    yield _grow(LENGTH, TIGHT, by_length, plan, tell)
    middle = _data(sizes.fixed_concepts, sizes.fixed_signatures, max(sizes.units))
    by_beam = {
        size: _explaining(middle[0], middle[1][: sizes.units_each], Beam(3, size=size))
        for size in sizes.beam_size
    }
    yield _grow(BEAM_SIZE, GUIDED, by_beam, plan, tell)
    by_units = {
        count: partial(_explain_together, middle[0], middle[1][:count], tight)
        for count in sizes.units
    }
    yield _grow(UNITS, TIGHT, by_units, plan, tell)


def _grow(
    axis: str,
    method: str,
    works: Mapping[int, Callable[[], None]],
    plan: BenchPlan,
    tell: Tell,
) -> Growth:
    turns = interleave(
        {f"{method}, {size:,} {axis}": work for size, work in works.items()},
        plan.turns,
        budget=plan.budget,
        tell=tell,
    )
    by_size = dict(zip(works, turns.values(), strict=True))
    return Growth(
        axis,
        method,
        {size: each.seconds for size, each in by_size.items() if each.seconds},
        tuple(size for size, each in by_size.items() if each.over_budget is not None),
    )


def _data(n_concepts: int, n_signatures: int, n_units: int) -> Explained:
    table = grown_table(n_concepts, n_signatures)
    return table, [counted_unit(table, unit).counts for unit in range(n_units)]


def grown_table(n_concepts: int, n_signatures: int, seed: int = SEED) -> ConceptTable:
    """A table of exactly so many concepts and signatures, those of the empty set aside."""
    rng = np.random.default_rng([seed, n_concepts, n_signatures])
    chances = zipf(n_concepts, 0.6)
    found: set[tuple[int, ...]] = set()
    while len(found) < n_signatures:
        drawn = rng.choice(n_concepts, size=(n_signatures, HELD), p=chances)
        found |= {tuple(sorted({int(k) for k in row})) for row in drawn}
    chosen = sorted(found)
    kept = rng.permutation(len(chosen))[:n_signatures]
    sizes = np.maximum(1, rng.lognormal(4.0, 1.5, n_signatures)).astype(np.int64)
    return ConceptTable.from_signatures(
        [list(chosen[at]) for at in kept], sizes, n_locations=int(1.1 * sizes.sum())
    )


def _explaining(
    table: ConceptTable, neurons: Sequence[NeuronCounts], method: AbstractMethod
) -> Callable[[], None]:
    """The work of explaining units one after another."""
    patience = Patience()

    def work() -> None:
        for neuron in neurons:
            explain_in_time(table, neuron, method, patience)

    return work


def _explain_together(
    table: ConceptTable, neurons: Sequence[NeuronCounts], method: AbstractMethod
) -> None:
    for _ in explain_many(table, neurons, method):
        pass


def _figure(growth: Growth) -> BenchFigure:
    exponent = growth.exponent
    assert exponent is not None
    name = f"exponent of {growth.axis}, {growth.method}"
    return BenchFigure(name, exponent.median, spread=exponent, in_table=True)


def _table(grown: Sequence[Growth]) -> BenchTable:
    rows: list[tuple[str, ...]] = []
    for each in grown:
        relative = each.relative() if each.seconds else {}
        points = [f"{size:,}: {number(ratio)}" for size, ratio in relative.items()]
        points += [f"{size:,}: > budget" for size in each.over_budget]
        exponent = each.exponent
        rows.append(
            (
                each.axis,
                each.method,
                ", ".join(points),
                "" if exponent is None else f"{exponent.median:.2f}",
                "" if exponent is None else f"{exponent.low:.2f} to {exponent.high:.2f}",
            )
        )
    columns = ("axis", "method", "time / that of the smallest", "exponent", "quartiles")
    title = "Time against size; the exponent is that of the size"
    return BenchTable(title, columns, tuple(rows), ("exponent", "quartiles"))
