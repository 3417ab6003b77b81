"""TorchScript: layers of a program, and programs that are refused because they are code."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.model_cases import SHAPES, Small, scripted, shapes_images
from torch import nn

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations import (
    ActivationStore,
    LayerProbe,
    LoadedModel,
    Preprocessing,
    list_layers,
    load_model,
    record_activations,
)
from optexp_jax.activations.checkpoints import UntrustedCodeError
from optexp_jax.activations.layers import _run_all
from optexp_jax.activations.script_layers import run_script_layer
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.datasets.build import build_table
from optexp_jax.runs import explain_layer
from optexp_jax.runs.layers import StoredLayer


@pytest.mark.parametrize("how", ["script", "trace"])
def test_torchscript_layers_give_the_same(tmp_path, how):
    path = tmp_path / "small.pt"
    plain = nn.Sequential(Small().first, nn.Sequential(nn.ReLU(), Small().second), nn.Flatten())
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 20, 20))).float()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made: Any = torch.jit.script(plain) if how == "script" else torch.jit.trace(plain, batch)
        made.save(str(path))
    loaded = load_model(str(path), trust=True)
    expected = LoadedModel.of(plain, "plain")
    for layer in ("0", "1.0", "1.1", "1"):
        found = LayerProbe(loaded, layer)(batch)
        assert torch.equal(found, LayerProbe(expected, layer)(batch)), layer
    names = {layer.name for layer in list_layers(loaded)}
    assert {"0", "1", "1.1"} <= names
    (tmp_path / "cut.pt").write_bytes(path.read_bytes()[:-100])
    torch.save(plain.state_dict(), tmp_path / "state.pt")
    for bad in ("cut.pt", "state.pt"):
        for trust in (False, True):
            with pytest.raises(ValueError, match="not a TorchScript file"):
                load_model(str(tmp_path / bad), trust=trust)


class Writer(nn.Module):
    """Its program makes a file, and does so when it is loaded: in how its state is set."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path
        self.kept = torch.zeros(2)

    @torch.jit.export
    def __getstate__(self) -> tuple[str, torch.Tensor, bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.path, self.kept, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, torch.Tensor, bool]):
        self.path = state[0]
        self.kept = torch.from_file(state[0], True, 16)
        self.training = state[2]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images


@pytest.fixture
def writing_program(tmp_path) -> tuple[Path, Path]:
    """A TorchScript file, and the file that it writes when it is loaded."""
    program, marker = tmp_path / "program.pt", tmp_path / "written"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(Writer(str(marker))).save(str(program))
    marker.unlink(missing_ok=True)
    return program, marker


@pytest.mark.chaos("hostile files refused")
def test_a_torchscript_program_is_code(tmp_path, writing_program, capsys):
    program, marker = writing_program
    other = tmp_path / "weights.pth"
    other.write_bytes(program.read_bytes())
    out = str(tmp_path / "out.safetensors")
    for name in (str(program), f"torchscript:{other}"):
        with pytest.raises(UntrustedCodeError, match=r"TorchScript program.*--trust"):
            load_model(name)
    record = ["--layer", "x", "--out", str(tmp_path / "a.zarr"), "--data", "shapes:n=1"]
    for refused in (
        ["layers", str(program)],
        ["activations", "--model", str(program), *record],
        [
            "explain",
            "--model",
            str(program),
            *record[:2],
            *record[4:],
            "--run",
            str(tmp_path / "r"),
        ],
        ["layers", "squeezenet1_1", "--weights", str(other)],
        ["layers", "squeezenet1_1", "--weights", str(other), "--trust"],
        ["layers", "helpers.model_cases:make_small", "--weights", str(other), "--trust"],
        ["models", "convert", str(other), out],
        ["models", "convert", str(other), out, "--trust"],
    ):
        assert cli.main(refused) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "TorchScript program" in line
        assert "--trust" in line
        assert not marker.exists(), refused
    load_model(str(program), trust=True)
    assert marker.exists(), "or the refusals would show nothing"


@pytest.mark.chaos("hostile files refused")
def test_a_stored_name_of_a_program_loads_nothing(tmp_path, writing_program):
    program, marker = writing_program
    model = LoadedModel.of(Small(), str(program), Preprocessing(20))
    record_activations(model, "second", shapes_images(), tmp_path / "a.zarr")
    store = ActivationStore.open(tmp_path / "a.zarr")
    assert store.metadata.key.model == str(program)
    table = build_table(SHAPES.open(), tmp_path / "t.zarr", mask_shape=(24, 24), spec=SHAPES)
    layer = StoredLayer(str(tmp_path / "t.zarr"), str(tmp_path / "a.zarr"), "quantile:0.05")
    explain_layer(tmp_path / "run", layer, ox.Optimal(length=1), units=[0])
    assert table.n_samples == 10
    for command in ("explain", "--run"), ("verify",), ("results",):
        assert cli.main([*command, str(tmp_path / "run")]) == 0
    assert not marker.exists()


class Nested(nn.Module):
    """As many networks are written: `forward` calls methods of its own, one of them twice."""

    def __init__(self):
        super().__init__()
        self.body = Small().first
        self.head = nn.Conv2d(4, 3, 1)

    def _look(self, images: torch.Tensor, scale: float) -> torch.Tensor:
        return self.head(self.body(images) * scale)

    def _forward_impl(self, images: torch.Tensor) -> torch.Tensor:
        first = self._look(images, 1.0)
        return self._look(images + first.mean(), 2.0)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self._forward_impl(images)


@pytest.mark.parametrize(
    ("make", "layers"),
    [
        (Nested, ["body", "head"]),
        (
            lambda: import_torchvision().models.get_model("resnet18", weights=None),
            ["conv1", "layer1.0.bn2", "layer2.0.downsample.1", "layer4.1", "fc"],
        ),
    ],
)
def test_methods_that_forward_calls_are_followed(make: Any, layers: list[str]):
    plain = make()
    program = LoadedModel.of(scripted(plain), "program", Preprocessing(32))
    expected = LoadedModel.of(plain, "plain", Preprocessing(32))
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 32, 32))).float()
    for layer in layers:
        wanted = LayerProbe(expected, layer)(batch)
        assert torch.equal(LayerProbe(program, layer)(batch), wanted), layer
    names = [layer.name for layer in list_layers(program)]
    assert names == [layer.name for layer in list_layers(expected)]
    assert set(layers) <= set(names)


class InLists(nn.Module):
    """Parts in lists and dictionaries; one of them changes what it is given."""

    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([nn.Conv2d(3, 4, 3), nn.Hardswish(inplace=True)])
        self.heads = nn.ModuleDict({"last": nn.Conv2d(4, 2, 1)})

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            images = step(images)
        return self.heads["last"](self.steps[1](images - 1))


def tiny_vit() -> nn.Module:
    return import_torchvision().models.VisionTransformer(32, 8, 2, 2, 12, 24)


def tiny_convnext() -> nn.Module:
    parts: Any = __import__("torchvision.models.convnext", fromlist=["ConvNeXt"])
    return parts.ConvNeXt([parts.CNBlockConfig(8, 16, 1), parts.CNBlockConfig(16, None, 1)])


def small_mobilenet() -> nn.Module:
    return import_torchvision().models.get_model("mobilenet_v3_small", weights=None)


def googlenet() -> nn.Module:
    return import_torchvision().models.get_model("googlenet", weights=None, init_weights=False)


@pytest.mark.filterwarnings("ignore:Scripted GoogleNet always returns")
@pytest.mark.parametrize(
    "make", [InLists, tiny_vit, tiny_convnext, small_mobilenet, googlenet], ids=lambda m: m.__name__
)
def test_all_layers_of_common_networks_are_reached(make: Any):
    plain = make().eval()
    program = scripted(plain)
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 32, 32))).float()
    with torch.no_grad():
        expected, found = _run_all(plain, batch.clone()), _run_all(program, batch.clone())
    assert list(found) == list(expected)
    for name, output in found.items():
        assert output.calls == expected[name].calls, name
        wanted = expected[name].tensor
        torch.testing.assert_close(output.tensor, wanted, rtol=1e-4, atol=1e-5, msg=name)
    last = list(found)[-2]
    alone = run_script_layer(program, last, batch)
    torch.testing.assert_close(alone, expected[last].tensor, rtol=1e-4, atol=1e-5)


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Conv2d(3, 3, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.mean() > 0:
            images = self.part(images)
        return images


def test_a_program_without_reachable_layers_says_why():
    model = LoadedModel.of(scripted(Hidden()), "hidden", Preprocessing(8))
    with pytest.raises(ValueError, match=r"No layer of hidden.*inside loops or.*torch\.jit\.tr"):
        list_layers(model)
