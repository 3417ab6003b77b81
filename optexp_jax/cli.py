"""The command line: `optexp COMMAND`.

The library computes, this file prints: results to stdout, progress and errors to stderr. Exit
codes are 0 (done), 1 (failed) and 2 (bad usage).
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import rich.box
import rich.progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

import optexp_jax
from optexp_jax.demo import Demo, DemoResult, explain_demo, make_demo
from optexp_jax.explanation import Explanation

_T = TypeVar("_T")

DONE, FAILED, BAD_USAGE = 0, 1, 2
PIPE_WIDTH = 160
"""Columns of a table that goes to a file or another program, where nothing should be wrapped."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help, the version or what is wrong
        return stop.code if isinstance(stop.code, int) else DONE
    try:
        options.run(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"optexp {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"optexp {options.command}: interrupted", file=sys.stderr)
        return FAILED
    return DONE


class _Parser(argparse.ArgumentParser):
    """argparse, with errors of one line that point to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: {message}. Run `{self.prog} --help`.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="optexp",
        description=optexp_jax.__doc__,
        epilog="example: optexp demo",
    )
    parser.add_argument("--version", action="version", version=f"optexp {optexp_jax.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_demo(commands.add_parser)
    return parser


def _at_least(smallest: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < smallest:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number of at least {smallest}"
            )
        return int(text)

    return convert


def _add_demo(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "demo",
        help="explain a few generated neurons",
        description="Generate small annotated scenes and neurons that fire on known formulas, and "
        "find the best formula of each. It takes a few seconds and needs no data.",
        epilog="example: optexp demo --seed 1 --length 2",
    )
    parser.add_argument(
        "--seed", type=_at_least(0), default=0, help="another seed, other scenes (default: 0)"
    )
    parser.add_argument(
        "--length",
        type=_at_least(1),
        default=3,
        help="most concepts in a formula (default: 3); 4 takes half a minute",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_run_demo)


def _run_demo(options: argparse.Namespace) -> None:
    demo = make_demo(options.seed)
    results = list(
        _with_progress(explain_demo(demo, options.length), len(demo.neurons), "Explaining neurons")
    )
    if options.json:
        print(json.dumps(_demo_json(options, demo, results), indent=2))
    else:
        _print_demo(options, demo, results)


def _with_progress(items: Iterable[_T], total: int, what: str) -> Iterable[_T]:
    """The items, with a bar on stderr while they come, if stderr is a terminal."""
    console = Console(stderr=True)
    return rich.progress.track(
        items, what, total, console=console, transient=True, disable=not console.is_terminal
    )


def _print_demo(options: argparse.Namespace, demo: Demo, results: Sequence[DemoResult]) -> None:
    console = _console()
    console.print(
        f"{len(results)} neurons, each built from a formula, then blurred and noised. Best formula "
        f"of at most {options.length} concepts, proved to be the best.",
        highlight=False,
    )
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column("neuron", no_wrap=True)
    table.add_column("built from")
    table.add_column("concept", no_wrap=True)
    table.add_column("IoU", justify="right")
    table.add_column("best formula")
    table.add_column("IoU", justify="right")
    table.add_column("status", no_wrap=True)
    for result in results:
        table.add_row(
            result.neuron.name,
            Text(str(result.neuron.built_from)),
            *_formula_cells(result.single),
            *_formula_cells(result.best),
            str(result.best.status),
        )
    console.print(table)
    console.print(repr(demo.table), markup=False, highlight=False, soft_wrap=True)
    console.print(
        "Next: README.md shows how to do this with your own annotations and units.",
        highlight=False,
        soft_wrap=True,
    )


def _formula_cells(explanation: Explanation) -> tuple[Text, str]:
    return Text(str(explanation.formula or "none")), f"{explanation.iou:.3f}"


def _demo_json(
    options: argparse.Namespace, demo: Demo, results: Sequence[DemoResult]
) -> dict[str, Any]:
    table = demo.table
    return {
        "version": optexp_jax.__version__,
        "seed": options.seed,
        "length": options.length,
        "table": {
            "concepts": list(table.names),
            "samples": table.n_samples,
            "locations": table.n_locations,
            "signatures": len(table.signatures),
        },
        "neurons": [
            {
                "neuron": result.neuron.name,
                "built_from": str(result.neuron.built_from),
                "active": int(result.neuron.bitmap.sum()),
                "single": _explanation_json(result.single),
                "best": _explanation_json(result.best),
            }
            for result in results
        ],
    }


def _explanation_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "formula": None if explanation.formula is None else str(explanation.formula),
        "intersection": explanation.intersection,
        "union": explanation.union,
        "iou": explanation.iou,
        "upper_bound": explanation.upper_bound,
        "status": str(explanation.status),
        "visited": explanation.stats.visited,
    }


def _console() -> Console:
    """Where results go: the terminal as it is, or plain wide lines."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH, no_color=True)


if __name__ == "__main__":
    sys.exit(main())
