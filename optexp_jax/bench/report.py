"""What a suite returns: figures with their limits, tables for people, and all of it as JSON."""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optexp_jax.bench.machine import Machine
from optexp_jax.bench.turns import Spread
from optexp_jax.stores.durable import write_whole


@dataclass(frozen=True)
class BenchFigure:
    """One measured number; with a `limit` it must not be above it."""

    name: str
    value: float | int
    unit: str = ""
    limit: float | int | None = None
    note: str = ""
    spread: Spread | None = None
    """Of what `value` is the median, if there were several turns."""
    watched: bool = False
    """A ratio of our time to what does not change with our code: the baseline keeps it."""
    in_table: bool = False
    """Whether a table of the report shows it already."""

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        return None if self.limit is None else self.value <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "met": self.met}


@dataclass(frozen=True)
class BenchTable:
    """Measurements side by side, as text, for people."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...] = ()
    """Columns that are aligned to the right."""

    def markdown(self) -> str:
        marks = ["---:" if name in self.numbers else "---" for name in self.columns]
        lines = [self.columns, tuple(marks), *self.rows]
        return "\n".join(f"| {' | '.join(_in_cell(text) for text in line)} |" for line in lines)


@dataclass(frozen=True)
class SuiteReport:
    """All that one suite measured."""

    suite: str
    title: str
    figures: tuple[BenchFigure, ...] = ()
    tables: tuple[BenchTable, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    rows: tuple[dict[str, Any], ...] = ()
    """Single measurements, for machines."""
    faults: tuple[str, ...] = ()
    """What must never be, such as two exact methods that disagree."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def missed(self) -> tuple[BenchFigure, ...]:
        """Figures that are above their limit."""
        return tuple(figure for figure in self.figures if figure.met is False)

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "title": self.title,
            "seconds": self.seconds,
            "settings": self.settings,
            "notes": list(self.notes),
            "faults": list(self.faults),
            "figures": [figure.as_json() for figure in self.figures],
            "tables": [dataclasses.asdict(table) for table in self.tables],
            "rows": list(self.rows),
        }


def reports_as_json(reports: Sequence[SuiteReport], machine: Machine) -> dict[str, Any]:
    """Reports as one JSON document; what never ended has no number there."""
    content = {
        "machine": dataclasses.asdict(machine),
        "suites": [report.as_json() for report in reports],
    }
    return _finite(content)


def write_reports(path: Path, reports: Sequence[SuiteReport], machine: Machine) -> None:
    """Write reports as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(reports_as_json(reports, machine), indent=2, allow_nan=False) + "\n"
    write_whole(path, text.encode())


def number(value: float | int, unit: str = "") -> str:
    """A measured number with three digits, for people."""
    if not math.isfinite(value):
        return "never"
    whole = abs(value) >= 1000 or value == int(value)
    text = f"{value:,.0f}" if whole else f"{value:.3g}"
    return f"{text} {unit}".strip()


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
        case _:
            return value


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
