"""The options with which every command names a model."""

import argparse
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from optexp_jax.cli.parsing import at_least

if TYPE_CHECKING:
    from optexp_jax.activations import LoadedModel

LAYOUTS = ("auto", "nchw", "nhwc", "tokens", "tokens_first")
"""Those of `optexp_jax.activations.layouts`, which is imported only with a model."""


PROTOCOLS = ("whole", "weights", "paper")
"""Those of `optexp_jax.activations.preprocessing`, likewise."""


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add where the weights come from and how images are prepared."""
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="checkpoint or safetensors file; `random` for random weights; by default the model's "
        "pretrained ones",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="allow a file that runs code when it is read: a TorchScript program, a pickled module",
    )
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default="whole",
        help="how images are prepared: as the weights state, but with the whole image (whole, the "
        "default); exactly so, cropped, for layers without maps (weights); as in the paper (paper)",
    )
    parser.add_argument(
        "--size", type=at_least(1), help="side of the images that the model takes, in pixels"
    )
    for name in ("mean", "std"):
        parser.add_argument(
            f"--{name}",
            type=float,
            nargs=3,
            metavar=("R", "G", "B"),
            help=f"{name} of the colours, which go from 0 to 1 (default: ImageNet's)",
        )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        default="auto",
        help="how a layer's output is read (default: auto)",
    )
    parser.add_argument(
        "--sae",
        metavar="FILE",
        help="safetensors file of a sparse autoencoder over the layer, whose features take the "
        "place of its units",
    )


def import_torch() -> None:
    """Import what runs a model, or say how to get it."""
    from optexp_jax.activations.torch_import import require_torch

    require_torch()
    importlib.import_module("optexp_jax.activations.record")


def load_from_options(name: str, options: argparse.Namespace) -> "LoadedModel":
    """The model that the options describe."""
    from dataclasses import replace

    from optexp_jax.activations.models import load_model

    model = load_model(
        name,
        weights=options.weights,
        trust=options.trust,
        protocol=options.protocol,
        sae=options.sae,
    )
    mean: Sequence[float] | None = options.mean
    std: Sequence[float] | None = options.std
    prepared = model.preprocessing.changed(options.size, mean, std)
    return replace(model, preprocessing=prepared)
