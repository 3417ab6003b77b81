"""The table of models in the documentation: each row is tried."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.model_cases import Small, save_hf, scripted
from safetensors.torch import save_file
from torch import nn

from optexp_jax.activations import LoadedModel, Preprocessing, list_layers, load_model
from optexp_jax.activations.checkpoints import UntrustedCodeError, hash_weights
from optexp_jax.activations.torch_import import import_torchvision

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "models.md"
SMALL = "helpers.model_cases:make_small"


def rows() -> list[str]:
    """First cells of the page's first table."""
    lines = PAGE.read_text().split("\n\n")[1].splitlines()[2:]
    return [line.split("|")[1].strip() for line in lines]


def units_of(model: LoadedModel, layer: str) -> int | None:
    return {each.name: each.units for each in list_layers(model)}[layer]


def torchvision(_: Path) -> None:
    assert units_of(load_model("squeezenet1_1", weights="random"), "features.0") == 64


def named_weights(_: Path) -> None:
    model = load_model("SqueezeNet1_1_Weights.IMAGENET1K_V1", weights="random")
    assert units_of(model, "features.0") == 64


def timm(_: Path) -> None:
    assert units_of(load_model("timm:resnet10t", weights="random"), "layer1") == 64


def transformers(folder: Path) -> None:
    save_hf("ViT", folder / "m")
    assert units_of(load_model(f"hf:{folder / 'm'}"), "vit.layers.0") == 12


def places365(folder: Path) -> None:
    made = load_model("places365:resnet18", weights="random")
    torch.save(made.module.state_dict(), folder / "w.pth")
    assert load_model("places365:resnet18", weights=folder / "w.pth").weights == made.weights
    with pytest.raises(ValueError, match="needs its checkpoint"):
        load_model("places365:resnet18")


def efficientnet(_: Path) -> None:
    assert units_of(load_model("efficientnet-lite0"), "_blocks.15") == 320


def checkpoint(folder: Path) -> None:
    torch.save({"state_dict": Small(3).state_dict()}, folder / "w.pth")
    assert load_model(SMALL, weights=folder / "w.pth").weights == hash_weights(Small(3))


def pickled(folder: Path) -> None:
    torch.save(Small(3), folder / "w.pth")
    with pytest.raises(UntrustedCodeError, match="--trust"):
        load_model(SMALL, weights=folder / "w.pth")
    loaded = load_model(SMALL, weights=folder / "w.pth", trust=True)
    assert loaded.weights == hash_weights(Small(3))


def torchscript(folder: Path) -> None:
    scripted(nn.Sequential(nn.Conv2d(3, 4, 3))).save(str(folder / "m.pt"))
    with pytest.raises(UntrustedCodeError, match="--trust"):
        load_model(str(folder / "m.pt"))
    assert units_of(load_model(str(folder / "m.pt"), trust=True), "0") == 4


def own(_: Path) -> None:
    assert units_of(load_model(SMALL), "second") == 5


class TokensFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.mix = nn.Conv2d(3, 6, 4, 4), nn.Linear(6, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.mix(self.look(images).flatten(2).permute(2, 0, 1))


def tokens_first(_: Path) -> None:
    model = LoadedModel.of(TokensFirst(), "first", Preprocessing(16))
    assert units_of(model, "mix") is None
    assert {each.name: each.units for each in list_layers(model, "tokens_first")}["mix"] == 5


def autoencoder(folder: Path) -> None:
    save_file({"W_enc": torch.ones(5, 9)}, folder / "sae.safetensors")
    assert units_of(load_model(SMALL, sae=folder / "sae.safetensors"), "second") == 9


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 2, 3)

    def forward(self, images: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.look(images) * scale


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TwoInputs()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(images, torch.ones(1))


def several_inputs(_: Path) -> None:
    with pytest.raises(ValueError, match="Wrap it"):
        list_layers(LoadedModel.of(TwoInputs(), "two", Preprocessing(8)))
    assert units_of(LoadedModel.of(Wrapped(), "one", Preprocessing(8)), "model.look") == 2


def text(folder: Path) -> None:
    save_hf("Bert", folder / "m")
    with pytest.raises(ValueError, match="takes input_ids, not images alone"):
        load_model(f"hf:{folder / 'm'}")


def windows(folder: Path) -> None:
    save_hf("Swin", folder / "m")
    model = load_model(f"hf:{folder / 'm'}")
    found = {each.name: each for each in list_layers(model)}
    block = found["swin.encoder.layers.0.blocks.0"]
    assert (block.units, block.map_shape) == (6, (8, 8))
    inside = found["swin.encoder.layers.0.blocks.0.attention"]
    assert inside.units is None
    assert inside.why is not None
    assert "windowed attention" in inside.why


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.always, self.sometimes = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        images = self.always(images)
        if images.shape[0] > 0:
            images = self.sometimes(images)
        return images


def conditions(_: Path) -> None:
    program = LoadedModel.of(scripted(Branching()), "program", Preprocessing(8))
    assert [each.name for each in list_layers(program)] == ["always"]
    vision: Any = import_torchvision().models
    dense = scripted(vision.DenseNet(4, (2, 1), 8, num_classes=3))
    found = {each.name for each in list_layers(LoadedModel.of(dense, "dense", Preprocessing(32)))}
    assert "features.denseblock1" in found
    assert "features.denseblock1.denselayer1" not in found


CASES: dict[str, Callable[[Path], None]] = {
    "networks of torchvision": torchvision,
    "weights of torchvision by name": named_weights,
    "networks of timm": timm,
    "models of transformers": transformers,
    "networks of Places365": places365,
    "EfficientNet-Lite": efficientnet,
    "checkpoints of a named network": checkpoint,
    "pickled modules": pickled,
    "TorchScript": torchscript,
    "any other network in Python": own,
    "layers of a transformer": tokens_first,
    "features of a sparse autoencoder": autoencoder,
    "models that take more than images": several_inputs,
    "models of text": text,
    "windows inside windowed attention": windows,
    "parts that a scripted program": conditions,
}
"""By the beginning of a row."""


@pytest.mark.parametrize("row", rows())
def test_every_row_of_the_table_is_true(tmp_path: Path, row: str):
    (case,) = [case for name, case in CASES.items() if row.startswith(name)]
    case(tmp_path)


def test_every_case_has_a_row():
    assert all(any(row.startswith(name) for row in rows()) for name in CASES)
