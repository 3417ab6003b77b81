"""`optexp data`: from datasets on disk to concept tables, and what tables hold."""

from argparse import ArgumentParser
from collections.abc import Sequence

from optexp_jax.cli.parsing import add_commands

ACTIONS = {
    "build": "build a concept table from a dataset",
    "info": "describe a concept table",
    "show": "draw a contact sheet of images that hold a concept",
    "download": "download a dataset, or say how to get it",
}


def fill(parser: ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the actions."""
    parser.description = (
        "Build concept tables from annotated images, look into them, and download datasets."
    )
    parser.epilog = "example: optexp data build shapes --option n=64 --out shapes.zarr"
    add_commands(parser, ACTIONS, arguments, kind="ACTION", prefix="data_")
