"""`optexp explain`: a whole layer, unit by unit, into a run that can be stopped and go on."""

import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.cli.explain_options import GROUPS


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Explain units of a layer, each stored in the run's folder as soon as it is done. A run "
        "that was stopped goes on with the same command."
    )
    parser.epilog = "example: optexp explain --table ade.zarr --activations layer4.zarr --random 50"
    for title, options in GROUPS.items():
        group = parser.add_argument_group(title)
        for option in options:
            option.add_to(group)
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--config", type=Path, metavar="FILE", help="TOML file with these options")
    shown.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    shown.add_argument("--log-json", action="store_true", help="log to stderr, one JSON a line")
    shown.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run, prepare=_prepare)


def _prepare() -> None:
    importlib.import_module("optexp_jax.cli.explaining")


def _run(options: Namespace) -> None:
    from optexp_jax.cli.explaining import run

    run(options)
