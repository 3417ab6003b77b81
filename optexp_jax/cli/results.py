"""`optexp results`: what a run has found, as a table or a file."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import plural
from optexp_jax.cli.parsing import at_least
from optexp_jax.cli.result_table import (
    SORTS,
    header,
    holds_lines,
    make_table,
    sort_results,
    summary_lines,
)
from optexp_jax.cli.run_folder import open_run
from optexp_jax.runs.export import as_json, write_csv, write_json, write_parquet
from optexp_jax.runs.run import Run
from optexp_jax.runs.summary import RunSummary

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
    parser.add_argument(
        "--sort",
        choices=SORTS,
        metavar="COLUMN",
        help=f"order of the table on the screen: {', '.join(SORTS)}; p-values from the lowest, "
        "other figures from the highest (default: unit)",
    )
    parser.add_argument(
        "--top",
        type=at_least(1),
        metavar="N",
        help="show the first N units only, by --sort or else those with the highest IoU",
    )
    parser.add_argument(
        "--no-times",
        dest="times",
        action="store_false",
        help="leave out when and where units were done: equal runs then give equal bytes",
    )
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    run = open_run(options.folder)
    files = [(kind, getattr(options, kind)) for kind in WRITERS]
    written = [(kind, path) for kind, path in files if path is not None]
    if written and (options.sort is not None or options.top is not None):
        raise ValueError("--sort and --top are for the table on the screen; files have all units.")
    if options.json == PRINT:
        print(json.dumps(as_json(run, times=options.times), indent=2))
        return
    for kind, path in written:
        if not path.parent.is_dir():
            raise ValueError(f"There is no folder {path.parent} for {path.name}. Make it first.")
        try:
            WRITERS[kind](run, path, times=options.times)
        except ImportError as error:
            raise ValueError(str(error)) from None
        print(f"{plural(len(run.results), 'unit')} written to {path}")
    if not written:
        _show(run, options)


def _show(run: Run, options: Namespace) -> None:
    console = results_console()
    results = run.results
    order = options.sort or ("unit" if options.top is None else "iou")
    shown = sort_results(results, order)[: options.top]
    summary = RunSummary.of(results)
    for line in [*header(run), *holds_lines(summary)]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(make_table(console, shown, options.times, summary.family))
    if len(shown) < len(results):
        console.print(
            f"{len(shown)} of {plural(len(results), 'unit')}, by {order}", highlight=False
        )
    for line in summary_lines(summary, run.counts):
        console.print(line, highlight=False, soft_wrap=True)
