"""Layers whose outputs are not laid out by samples."""

from pathlib import Path

import pytest
import torch
from helpers.model_cases import shapes_images
from torch import nn

from optexp_jax.activations import LoadedModel, Preprocessing, list_layers, record_activations


class OddAxes(nn.Module):
    """Attention over windows of 4 x 4, and over tokens that come before the samples."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 6, 4, stride=4)
        self.window = nn.Linear(6, 6)
        self.first = nn.Linear(6, 5)
        self.back = nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.look(images).permute(0, 2, 3, 1)  # [sample, 8, 8, unit]
        cut = maps.unflatten(1, (2, 4)).unflatten(3, (2, 4)).transpose(2, 3)
        windows = self.window(cut.reshape(-1, 16, 6))
        tokens = self.first(maps.flatten(1, 2).transpose(0, 1))  # [token, sample, unit]
        return self.back(tokens.transpose(0, 1)) + windows.mean()


def odd_axes() -> LoadedModel:
    return LoadedModel.of(OddAxes(), "odd", Preprocessing(32))


def test_they_are_listed_without_units():
    found = {layer.name: layer for layer in list_layers(odd_axes())}
    assert (found["look"].units, found["look"].map_shape) == (6, (8, 8))
    assert (found["back"].units, found["back"].map_shape) == (5, (8, 8))
    assert found["window"].units is found["first"].units is None


@pytest.mark.parametrize(("layer", "said"), [
    ("window", r"\[4, 16, 6\]; it may cut images into windows"),
    ("first", r"\[64, 1, 5\]; its second axis is the samples'"),
])  # fmt: skip
def test_recording_them_is_refused_and_blocks_nothing(tmp_path: Path, layer: str, said: str):
    out = tmp_path / "a.zarr"
    with pytest.raises(ValueError, match=said):
        record_activations(odd_axes(), layer, shapes_images(), out)
    assert not list(tmp_path.iterdir())
    assert record_activations(odd_axes(), "back", shapes_images(), out).shape == (10, 5, 8, 8)


class TwoInputs(nn.Module):
    def forward(self, images: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return images + text


class Broken(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.reshape(7)


def test_several_inputs_and_failures_are_told():
    with pytest.raises(ValueError, match=r"two takes more than a batch of images.*Wrap it"):
        list_layers(LoadedModel.of(TwoInputs(), "two"))
    line = Broken.forward.__code__.co_firstlineno + 1
    with pytest.raises(ValueError, match=rf"test_sample_axis\.py, line {line}\)\. Other sizes"):
        list_layers(LoadedModel.of(Broken(), "broken", Preprocessing(9)))
