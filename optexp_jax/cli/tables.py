"""`optexp tables`: the paper's tables from our own runs, with the published figures beside them."""

import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.cli.options import options_of

FORMATS = ("markdown", "csv", "latex", "json")


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Make a table of the paper: from real data and a checkpoint if they are given, else on "
        "generated stand-ins, which every output says. What was done before is not done again; a "
        "command that was stopped goes on when it is run again."
    )
    parser.epilog = "example: optexp tables --preset low --small"
    asked = parser.add_argument_group("the table")
    for option in options_of("optexp_jax.reproduction.request:TableRequest"):
        option.add_to(asked)
    work = parser.add_argument_group("doing the work")
    work.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where data and runs are kept (default: runs/tables)",
    )
    kept_out = ("run", "retry_failed", "allow")
    for option in options_of("optexp_jax.cli.explaining:Execution", skip=kept_out):
        option.add_to(work)
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--format", choices=FORMATS, default="markdown", help="how to print (default: markdown)"
    )
    shown.add_argument("--out", type=Path, metavar="FILE", help="write it to a file")
    shown.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_run, prepare=_prepare)


def _prepare() -> None:
    importlib.import_module("optexp_jax.cli.tabling")


def _run(options: Namespace) -> None:
    from optexp_jax.cli.tabling import run

    run(options)
