"""`optexp layers`: what a model's layers are called, and what they give."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich.box
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import plural
from optexp_jax.cli.model_options import add_model_options, import_torch, load_from_options

if TYPE_CHECKING:
    from optexp_jax.activations import LayerInfo


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "List the layers of a model with the shapes of their outputs for one image."
    )
    parser.epilog = "example: optexp layers resnet18 --weights random"
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a name or weights of torchvision, timm:NAME, hf:FOLDER, places365:NAME, "
        "efficientnet-lite0, demo, a TorchScript file, or module:function",
    )
    add_model_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_run, prepare=import_torch)


def _run(options: Namespace) -> None:
    model = load_from_options(options.model, options)
    from optexp_jax.activations.layers import list_layers

    layers = list_layers(model, options.layout)
    if options.json:
        print(json.dumps([_as_json(layer) for layer in layers], indent=2))
        return
    console = results_console()
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for heading in ("layer", "kind", "output", "units", "map", "calls"):
        table.add_column(heading, no_wrap=heading == "layer")
    for layer in layers:
        table.add_row(
            Text(layer.name),
            layer.kind,
            "x".join(map(str, layer.output)),
            "-" if layer.units is None else str(layer.units),
            "-" if layer.map_shape is None else "x".join(map(str, layer.map_shape)),
            str(layer.calls),
        )
    console.print(table)
    without = [layer for layer in layers if layer.units is None]
    if without:
        note = f"{plural(len(without), 'layer')} without units. {without[0].name}: {without[0].why}"
        console.print(Text(note), soft_wrap=True)


def _as_json(layer: "LayerInfo") -> dict[str, Any]:
    return {
        "layer": layer.name,
        "kind": layer.kind,
        "output": list(layer.output),
        "units": layer.units,
        "map": None if layer.map_shape is None else list(layer.map_shape),
        "calls": layer.calls,
        "why": layer.why,
    }
