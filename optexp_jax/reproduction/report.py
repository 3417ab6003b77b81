"""The result: tables beside the published figures, in four formats, with how they came about."""

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.reproduction.machine_facts import MachineFacts
from optexp_jax.reproduction.request import TableRequest
from optexp_jax.reproduction.text_table import TextTable

STAND_IN = "stand-in"
WARNING = (
    "STAND-IN DATA: generated, not the paper's. The figures tell how searches behave at such a "
    "scale; they are no reproduction."
)


@dataclass(frozen=True)
class TablesReport:
    """One preset's tables."""

    request: TableRequest
    model: str
    data: str
    """What the figures are from, in a line."""
    is_stand_in: bool
    notes: tuple[str, ...]
    tables: tuple[TextTable, ...]
    records: tuple[dict[str, Any], ...]
    """The figures of all tables, one flat record a row."""
    machine: MachineFacts
    figures: tuple[Path, ...] = ()
    """Pictures that were drawn, one a unit."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What to know beside the tables."""
        first = (WARNING,) if self.is_stand_in else ()
        lines = (*first, f"Data: {self.data}.", f"Machine: {self.machine}.", *self.notes)
        if not self.figures:
            return lines
        return (*lines, f"{len(self.figures)} figures in {self.figures[0].parent}.")

    def marked_tables(self) -> tuple[TextTable, ...]:
        """The tables, their titles saying so if they are of stand-ins."""
        if not self.is_stand_in:
            return self.tables
        return tuple(
            dataclasses.replace(table, title=f"STAND-IN: {table.title}") for table in self.tables
        )

    def to_markdown(self) -> str:
        """The tables, and what to know beside them."""
        parts = [table.to_markdown() for table in self.marked_tables()]
        return "\n\n".join([*parts, "\n".join(f"- {line}" for line in self.lines)]) + "\n"

    def to_latex(self) -> str:
        """The tables for the package booktabs, with the rest as comments."""
        comments = [f"% {line}" for line in self.lines]
        tables = [table.to_latex() for table in self.marked_tables()]
        return "\n".join([*comments, r"% \usepackage{booktabs}", *tables]) + "\n"

    def to_csv(self) -> str:
        """The figures, one record a row; each says what data it is from."""
        records = [self._origin() | record for record in self.records]
        text = io.StringIO()
        writer = csv.DictWriter(text, _keys(records), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_json(self) -> str:
        """Figures, request, machine and versions."""
        content = {
            "stand_in": self.is_stand_in,
            "warning": WARNING if self.is_stand_in else None,
            "request": dataclasses.asdict(self.request),
            "model": self.model,
            "data": self.data,
            "notes": list(self.notes),
            "drawn": [str(path) for path in self.figures],
            "machine": dataclasses.asdict(self.machine),
            "figures": list(self.records),
        }
        return json.dumps(content, indent=2) + "\n"

    def _origin(self) -> dict[str, Any]:
        return {
            "preset": self.request.preset,
            "model": self.model,
            "data": STAND_IN if self.is_stand_in else self.data,
        }


def _keys(records: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))
