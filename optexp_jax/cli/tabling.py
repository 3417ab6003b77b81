"""The work of `optexp tables`: from options to a report, printed or written."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.console import results_console
from optexp_jax.cli.explaining import Execution, Workers, open_workers
from optexp_jax.cli.failures import in_option_spelling
from optexp_jax.cli.interrupts import interrupts
from optexp_jax.cli.options import given_options
from optexp_jax.cli.progress import make_display
from optexp_jax.cli.terminal import make_console
from optexp_jax.reproduction.report import TablesReport
from optexp_jax.reproduction.reproduce import FOLDER, make_tables
from optexp_jax.reproduction.request import PRESETS, TableRequest
from optexp_jax.reproduction.text_table import TextTable

WRITERS: dict[str, Callable[[TablesReport], str]] = {
    "markdown": TablesReport.to_markdown,
    "csv": TablesReport.to_csv,
    "latex": TablesReport.to_latex,
    "json": TablesReport.to_json,
}
EXECUTION = ("workers", "scheduler", "devices")


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    given = given_options(options)
    execution = Execution(**{name: given.pop(name) for name in EXECUTION if name in given})
    request = _request(given)
    if options.out is not None and not options.out.parent.is_dir():
        raise ValueError(
            f"There is no folder {options.out.parent} for {options.out.name}. Make it first."
        )
    with open_workers(execution) as workers:
        report = _make(request, options.folder or FOLDER, workers, options.quiet)
    text = WRITERS[options.format](report)
    console = results_console()
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
        print(f"Written to {options.out}")
    elif options.format == "markdown" and console.is_terminal:
        _show(report, console)
    else:
        print(text, end="")


def _request(given: dict[str, Any]) -> TableRequest:
    if "preset" not in given:
        raise ValueError(f"Say which table with --preset: {', '.join(PRESETS)}.")
    try:
        return TableRequest(**given)
    except ValueError as error:
        names = tuple(TableRequest.__annotations__)
        raise ValueError(in_option_spelling(str(error), names)) from None


def _make(request: TableRequest, folder: Path, workers: Workers, quiet: bool) -> TablesReport:
    progress = make_console(stderr=True)

    def say(what: str) -> None:
        if not quiet:
            progress.print(what, markup=False, highlight=False)

    try:
        return make_tables(
            request,
            folder,
            executor=workers.executor,
            in_flight=workers.in_flight,
            watch=lambda _: make_display(quiet or not progress.is_terminal),
            say=say,
        )
    except KeyboardInterrupt:
        interrupts.hear()
        workers.stop()
        raise KeyboardInterrupt(
            "stopped; what is done is stored. Go on with the same command"
        ) from None


def _show(report: TablesReport, console: Console) -> None:
    """The tables as a terminal shows them."""
    for table in report.marked_tables():
        console.print(_rich(table))
    for line in report.lines:
        console.print(Text(line), soft_wrap=True)


def _rich(table: TextTable) -> Table:
    shown = Table(title=Text(table.title), title_justify="left", box=rich.box.SIMPLE_HEAD)
    for place, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if place < table.n_texts else "right")
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown
