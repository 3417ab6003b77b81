"""Torchvision's networks with weights of a file: made as torchvision makes them for its own."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from optexp_jax import cli
from optexp_jax.activations import LayerProbe, LoadedModel, Preprocessing, load_model
from optexp_jax.activations.checkpoints import hash_weights, read_state, write_safetensors
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.activations.vision_models import (
    INCEPTIONS,
    VisionName,
    make_vision_model,
    pretrained_state,
    vision_input,
)

vision: Any = import_torchvision().models

SMALLEST = (
    *("alexnet", "convnext_tiny", "efficientnet_b0", "googlenet", "mnasnet0_5", "mobilenet_v2"),
    *("mobilenet_v3_small", "regnet_x_400mf", "resnet18", "shufflenet_v2_x0_5", "squeezenet1_1"),
    *("swin_t", "swin_v2_t", "vgg11", "vit_b_32"),
)
"""One of each family that is quickly made; the slow test takes all networks."""


@pytest.fixture
def without_download(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """What torchvision gets in place of its pretrained weights is the last item."""
    given: list[dict[str, torch.Tensor]] = []
    api: Any = __import__("torchvision.models._api", fromlist=["WeightsEnum"])
    monkeypatch.setattr(api.WeightsEnum, "get_state_dict", lambda *_, **__: given[-1])
    return given


def varied(module: nn.Module) -> dict[str, torch.Tensor]:
    """A state of the module in which batch normalisation does something."""
    state = module.state_dict()
    made = torch.Generator().manual_seed(1)
    for name in state:
        if name.endswith("running_mean"):
            state[name] = torch.randn(state[name].shape, generator=made) * 0.1
    return state


@pytest.mark.parametrize(
    ("name", "layer", "size"),
    [
        ("googlenet", "inception3a", 32),
        ("inception_v3", "Mixed_5b", 75),
        ("mnasnet0_5", "layers.8", 32),
        ("squeezenet1_1", "features.3", 64),
    ],
)
def test_a_file_acts_as_pretrained_weights_do(without_download, tmp_path, name, layer, size):
    quiet = {"init_weights": False} if name in INCEPTIONS else {}
    plain = vision.get_model(name, weights=None, **quiet)
    without_download.append(varied(plain))
    torch.save(without_download[-1], tmp_path / "w.pth")
    write_safetensors(without_download[-1], tmp_path / "w.safetensors")
    theirs = vision.get_model(name, weights="DEFAULT").eval()
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 3, size, size))).float()
    wanted = LayerProbe(LoadedModel.of(theirs, "theirs"), layer)(batch)
    assert 0 < wanted.std() < math.inf
    for weights in (tmp_path / "w.pth", tmp_path / "w.safetensors", None):
        ours = load_model(name, weights=weights)
        assert torch.equal(LayerProbe(ours, layer)(batch), wanted), weights
        assert ours.weights == hash_weights(theirs), "so that their activations are shared"
    plain.load_state_dict(without_download[-1])
    same = torch.equal(LayerProbe(LoadedModel.of(plain, "plain"), layer)(batch), wanted)
    assert same != (name in INCEPTIONS), "they change their input"


def test_training_heads_may_be_absent_or_of_other_classes(tmp_path):
    state = vision.get_model(
        "googlenet", weights=None, num_classes=5, aux_logits=False, init_weights=False
    ).state_dict()
    torch.save(state, tmp_path / "bare.pth")
    torch.save({**state, "aux1.fc2.bias": torch.zeros(1000)}, tmp_path / "tuned.pth")
    bare, tuned = (
        load_model("googlenet", weights=tmp_path / f"{n}.pth") for n in ("bare", "tuned")
    )
    assert bare.weights == tuned.weights
    assert len(bare.module.state_dict()["fc.bias"]) == 5


def test_transformers_of_other_image_sizes(without_download):
    with no_memory():
        made = vision.vit_b_32(weights=None, image_size=96, num_classes=3)
        old = {  # as torchvision's own files call them
            name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): tensor
            for name, tensor in made.state_dict().items()
        }
        without_download.append(old)
        name = VisionName.find("vit_b_32")
        assert name is not None
        found = make_vision_model("vit_b_32", pretrained_state(name), Path("w"))
    assert old.keys() != made.state_dict().keys() == found.state_dict().keys()
    assert vision_input(name, found).exactly.size == 96


def test_colours_are_normalised_as_the_weights_want_it(monkeypatch):
    monkeypatch.setattr(vision, "get_model", lambda *_, **__: nn.Conv2d(3, 1, 1))
    half = (0.5, 0.5, 0.5)
    found = load_model("efficientnet_v2_l", weights="random").preprocessing
    assert found == Preprocessing(480, half, half, "bicubic")
    paper = load_model("efficientnet_v2_l", weights="random", protocol="paper").preprocessing
    assert paper == Preprocessing()
    assert load_model("inception_v3", weights="random").preprocessing == Preprocessing(299)


# The number of classes.


@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v3_small", "mnasnet0_5"])
@pytest.mark.parametrize("n_classes", [10, 365])
def test_converted_files_load_under_torchvision_names(tmp_path, name, n_classes, capsys):
    made = vision.get_model(name, weights=None, num_classes=n_classes)
    torch.save(made.state_dict(), tmp_path / "w.pth")
    out = tmp_path / "w.safetensors"
    assert cli.main(["models", "convert", str(tmp_path / "w.pth"), str(out)]) == 0
    capsys.readouterr()
    assert list(read_state(out)) != list(made.state_dict()), "in another order"
    assert load_model(name, weights=out).weights == hash_weights(made)


@contextmanager
def no_memory() -> Generator[None]:
    """Networks have shapes, but no numbers."""
    regnet: Any = __import__("torchvision.models.regnet", fromlist=["BlockParams"])
    widths = regnet.BlockParams.from_init_params

    def with_numbers(*arguments: Any, **options: Any) -> Any:
        with torch.device("cpu"):
            return widths(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch, torch.device("meta"):
        patch.setattr(regnet.BlockParams, "from_init_params", with_numbers)
        yield


def check_classes(name: str, *numbers: int) -> None:
    quiet = {"init_weights": False} if name in INCEPTIONS else {}
    for n_classes in numbers:
        with no_memory():
            made = vision.get_model(name, weights=None, num_classes=n_classes, **quiet)
            names = sorted(made.state_dict())  # safetensors order them so
            state = {key: made.state_dict()[key] for key in names}
            found = make_vision_model(name, state, Path("w"))
        shapes = {key: tensor.shape for key, tensor in found.state_dict().items()}
        kept = [key for key in names if not key.startswith(("aux1", "aux2"))]
        assert shapes == {key: state[key].shape for key in kept}


@pytest.mark.parametrize("name", SMALLEST)
def test_classes_of_every_family(name):
    check_classes(name, 365)


@pytest.mark.slow
@pytest.mark.parametrize("name", vision.list_models(module=vision))
def test_classes_of_every_network(name):
    check_classes(name, 10, 365)


def test_a_file_of_another_network_is_refused(tmp_path):
    write_safetensors(vision.squeezenet1_0(num_classes=7).state_dict(), tmp_path / "s.safetensors")
    with pytest.raises(ValueError, match="does not fit this model"):
        load_model("squeezenet1_1", weights=tmp_path / "s.safetensors")
