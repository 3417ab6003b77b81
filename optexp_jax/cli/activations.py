"""`optexp activations`: a layer's activations over a dataset, stored."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.cli.allowed import ALLOW_HELP, parse_allowed
from optexp_jax.cli.bars import bar
from optexp_jax.cli.failures import plural
from optexp_jax.cli.model_options import add_model_options, import_torch, load_from_options
from optexp_jax.cli.parsing import at_least


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Show all images of a dataset to a model and store what one layer gives. A run "
        "that was interrupted goes on when it is started again."
    )
    parser.epilog = "example: optexp activations --model demo --layer conv4 --data shapes --out A"
    parser.add_argument("--model", required=True, help="as `optexp layers` takes it")
    parser.add_argument("--layer", required=True, help="a name that `optexp layers` lists")
    parser.add_argument(
        "--data",
        required=True,
        help="a stored table, whose samples are taken, or a dataset such as folder:/data/mine",
    )
    parser.add_argument(
        "--out", required=True, type=Path, help="the store to write, a .zarr folder"
    )
    add_model_options(parser)
    parser.add_argument(
        "--batch-size", type=at_least(1), default=32, help="images at a time (default: 32)"
    )
    parser.add_argument(
        "--device", default="cpu", help="where the model runs, such as cuda (default: cpu)"
    )
    parser.add_argument("--allow", metavar="NAMES", help=ALLOW_HELP)
    parser.set_defaults(run=_run, prepare=import_torch)


def _run(options: Namespace) -> None:
    parse_allowed(options.allow)
    model = load_from_options(options.model, options)
    from optexp_jax.activations.record import find_images, record_activations

    with bar("Recording activations") as tell:
        store = record_activations(
            model,
            options.layer,
            find_images(options.data),
            options.out,
            layout=options.layout,
            batch_size=options.batch_size,
            device=options.device,
            progress=tell,
        )
    n_samples, n_units, rows, columns = store.shape
    print(
        f"{options.out}: {plural(n_units, 'unit')} of {options.layer} in {model.title}, "
        f"{plural(n_samples, 'sample')}, maps of {rows}x{columns}"
    )
