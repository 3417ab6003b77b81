"""The published search and the beams, counted and timed, beside the released code of earlier work.

Every unit is explained by the optimal search with the published bounds, in batches and one node at
a time, and by the three beams. Where `compositional-explanations` is installed, its optimal search
and its guided beam run on the same units, in turns with ours. All times are of one whole unit, from
its bitmap to its explanation. Where no two concepts share a location, each method runs once more
with the paper's way of counting, and its counters stand beside the plain ones.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from optexp_jax.bench.contenders import (
    GUIDED,
    MMESH,
    PAPER,
    PEER_BEAM,
    PEER_OPTIMAL,
    VANILLA,
    Patience,
    explain_in_time,
)
from optexp_jax.bench.peer import NOT_INSTALLED, Peer, PeerFormula, peer_version
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, BenchTable, SuiteReport, number
from optexp_jax.bench.turns import Spread, Tell, Turns, interleave, ratios
from optexp_jax.bounds import PaperBounds
from optexp_jax.explain import explain
from optexp_jax.explanation import Explanation, SearchStats
from optexp_jax.methods import AbstractMethod, Beam, Optimal
from optexp_jax.methods.beam.guides import MMESHGuide, QuantityGuide
from optexp_jax.stand_ins import Planted, Setting, make_planted

LENGTH, BEAM_SIZE, SEED = 3, 5, 0
ONE_BY_ONE = "PaperBounds, one by one"
AT_MOST = {(PAPER, PEER_OPTIMAL): 1 / 20, (GUIDED, PEER_BEAM): 1 / 10}
"""Our seconds over the peer's."""
COUNTERS = ("visited", "expanded", "estimated")


@dataclass(frozen=True)
class PaperData:
    """A dataset and how many of its units are explained."""

    setting: Setting
    units: int


WHOLE = (
    PaperData(Setting("disjoint", samples=500, size=112, objects=19), 4),
    PaperData(Setting("wide", samples=500, size=56, objects=847), 2),
    PaperData(
        Setting(
            "small", samples=100, size=28, objects=7, parts=5, materials=3, colours=3, scenes=2
        ),
        8,
    ),
    PaperData(
        Setting(
            "large", samples=1000, size=28, objects=40, parts=30, materials=12, colours=11, scenes=7
        ),
        2,
    ),
)
QUICK = (
    PaperData(Setting("disjoint", samples=60, size=28, objects=19), 2),
    PaperData(WHOLE[2].setting, 2),
)

Found = Explanation | PeerFormula | None


@dataclass(frozen=True)
class PaperUnit:
    """All methods on one unit."""

    turns: dict[str, Turns[Found]]
    published: dict[str, SearchStats]
    """Counters in the paper's way, where concepts are disjoint."""


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """Each dataset after another."""
    figures: list[BenchFigure] = []
    tables: list[BenchTable] = []
    rows: list[dict[str, Any]] = []
    for data in QUICK if plan.quick else WHOLE:
        units = list(_explain_units(data, plan, tell))
        tables.append(_table(data, units))
        figures += _figures(data, units, plan)
        rows += _rows(data, units)
    return SuiteReport(
        "paper",
        "The published search and the beams",
        tuple(figures),
        tuple(tables),
        {"length": LENGTH, "beam_size": BEAM_SIZE, "turns": plan.turns, "peer": peer_version()},
        tuple(rows),
        notes=(NOT_INSTALLED,) if peer_version() is None else (),
    )


def paper_methods(budget: float, published: bool = False) -> dict[str, AbstractMethod]:
    """All methods by name; `published` lets them count as the paper does."""
    bounds = PaperBounds(published_counters=published)
    guides = {GUIDED: QuantityGuide(), MMESH: MMESHGuide(), VANILLA: None}
    return {
        PAPER: Optimal(LENGTH, bounds=bounds, time_limit=budget),
        ONE_BY_ONE: Optimal(LENGTH, bounds=bounds, batch_size=1, time_limit=budget),
        **{
            name: Beam(LENGTH, size=BEAM_SIZE, guide=guide, published_counters=published)
            for name, guide in guides.items()
        },
    }


def _explain_units(data: PaperData, plan: BenchPlan, tell: Tell) -> Iterator[PaperUnit]:
    tell(f"making {data.setting.name}")
    planted = make_planted(data.setting, data.units, SEED)
    bitmaps = [unit.bitmap for unit in planted.units]
    counting = paper_methods(plan.budget, published=True) if data.setting.disjoint else {}
    with Peer(planted.table, bitmaps, length=LENGTH, beam_size=BEAM_SIZE) as peer:
        for unit, bitmap in enumerate(bitmaps):
            works: dict[str, Callable[[], Found]] = {
                name: partial(_ours, planted, unit, method, Patience())
                for name, method in paper_methods(plan.budget).items()
            }
            if peer_version() is not None:
                works[PEER_OPTIMAL] = partial(_theirs, peer, unit, "optimal", plan.budget)
                works[PEER_BEAM] = partial(_theirs, peer, unit, "beam", plan.budget)
            place = f"{data.setting.name}, unit {unit + 1} of {data.units}"
            turns = interleave(
                works,
                plan.turns,
                budget=plan.budget,
                tell=lambda text, place=place: tell(f"{place}: {text}"),
            )
            published = {
                name: explain(planted.table, bitmap, method).stats
                for name, method in counting.items()
                if turns[name].over_budget is None
            }
            yield PaperUnit(turns, published)


def _ours(planted: Planted, unit: int, method: AbstractMethod, patience: Patience) -> Explanation:
    bitmap = planted.units[unit].bitmap
    return replace(explain_in_time(planted.table, bitmap, method, patience), state=None)


def _theirs(peer: Peer, unit: int, search: Any, budget: float) -> Found:
    return peer.run(unit, search, budget).formula


def most_estimates(n_concepts: int, expanded: int) -> int:
    """Estimates of a beam of ten concepts and then some pairs, counted as the paper does.

    Each is joined to every other of C disjoint concepts by three operators: 30(C - 1), less 90 that
    are there twice, and 3(C - 2) a pair. Up to ten triples are there twice, too.
    """
    pairs = expanded - 2 * BEAM_SIZE
    return 6 * BEAM_SIZE * (n_concepts - 1) - 90 + 3 * pairs * (n_concepts - 2)


def _figures(data: PaperData, units: Sequence[PaperUnit], plan: BenchPlan) -> Iterator[BenchFigure]:
    name = data.setting.name
    for (ours, theirs), limit in AT_MOST.items():
        every = [
            ratio
            for unit in units
            if theirs in unit.turns
            for ratio in ratios(unit.turns[ours], unit.turns[theirs])
        ]
        if every:
            spread = Spread.of(every)
            most = None if plan.quick else limit
            note = f"1/{1 / spread.median:.1f}"
            yield BenchFigure(
                f"{name}: {ours} / {theirs}", spread.median, "", most, note, spread, watched=True
            )
    if data.setting.disjoint:
        visited = [stats.visited for stats in _stats(units, ONE_BY_ONE)]
        if visited:
            yield BenchFigure(f"{name}: most visited", max(visited), "nodes", 3, ONE_BY_ONE)
        beams = [
            stats
            for unit in units
            for method, stats in unit.published.items()
            if "beam" in method and stats.expanded > 2 * BEAM_SIZE
        ]
        outside = sum(
            not 0 <= most_estimates(data.setting.objects, each.expanded) - each.estimated <= 10
            for each in beams
        )
        note = f"of {len(beams)} beams: not as many as follow from what was expanded"
        yield BenchFigure(f"{name}: estimates unlike the paper's", outside, "", 0, note)
    compiling = sum(each.compiling for each in units[0].turns.values())
    yield BenchFigure(f"{name}: compilation", compiling, "s", note="all methods")


def _stats(units: Sequence[PaperUnit], method: str) -> list[SearchStats]:
    results = [unit.turns[method].result for unit in units]
    return [found.stats for found in results if isinstance(found, Explanation)]


def _table(data: PaperData, units: Sequence[PaperUnit]) -> BenchTable:
    published = tuple(f"published {name}" for name in COUNTERS) if data.setting.disjoint else ()
    columns = ("unit", "method", *COUNTERS, *published, "seconds", "compiling", "IoU")
    rows: list[tuple[str, ...]] = []
    for k, unit in enumerate(units):
        for name, turns in unit.turns.items():
            found = turns.result
            stats = found.stats if isinstance(found, Explanation) else None
            counted = (stats, unit.published.get(name)) if published else (stats,)
            cells = [
                "" if each is None else f"{getattr(each, counter):,}"
                for each in counted
                for counter in COUNTERS
            ]
            rows.append(
                (
                    str(k),
                    name,
                    *cells,
                    number(turns.median) if turns.seconds else "> budget",
                    number(turns.compiling) if turns.seconds else "",
                    f"{found.iou:.5f}" if isinstance(found, Explanation) else "",
                )
            )
    return BenchTable(data.setting.name, columns, tuple(rows), columns[2:])


def _rows(data: PaperData, units: Sequence[PaperUnit]) -> Iterator[dict[str, Any]]:
    for k, unit in enumerate(units):
        for name, turns in unit.turns.items():
            found = turns.result
            ours = found if isinstance(found, Explanation) else None
            published = unit.published.get(name)
            yield {
                "setting": data.setting.name,
                "unit": k,
                "method": name,
                "formula": None if ours is None or ours.formula is None else str(ours.formula),
                "intersection": None if ours is None else ours.intersection,
                "union": None if ours is None else ours.union,
                "stats": None if ours is None else asdict(ours.stats),
                "published_stats": None if published is None else asdict(published),
                "compiling": turns.compiling,
                "seconds": list(turns.seconds),
                "median": statistics.median(turns.seconds) if turns.seconds else None,
                "over_budget": turns.over_budget,
            }
