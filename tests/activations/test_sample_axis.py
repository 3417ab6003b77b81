"""Layers whose outputs are not laid out by samples."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.model_cases import scripted, shapes_images
from torch import nn

from optexp_jax.activations import LoadedModel, Preprocessing, list_layers, record_activations
from optexp_jax.activations.torch_import import import_torchvision


class OddAxes(nn.Module):
    """Attention over windows of 4 x 4, and over tokens that come before the samples."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 6, 4, stride=4)
        self.window = nn.Linear(6, 6)
        self.first = nn.Linear(6, 5)
        self.back = nn.Identity()
        self.same = nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.look(images).permute(0, 2, 3, 1)  # [sample, 8, 8, unit]
        cut = maps.unflatten(1, (2, 4)).unflatten(3, (2, 4)).transpose(2, 3)
        windows = self.window(cut.reshape(-1, 16, 6))
        tokens = self.first(maps.flatten(1, 2).transpose(0, 1))  # [token, sample, unit]
        same = self.same(torch.ones(1, 5, 8, 8))
        return self.back(tokens.transpose(0, 1)) + windows.mean() + same.mean()


def odd_axes() -> LoadedModel:
    return LoadedModel.of(OddAxes(), "odd", Preprocessing(32))


def test_they_are_listed_without_units():
    found = {layer.name: layer for layer in list_layers(odd_axes())}
    assert (found["look"].units, found["look"].map_shape) == (6, (8, 8))
    assert (found["back"].units, found["back"].map_shape) == (5, (8, 8))
    for name, why in (("window", "windowed attention"), ("first", "tokens_first")):
        layer = found[name]
        assert layer.units is layer.map_shape is None
        assert layer.why is not None
        assert why in layer.why
    assert found["look"].why is None


def test_tokens_that_come_first_have_a_layout(tmp_path: Path):
    found = {layer.name: layer for layer in list_layers(odd_axes(), "tokens_first")}
    assert (found["first"].units, found["first"].map_shape) == (5, (8, 8))
    assert found["back"].units is found["window"].units is None
    model = odd_axes()
    images = shapes_images()
    first = record_activations(model, "first", images, tmp_path / "f", layout="tokens_first")
    back = record_activations(model, "back", images, tmp_path / "b")
    assert np.allclose(first.block(0, 10), back.block(0, 10), atol=1e-5)
    with pytest.raises(ValueError, match=r"'back' is not \[token, sample, unit\].*\[2, 64, 5\]"):
        record_activations(
            odd_axes(), "back", shapes_images(), tmp_path / "c", layout="tokens_first"
        )


def test_swin_of_torchvision_is_read_outside_its_windows():
    swin: Any = import_torchvision().models.SwinTransformer
    model = LoadedModel.of(swin([4, 4], 12, [1, 1], [2, 2], [4, 4]), "swin", Preprocessing(32))
    found = {layer.name: layer for layer in list_layers(model)}
    assert (found["features.1.0"].units, found["features.1.0"].map_shape) == (12, (8, 8))
    attention = found["features.1.0.attn"]
    assert (attention.units, attention.map_shape) == (12, (8, 8)), "put together again"


@pytest.mark.parametrize("bad", [3, 9])
def test_what_fails_while_it_is_written_blocks_nothing(tmp_path: Path, bad: int, monkeypatch: Any):
    monkeypatch.setattr("optexp_jax.activations.progress.MOST_SAMPLES_PER_ROW", 4)
    seen: list[int] = []

    class Endless(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Identity()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.extend([0] * len(images))
            return self.part(images / (0 if len(seen) > 2 + bad else 1))

    out = tmp_path / "a.zarr"
    with pytest.raises(ValueError, match="finite"):
        record_activations(
            LoadedModel.of(Endless(), "endless", Preprocessing(8)), "part", shapes_images(), out
        )
    assert not list(tmp_path.iterdir())
    assert record_activations(odd_axes(), "back", shapes_images(), out).shape == (10, 5, 8, 8)


@pytest.mark.parametrize(("layer", "said"), [
    ("window", r"\[8, 16, 6\]; it may cut images into windows"),
    ("first", r"\[64, 2, 5\]; its second axis is the samples'.*--layout tokens_first"),
    ("same", r"\[1, 5, 8, 8\]; it does not depend on the images"),
])  # fmt: skip
def test_recording_them_is_refused_and_blocks_nothing(tmp_path: Path, layer: str, said: str):
    out = tmp_path / "a.zarr"
    with pytest.raises(ValueError, match=said):
        record_activations(odd_axes(), layer, shapes_images(), out)
    assert not list(tmp_path.iterdir())
    assert record_activations(odd_axes(), "back", shapes_images(), out).shape == (10, 5, 8, 8)


def test_what_fails_before_the_first_row_blocks_nothing(tmp_path: Path):
    class Greedy(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Identity()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if len(images) > 2:
                raise RuntimeError("too many images")
            return self.part(images)

    model, out = LoadedModel.of(Greedy(), "greedy", Preprocessing(8)), tmp_path / "a.zarr"
    with pytest.raises(ValueError, match="too many images"):
        record_activations(model, "part", shapes_images(), out)
    assert not list(tmp_path.iterdir())
    assert record_activations(odd_axes(), "back", shapes_images(), out).shape == (10, 5, 8, 8)


class TwoInputs(nn.Module):
    def forward(self, images: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return images + text


class NamedInput(nn.Module):
    def forward(self, images: torch.Tensor, *, text: torch.Tensor) -> torch.Tensor:
        return images + text


class Careless(nn.Module):
    """Takes images alone; the mistake is inside."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.look()  # pyright: ignore[reportCallIssue]

    def look(self, images: torch.Tensor) -> torch.Tensor:
        return images


class Broken(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.reshape(7)


def test_several_inputs_and_failures_are_told():
    for kind in (TwoInputs, NamedInput):
        for module in (kind(), scripted(kind())):
            with pytest.raises(ValueError, match=r"two takes more.*also text\. Wrap it"):
                list_layers(LoadedModel.of(module, "two"))
    line = Careless.forward.__code__.co_firstlineno + 1
    with pytest.raises(ValueError, match=rf"TypeError: .*look.*axis\.py, line {line}\)"):
        list_layers(LoadedModel.of(Careless(), "careless", Preprocessing(9)))
    line = Broken.forward.__code__.co_firstlineno + 1
    with pytest.raises(ValueError, match=rf"test_sample_axis\.py, line {line}\)\. Other sizes"):
        list_layers(LoadedModel.of(Broken(), "broken", Preprocessing(9)))
