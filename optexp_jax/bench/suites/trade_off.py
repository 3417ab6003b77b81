"""Hulls and other objectives at the scale of Broden, next to one search for the IoU.

A hull should take at most three searches' time a vertex. Seconds are those of the same turns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.turns import Spread, Tell, interleave, ratios
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import explain, trade_off
from optexp_jax.explanation import Status
from optexp_jax.methods import Optimal, TradeOff
from optexp_jax.stand_ins import counted_broden, counted_unit

KINDS = ("mixed", "weak", "random", "broad", "dominant")
MOST_A_VERTEX = 3.0
IOU, HULL = "iou", "hull"
OTHERS = ("cosine", "phi")


@dataclass(frozen=True)
class TradeOffSizes:
    """Regions of the table, and units of each kind."""

    regions: int = 950_000
    mixed: int = 6
    hard: int = 2
    limits: bool = True

    @classmethod
    def quick(cls) -> "TradeOffSizes":
        return cls(regions=30_000, mixed=2, hard=1, limits=False)


@dataclass(frozen=True)
class HullOutcome:
    """What a piece of work found."""

    vertices: int = 1
    proved: bool = True


@dataclass(frozen=True)
class UnitTimes:
    """What one unit took, in searches for the IoU."""

    hull: float
    """For each vertex."""
    vertices: int
    proved: bool
    objectives: tuple[float, ...]


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """All kinds of units, on one table."""
    sizes = TradeOffSizes.quick() if plan.quick else TradeOffSizes()
    tell("making data")
    table = counted_broden(n_regions=sizes.regions)
    figures: list[BenchFigure] = []
    for k, kind in enumerate(KINDS):
        n_units = sizes.mixed if kind == "mixed" else sizes.hard
        found: list[UnitTimes] = []
        for place in range(n_units):
            tell(f"{kind} unit, {place + 1} of {n_units}")
            neuron = counted_unit(table, 700 + 10 * k + place, kind).counts
            found.append(_unit(table, neuron, plan, tell))
        limit = MOST_A_VERTEX if sizes.limits else None
        figures += _figures(kind, found, limit)
    settings = {
        "signatures": len(table.signatures),
        "concepts": table.n_concepts,
        "locations": table.n_locations,
        "time_limit": plan.budget,
        "turns": plan.turns,
    }
    return SuiteReport("trade_off", "Trade-offs and objectives", tuple(figures), settings=settings)


def _unit(table: ConceptTable, neuron: NeuronCounts, plan: BenchPlan, tell: Tell) -> UnitTimes:
    works: dict[str, Callable[[], HullOutcome]] = {
        name: partial(_objective, table, neuron, name, plan.budget) for name in (IOU, *OTHERS)
    }
    works[HULL] = partial(_hull, table, neuron, plan.budget)
    turns = interleave(works, plan.turns, tell=tell)
    hull = turns[HULL]
    outcome = HullOutcome() if hull.result is None else hull.result
    return UnitTimes(
        Spread.of(ratios(hull, turns[IOU])).median / outcome.vertices,
        outcome.vertices,
        outcome.proved,
        tuple(Spread.of(ratios(turns[name], turns[IOU])).median for name in OTHERS),
    )


def _objective(table: ConceptTable, neuron: NeuronCounts, name: str, limit: float) -> HullOutcome:
    found = explain(table, neuron, Optimal(3, objective=name, time_limit=limit))
    return HullOutcome(proved=found.status is Status.OPTIMAL)


def _hull(table: ConceptTable, neuron: NeuronCounts, limit: float) -> HullOutcome:
    curve = trade_off(table, neuron, TradeOff(3, time_limit=limit))
    return HullOutcome(max(1, len(curve.vertices)), curve.status is Status.OPTIMAL)


def _figures(kind: str, found: list[UnitTimes], limit: float | None) -> list[BenchFigure]:
    spread = Spread.of([each.hull for each in found])
    left = sum(not each.proved for each in found)
    vertices = Spread.of([float(each.vertices) for each in found]).median
    note = f"{len(found)} units, {vertices:g} vertices in the median"
    note += f", {left} not proved in time" if left else ""
    title = f"searches' time a vertex, {kind}"
    figures = [BenchFigure(title, spread.median, "", limit, note, spread=spread)]
    for k, name in enumerate(OTHERS):
        of_this = Spread.of([each.objectives[k] for each in found])
        title = f"{name} / IoU search, {kind}"
        figures.append(BenchFigure(title, of_this.median, spread=of_this))
    return figures
