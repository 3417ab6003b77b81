"""Where we stand against every alternative: time in ratios, what was found, proved, and memory."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from optexp_jax.bench.contenders import (
    LOWER_LIMIT,
    OURS,
    PEER_OPTIMAL,
    TIGHT,
    BenchQuestion,
    Contender,
    Finding,
    contenders,
)
from optexp_jax.bench.data import (
    BenchData,
    DataSize,
    hard_data,
    high_data,
    overlapping_data,
    real_data,
    stand_ins,
)
from optexp_jax.bench.memory import MemoryProbe
from optexp_jax.bench.outcome import Outcome, Role, disagreements
from optexp_jax.bench.peer import NOT_INSTALLED, NOT_RUN, Peer, peer_version
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, BenchTable, SuiteReport, number
from optexp_jax.bench.turns import Spread, Tell, Turns, interleave, ratios

COLUMNS = (
    "method",
    "time / reference",
    "quartiles",
    "time / lower limit",
    "seconds",
    "compiling",
    "IoU",
    "best",
    "proved",
    "memory",
)


@dataclass(frozen=True)
class UnitTurns:
    """All contenders on one unit."""

    turns: dict[str, Turns[Finding]]
    outcomes: dict[str, Outcome]


@dataclass(frozen=True)
class MethodRow:
    """One contender on one dataset."""

    method: str
    role: Role
    seconds: float | None
    """Of one unit, the median; None if no unit ended within the budget."""
    compiling: float
    to_reference: Spread | None
    to_limit: Spread | None
    at_least: float | None
    """What its time over the reference's is at least, if it did not end within the budget."""
    over_budget: str | None
    mean_iou: float | None
    best: int
    """Units on which it found the highest IoU of all."""
    proved: int
    units: int
    """Units that it ended on."""
    peak_bytes: int | None = None

    def cells(self) -> tuple[str, ...]:
        if self.seconds is None:
            ratio = "" if self.at_least is None else f"> {number(self.at_least)}"
            return (self.method, ratio, "", "", "> budget", "", "", "", self.over_budget or "", "")
        spread = self.to_reference
        limit = "" if self.to_limit is None else number(self.to_limit.median)
        found = self.mean_iou is not None
        # The others claim: our proofs are checked against each other.
        word = {Role.EXACT: "proved", Role.CLAIMS: "claimed"}.get(self.role, "")
        return (
            self.method,
            "" if spread is None else number(spread.median),
            "" if spread is None else f"{number(spread.low)} to {number(spread.high)}",
            limit,
            number(self.seconds),
            number(self.compiling),
            f"{self.mean_iou:.4f}" if found else "",
            f"{self.best} of {self.units}" if found else "",
            f"{word} {self.proved} of {self.units}" if word else "",
            "" if self.peak_bytes is None else f"{self.peak_bytes / 2**20:,.0f} MiB",
        )


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """All contenders on all datasets."""
    question = BenchQuestion(budget=plan.budget)
    figures: list[BenchFigure] = []
    tables: list[BenchTable] = []
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    for data in _datasets(plan, tell):
        # Of processes that measure memory, a quick run has those of the first dataset.
        weigh = not (plan.quick and tables)
        found, wrong = hold_against(data, question, plan, tell, weigh=weigh)
        faults += wrong
        tables.append(_table(data, found, plan))
        figures += _figures(data, found)
        rows += [{"data": data.name, "about": data.about, **asdict(row)} for row in found]
    return SuiteReport(
        "alternatives",
        "Every method on the same units, in turns",
        tuple(figures),
        tuple(tables),
        {**asdict(question), "turns": plan.turns, "peer": peer_version()},
        tuple(rows),
        tuple(faults),
        (NOT_INSTALLED,) if peer_version() is None else (),
    )


def _datasets(plan: BenchPlan, tell: Tell) -> Iterator[BenchData]:
    size = DataSize.quick() if plan.quick else DataSize()
    tell("making data")
    if plan.data is not None:
        yield from real_data(plan.data, size.units)
    elif plan.quick:
        yield overlapping_data(size.units)
        yield high_data(size)
        yield next(hard_data(size))
    else:
        yield from stand_ins(size)
        yield from hard_data(size)


def hold_against(
    data: BenchData, question: BenchQuestion, plan: BenchPlan, tell: Tell, *, weigh: bool = True
) -> tuple[list[MethodRow], list[str]]:
    """A row for each contender on a dataset, and what must never be; `weigh` asks for memory."""
    bitmaps = [unit.bitmap for unit in data.units if unit.bitmap is not None]
    settings = {"length": question.length, "beam_size": question.beam_size}
    with Peer(data.table, bitmaps, **settings) as peer:
        every = contenders(data, question, None if peer_version() is None else peer)
        units, faults = time_units(data.name, every, len(data.units), plan, tell)
    rows = [method_row(each, units, plan) for each in every]
    return (_with_memory(data, question, rows, tell) if weigh else rows), faults


def time_units(
    where: str, every: Sequence[Contender], n_units: int, plan: BenchPlan, tell: Tell
) -> tuple[list[UnitTurns], list[str]]:
    """All contenders on some units, in turns; what does not end on one unit is not tried again."""
    units: list[UnitTurns] = []
    faults: list[str] = []
    roles = {each.name: each.role for each in every}
    tried = list(every)
    for unit in range(n_units):
        place = f"{where}, unit {unit + 1} of {n_units}"
        turns = interleave(
            {each.name: each.on(unit) for each in tried},
            plan.turns,
            budget=plan.budget,
            tell=lambda text, place=place: tell(f"{place}: {text}"),
        )
        outcomes = {name: each.result() for name, each in turns.items() if each.result is not None}
        faults += disagreements(place, outcomes, roles)
        units.append(UnitTurns(turns, outcomes))
        tried = [each for each in tried if turns[each.name].over_budget is None]
    return units, faults


def method_row(contender: Contender, units: Sequence[UnitTurns], plan: BenchPlan) -> MethodRow:
    """What one contender did on the units of a dataset."""
    name = contender.name
    ended = [unit for unit in units if name in unit.turns and unit.turns[name].seconds]
    stopped = [
        unit.turns[name].over_budget
        for unit in units
        if name in unit.turns and unit.turns[name].over_budget is not None
    ]
    begun = [reason for reason in stopped if reason and not reason.startswith(NOT_RUN)]
    scores = [unit.outcomes[name].score for unit in ended if name in unit.outcomes]
    known = [score for score in scores if score is not None]
    references = [unit.turns[plan.reference] for unit in units if plan.reference in unit.turns]
    reference = [turns.median for turns in references if turns.seconds]
    return MethodRow(
        method=name,
        role=contender.role,
        seconds=statistics.median(unit.turns[name].median for unit in ended) if ended else None,
        compiling=max((unit.turns[name].compiling for unit in ended), default=0.0),
        to_reference=_spread(ended, name, plan.reference),
        to_limit=_spread(ended, name, LOWER_LIMIT),
        at_least=plan.budget / statistics.median(reference) if begun and reference else None,
        over_budget=stopped[0] if stopped else None,
        mean_iou=statistics.fmean(score.iou for score in known) if known else None,
        best=sum(_is_best(unit, name) for unit in ended),
        proved=sum(unit.outcomes[name].proved for unit in ended if name in unit.outcomes),
        units=len(ended),
    )


def _spread(units: Sequence[UnitTurns], name: str, reference: str) -> Spread | None:
    """Over the turns of all units."""
    every = [
        ratio
        for unit in units
        if reference in unit.turns
        for ratio in ratios(unit.turns[name], unit.turns[reference])
    ]
    return Spread.of(every) if every else None


def _is_best(unit: UnitTurns, name: str) -> bool:
    scores = {who: found.score for who, found in unit.outcomes.items() if found.score is not None}
    return name in scores and scores[name].ratio == max(each.ratio for each in scores.values())


def _with_memory(
    data: BenchData, question: BenchQuestion, rows: Sequence[MethodRow], tell: Tell
) -> list[MethodRow]:
    measured: list[MethodRow] = []
    with MemoryProbe(data, question) as probe:
        for row in rows:
            if row.seconds is None:
                measured.append(row)
                continue
            tell(f"{data.name}: memory of {row.method}")
            measured.append(replace(row, peak_bytes=probe.peak(row.method)))
    return measured


def _table(data: BenchData, rows: Sequence[MethodRow], plan: BenchPlan) -> BenchTable:
    columns = tuple(plan.reference.join(each.split("reference")) for each in COLUMNS)
    title = f"{data.name}: {data.about}; {len(data.units)} units"
    return BenchTable(title, columns, tuple(row.cells() for row in rows), columns[1:])


def _figures(data: BenchData, rows: Sequence[MethodRow]) -> Iterator[BenchFigure]:
    """Our methods over the lower limit, which the baseline keeps, and the authors' over ours."""
    for row in rows:
        if row.method in OURS and row.to_limit is not None:
            yield BenchFigure(
                f"{data.name}: {row.method} / {LOWER_LIMIT}",
                row.to_limit.median,
                "x",
                spread=row.to_limit,
                watched=True,
                in_table=True,
            )
    by_name = {row.method: row for row in rows}
    peer, ours = by_name.get(PEER_OPTIMAL), by_name[TIGHT]
    if peer is not None and peer.seconds is not None and ours.seconds is not None:
        worse = peer.units - peer.best
        yield BenchFigure(
            f"{data.name}: units that {PEER_OPTIMAL} is not optimal on",
            worse,
            note=f"of {peer.units}",
            in_table=True,
        )
