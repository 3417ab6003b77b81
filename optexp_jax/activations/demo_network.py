"""The small network that comes with the package, trained on the generated scenes.

`scripts/train_demo_model.py` trains it: each cell of the last map is to tell how much of it every
concept covers.
"""

import importlib.resources

import safetensors.torch
import torch

from optexp_jax.activations.checkpoints import load_into
from optexp_jax.activations.loaded_model import LoadedModel
from optexp_jax.activations.preprocessing import Preprocessing

NAME = "demo"
LAYER = "conv4"
"""The layer that the demo explains."""
WIDTHS = (16, 32, 64, 64)
STRIDES = (2, 2, 2, 1)
STRIDE = 8
"""Pixels of the input to a cell of the last maps: the product of the strides."""
SIZE = 112
PREPROCESSING = Preprocessing(SIZE, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
WEIGHTS = importlib.resources.files("optexp_jax") / "data" / "demo_network.safetensors"


class DemoNetwork(torch.nn.Module):
    """Four convolutions, each with batch normalisation and ReLU, and one value a cell and class."""

    def __init__(self, n_classes: int):
        super().__init__()
        inputs = (3, *WIDTHS[:-1])
        for k, (before, after, stride) in enumerate(zip(inputs, WIDTHS, STRIDES, strict=True), 1):
            reach = 2 if stride == 1 else 1  # The last one looks farther around.
            convolution = torch.nn.Conv2d(
                before, after, 3, stride, padding=reach, dilation=reach, bias=False
            )
            parts = [convolution, torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
            self.add_module(f"conv{k}", torch.nn.Sequential(*parts))
        self.head = torch.nn.Conv2d(WIDTHS[-1], n_classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of each class `[image, class, row, column]`."""
        maps = images
        for k in range(1, len(WIDTHS) + 1):
            maps = self.get_submodule(f"conv{k}")(maps)
        return self.head(maps)


def load_demo_network() -> LoadedModel:
    """The network with its weights."""
    with importlib.resources.as_file(WEIGHTS) as path:
        state = safetensors.torch.load_file(path)
    network = DemoNetwork(len(state["head.bias"]))
    load_into(network, state, "the demo network's file")
    return LoadedModel.of(network, NAME, PREPROCESSING)
