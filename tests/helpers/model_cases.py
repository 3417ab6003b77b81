"""A small model and few images, for the tests of models and recordings."""

import torch
from torch import nn

from optexp_jax.activations import Images, LoadedModel, Preprocessing
from optexp_jax.datasets import DatasetSpec


class Small(nn.Module):
    """Two convolutions; the second's output is changed in place by the ReLU behind it."""

    def __init__(self, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.first = nn.Conv2d(3, 4, 3, stride=2)
            self.second = nn.Conv2d(4, 5, 3, stride=2)
            self.relu = nn.ReLU(inplace=True)
            self.unused = nn.Linear(1, 1)
            self.head = nn.Linear(5, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.relu(self.second(self.relu(self.first(images))))
        return self.head(maps.mean((2, 3)))


def small_model(seed: int = 0, size: int = 20) -> LoadedModel:
    return LoadedModel.of(Small(seed), f"small{seed}", Preprocessing(size))


def make_small() -> nn.Module:
    return Small()


def make_nothing() -> int:
    return 3


SHAPES = DatasetSpec.parse("shapes:n=10,size=24")


def shapes_images() -> Images:
    return Images(SHAPES.open(), SHAPES.fingerprint, SHAPES)


def make_failure() -> nn.Module:
    raise RuntimeError("no weights here")


def make_with_argument(depth: int) -> nn.Module:
    return Small(depth)
