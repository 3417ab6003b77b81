"""What `optexp bench` shows: what it is doing, on stderr, and figures in tables, on stdout."""

import sys
import time

import rich.box
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from optexp_jax.bench.report import BenchFigure, BenchTable, SuiteReport, number
from optexp_jax.cli.terminal import make_console

WIDTH = 220
EVERY = 2.0
"""Seconds between two lines where stderr is no terminal."""


class Doings:
    """Says what is being done now: in place on a terminal, as a line now and then elsewhere."""

    def __init__(self) -> None:
        console = make_console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal else None
        self._said = 0.0

    def __enter__(self) -> "Doings":
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def tell(self, text: str) -> None:
        """Show a few words."""
        if self._status is not None:
            self._status.update(Text(text))
            self._status.start()
        elif time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def pause(self) -> None:
        """Make room for results."""
        if self._status is not None:
            self._status.stop()


def print_report(report: SuiteReport) -> None:
    """Tables and figures of a suite."""
    console = _console()
    heading = f"{report.suite}: {report.title}, {report.seconds:.0f} s"
    console.print(heading, markup=False, highlight=False, soft_wrap=True)
    for table in report.tables:
        console.print(Text(table.title), soft_wrap=True)
        console.print(_rich(table))
    figures = [each for each in report.figures if not each.in_table]
    if figures:
        console.print(_rich(_of_figures(figures)))
    for line in (*report.notes, *(f"WRONG: {fault}" for fault in report.faults)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    """As for all results, but wider: methods have many columns."""
    console = make_console()
    return console if console.is_terminal else make_console(width=WIDTH, no_color=True)


def _rich(table: BenchTable) -> Table:
    console = _console()
    shown = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for name in table.columns:
        justify = "right" if name in table.numbers else "left"
        shown.add_column(name, justify=justify, no_wrap=not console.is_terminal)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def _of_figures(figures: list[BenchFigure]) -> BenchTable:
    rows = tuple(
        (
            figure.name,
            number(figure.value, figure.unit),
            "" if figure.spread is None else _quartiles(figure),
            "" if figure.limit is None else number(figure.limit, figure.unit),
            {None: "", True: "ok", False: "missed"}[figure.met],
            figure.note,
        )
        for figure in figures
    )
    columns = ("figure", "value", "quartiles", "at most", "", "note")
    return BenchTable("", columns, rows, columns[1:4])


def _quartiles(figure: BenchFigure) -> str:
    spread = figure.spread
    return "" if spread is None else f"{number(spread.low)} to {number(spread.high)}"
