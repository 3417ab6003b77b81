"""Long formulas on a small table: sets of concepts beside enumeration over masks.

The table is like CamVid with colours and positions (28 concepts, about 700 signatures), or a real
one (`--data`). Enumeration makes its masks once a table; that is told apart. Both have to agree.
"""

import time
from dataclasses import dataclass

import numpy as np

from optexp_jax.bench.data import real_data
from optexp_jax.bench.mask_enumeration import MaskEnumeration
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.turns import Spread, Tell, interleave, ratios
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import explain
from optexp_jax.methods import Optimal
from optexp_jax.stand_ins import counted_streets, counted_unit

SEED = 700
KINDS = ("mixed", "weak", "broad", "dominant", "mixed")


@dataclass(frozen=True)
class _Session:
    table: ConceptTable
    units: tuple[NeuronCounts, ...]
    plan: BenchPlan
    tell: Tell

    def limit(self, value: float) -> float | None:
        return None if self.plan.quick else value


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """Seconds a unit by length, and the ratio to enumeration."""
    tell("making data")
    kinds = KINDS[: 2 if plan.quick else None]
    given = None if plan.data is None else real_data(plan.data, len(kinds))
    if given is None:
        table = counted_streets()
        units = tuple(counted_unit(table, SEED + k, kind).counts for k, kind in enumerate(kinds))
    else:  # A table that was built for it is there as long as `given` is.
        data = next(given)
        table, units = data.table, tuple(unit.counts for unit in data.units)
    session = _Session(table, units, plan, tell)
    figures: list[BenchFigure] = []
    faults: list[str] = []
    for length, limit in ((4, 0.02), (5, None), (6, 0.5)):
        figures += _seconds(session, length, limit)
    compared = 4 if plan.quick else 5
    against, wrong = _against_enumeration(session, compared)
    figures += against
    faults += wrong
    settings = {
        "signatures": len(table.signatures),
        "concepts": table.n_concepts,
        "locations": table.n_locations,
        "turns": plan.turns,
        "data": plan.data or "generated",
    }
    title = "Long formulas, small table"
    return SuiteReport("sets", title, tuple(figures), settings=settings, faults=tuple(faults))


def _seconds(session: _Session, length: int, limit: float | None) -> list[BenchFigure]:
    method, table = Optimal(length, bounds=TightBounds(way="sets")), session.table
    session.tell(f"length {length}")
    start = time.perf_counter()
    explain(table, session.units[0], method)
    first = time.perf_counter() - start
    taken: list[float] = []
    for neuron in session.units:
        for _ in range(session.plan.turns):
            start = time.process_time()  # one thread does it all
            explain(table, neuron, method)
            taken.append(time.process_time() - start)
    spread = Spread.of(taken)
    allowed = None if limit is None else session.limit(limit)
    note = f"processor time; {len(session.units)} units, {session.plan.turns} turns"
    return [
        BenchFigure(f"length {length}, a unit", spread.median, "s", allowed, note, spread=spread),
        BenchFigure(f"length {length}, first unit of a table", first, "s"),
    ]


def _against_enumeration(session: _Session, length: int) -> tuple[list[BenchFigure], list[str]]:
    """Ratios within turns, and whether both find the same IoU."""
    table = session.table
    session.tell(f"masks of {length - 1} concepts")
    start = time.perf_counter()
    masks = MaskEnumeration.of(table, length)
    made = time.perf_counter() - start
    every: list[float] = []
    faults: list[str] = []
    method = Optimal(length, bounds=TightBounds(way="sets"))
    for k, neuron in enumerate(session.units):
        turns = interleave(
            {
                "sets": lambda neuron=neuron: explain(table, neuron, method).score,
                "masks": lambda neuron=neuron: masks.highest(neuron)[-1],
            },
            session.plan.turns,
            tell=session.tell,
        )
        every += ratios(turns["masks"], turns["sets"])
        ours, theirs = turns["sets"].result, turns["masks"].result
        if ours is not None and theirs is not None and ours.ratio != theirs.ratio:
            faults.append(f"Unit {k}: sets find {ours}, enumeration {theirs}.")
    spread = Spread.of((1 / np.array(every)).tolist())
    return [
        BenchFigure(
            f"length {length}, sets / enumeration over masks",
            spread.median,
            "",
            session.limit(1 / 30),
            f"{1 / spread.median:.0f} times as fast; masks kept apart",
            spread=spread,
            watched=True,
        ),
        BenchFigure(f"length {length}, masks of a table", made, "s", note=f"{masks.n_masks} masks"),
    ], faults
