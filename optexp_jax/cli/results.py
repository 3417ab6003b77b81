"""`optexp results`: what a run has found, as a table or a file."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import rich.box
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import plural
from optexp_jax.cli.progress import status_word
from optexp_jax.cli.run_folder import open_run
from optexp_jax.runs.export import as_json, write_csv, write_json, write_parquet
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run

PRINT = Path("-")
WRITERS = {"csv": write_csv, "json": write_json, "parquet": write_parquet}


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Show what a run has found so far, or write it to a file. A run may be looked "
        "at while others work on it."
    )
    parser.epilog = "example: optexp results runs/conv1 --csv conv1.csv"
    parser.add_argument("folder", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a CSV file")
    parser.add_argument("--parquet", type=Path, metavar="FILE", help="write a Parquet file")
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=PRINT,
        metavar="FILE",
        help="write a JSON file, or print JSON if no file is named",
    )
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    run = open_run(options.folder)
    if options.json == PRINT:
        print(json.dumps(as_json(run), indent=2))
        return
    files = [(kind, getattr(options, kind)) for kind in WRITERS]
    written = [(kind, path) for kind, path in files if path is not None]
    for kind, path in written:
        if not path.parent.is_dir():
            raise ValueError(f"There is no folder {path.parent} for {path.name}. Make it first.")
        try:
            WRITERS[kind](run, path)
        except ImportError as error:
            raise ValueError(str(error)) from None
        print(f"{plural(len(run.results), 'unit')} written to {path}")
    if not written:
        _show(run)


def _show(run: Run) -> None:
    console = results_console()
    results = run.results
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column("unit", justify="right")
    table.add_column("formula")
    table.add_column("IoU", justify="right")
    table.add_column("status", no_wrap=True)
    with_null = any(result.null is not None for result in results)
    if with_null:
        table.add_column("p", justify="right")
    table.add_column("seconds", justify="right")
    for result in results:
        table.add_row(*_cells(result, with_null))
    console.print(table)
    counts = run.counts
    left = counts.total - counts.finished
    console.print(
        f"{plural(counts.done, 'unit')} explained, {counts.failed} failed, {left} left",
        highlight=False,
    )


def _cells(result: UnitResult, with_null: bool) -> list[str | Text]:
    found = result.explanation
    chance = [f"{result.null.p_value:.3g}" if result.null else ""] if with_null else []
    if found is None:
        return [str(result.unit), Text(result.error or ""), "", "failed", *chance, ""]
    return [
        str(result.unit),
        Text("none" if found.formula is None else str(found.formula)),
        f"{found.iou:.4f}",
        status_word(result),
        *chance,
        f"{result.seconds:.2f}",
    ]
