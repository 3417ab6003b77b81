"""`optexp compare`: what differs between runs over the same units."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.allowed import ALLOW_HELP, parse_allowed
from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import UsageError, plural
from optexp_jax.cli.parsing import at_least
from optexp_jax.cli.run_folder import open_run
from optexp_jax.comparison import Comparison
from optexp_jax.comparison.comparing import compare_with_first
from optexp_jax.comparison.contradictions import IncomparableError
from optexp_jax.comparison.export import (
    CATEGORY_COLUMNS,
    UNIT_COLUMNS,
    category_cells,
    comparison_as_json,
    comparison_as_markdown,
    examples_of,
    unit_cells,
    write_comparison_csv,
    write_comparison_json,
    write_comparison_markdown,
)

PRINT = Path("-")


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Compare runs over the same units, such as a beam's with an exact one's: which units "
        "differ, in the paper's categories, and by how much. The first run, A, is compared with "
        "each of the others, B; a gain is the IoU of B minus that of A. Exit code 1 if two results "
        "contradict each other, such as a beam above a proved optimum; 2 if the runs are not about "
        "the same, so that nothing was compared."
    )
    parser.epilog = "example: optexp compare runs/beam runs/optimal --plot gains.png"
    parser.add_argument("first", type=Path, metavar="RUN_A", help="folder of the first run")
    parser.add_argument(
        "others", type=Path, nargs="+", metavar="RUN_B", help="folders of the runs to compare it to"
    )
    parser.add_argument(
        "--common",
        action="store_true",
        help="compare the units that the runs share, whatever else differs",
    )
    parser.add_argument(
        "--top",
        type=at_least(0),
        default=5,
        metavar="N",
        help="show so many of the largest gains (default: 5)",
    )
    parser.add_argument(
        "--examples",
        type=at_least(0),
        default=1,
        metavar="N",
        help="show so many units of each category (default: 1)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a CSV file, a line a unit")
    for kind, name in (("json", "JSON"), ("markdown", "Markdown")):
        parser.add_argument(
            f"--{kind}",
            type=Path,
            nargs="?",
            const=PRINT,
            metavar="FILE",
            help=f"write a {name} file, or print {name} if no file is named",
        )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw both IoUs of every unit and a histogram of gains: *.png, *.svg or *.html",
    )
    parser.add_argument("--allow", metavar="NAMES", help=ALLOW_HELP)
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    files = [options.csv, options.json, options.markdown, options.plot]
    written = [path for path in files if path not in (None, PRINT)]
    for path in written:
        if not path.parent.is_dir():
            raise ValueError(f"There is no folder {path.parent} for {path.name}. Make it first.")
    if PRINT == options.json == options.markdown:
        raise UsageError("--json and --markdown cannot both be printed. Name a file for one.")
    if options.plot is not None:
        _check_plot(options.plot)
    allowed = parse_allowed(options.allow)
    runs = [open_run(folder, allowed) for folder in (options.first, *options.others)]
    try:
        made = compare_with_first(runs, common=options.common)
    except IncomparableError as error:
        raise UsageError(str(error)) from None
    _write(options, made)
    if options.json == PRINT:
        print(json.dumps([comparison_as_json(each) for each in made], indent=2))
    elif options.markdown == PRINT:
        parts = [comparison_as_markdown(each, options.top, options.examples) for each in made]
        print("\n".join(parts), end="")
    else:
        _show(made, options.top, options.examples)
        for path in written:
            print(f"{plural(len(made), 'comparison')} written to {path}")


def _check_plot(path: Path) -> None:
    """Refuse what cannot be drawn before anything is read."""
    try:
        from optexp_jax.charts.saving import check_chart_file
    except ImportError as error:
        raise ValueError(str(error)) from None
    check_chart_file(path)


def _write(options: Namespace, made: Sequence[Comparison]) -> None:
    if options.csv is not None:
        write_comparison_csv(made, options.csv)
    if options.json not in (None, PRINT):
        write_comparison_json(made, options.json)
    if options.markdown not in (None, PRINT):
        write_comparison_markdown(made, options.markdown, options.top, options.examples)
    if options.plot is not None:
        from optexp_jax.charts import comparison_chart, save_chart

        try:
            save_chart(comparison_chart(*made), options.plot, title="Comparison of runs")
        except ImportError as error:
            raise ValueError(str(error)) from None


def _show(made: Sequence[Comparison], top: int, examples: int) -> None:
    console = results_console()
    for at, comparison in enumerate(made):
        if at:
            console.print()
        for sentence in comparison.sentences():
            console.print(Text(sentence), soft_wrap=True)
        gains = [unit_cells(unit) for unit in comparison.largest_gains(top)]
        shown = [unit_cells(unit) for unit in examples_of(comparison, examples)]
        _show_table(console, "By category", CATEGORY_COLUMNS, category_cells(comparison))
        _show_table(console, "Largest gains", UNIT_COLUMNS, gains)
        _show_table(console, "Examples", UNIT_COLUMNS, shown)


def _show_table(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    if not rows:
        return
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for name in columns:
        text = name in ("category", "A", "B")
        table.add_column(name, justify="left" if text else "right", no_wrap=not text)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print()
    console.print(Text(title))
    console.print(table)
