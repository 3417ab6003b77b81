"""`optexp data`: from datasets on disk to concept tables, and what tables hold."""

from optexp_jax.cli import data_build, data_download, data_info, data_show
from optexp_jax.cli.parsing import Commands

ACTIONS = (data_build, data_info, data_show, data_download)


def add(commands: Commands) -> None:
    """Add the command and its actions."""
    parser = commands.add_parser(
        "data",
        help="build, describe and show concept tables; download datasets",
        description="Build concept tables from annotated images, look into them, and download "
        "datasets.",
        epilog="example: optexp data build shapes --option n=64 --out shapes.zarr",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add(actions)
