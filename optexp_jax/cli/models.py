"""`optexp models convert`: weights from a checkpoint into a file that cannot run code."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.cli.failures import plural
from optexp_jax.cli.model_options import import_torch


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = "Convert checkpoints to safetensors."
    parser.epilog = "example: optexp models convert old.pth.tar new.safetensors --trust"
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    convert = actions.add_parser(
        "convert",
        help="turn a checkpoint into safetensors",
        description="Read the tensors of a checkpoint, with the names that torchvision uses, and "
        "write them to a safetensors file. A pickled model runs code when it is read: that needs "
        "--trust, once.",
        epilog="example: optexp models convert old.pth.tar new.safetensors --trust",
    )
    convert.add_argument("source", type=Path, metavar="CHECKPOINT", help="the file to read")
    convert.add_argument("target", type=Path, metavar="OUT", help="the safetensors file to write")
    convert.add_argument(
        "--trust",
        action="store_true",
        help="allow a checkpoint that runs code when it is read",
    )
    convert.set_defaults(run=_convert, prepare=import_torch)


def _convert(options: Namespace) -> None:
    from optexp_jax.activations.checkpoints import read_state, write_safetensors

    if options.target.suffix != ".safetensors":
        raise ValueError(f"The new file's name must end in .safetensors; got {options.target}.")
    state = read_state(options.source, trust=options.trust)
    write_safetensors(state, options.target)
    total = sum(tensor.numel() for tensor in state.values())
    print(f"{options.target}: {plural(len(state), 'tensor')}, {plural(total, 'number')}")
