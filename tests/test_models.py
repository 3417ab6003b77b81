"""Models, layers and recording: hooks, checkpoints, transformers, TorchScript, the command line."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations import (
    ActivationFileError,
    ActivationStore,
    Images,
    LayerProbe,
    LayerUnits,
    LoadedModel,
    Preprocessing,
    TopQuantile,
    find_images,
    list_layers,
    load_model,
    record_activations,
)
from optexp_jax.activations.checkpoints import UntrustedPickleError, read_state
from optexp_jax.activations.layers import check_layer, read_as_maps
from optexp_jax.activations.models import PLACES365
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table


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


def test_layers_are_listed_with_shapes_and_units():
    found = {layer.name: layer for layer in list_layers(small_model())}
    assert list(found) == ["first", "second", "relu", "head"], "in the order of their last calls"
    assert (found["first"].output, found["first"].units) == ((4, 9, 9), 4)
    assert (found["head"].units, found["head"].map_shape) == (3, (1, 1))
    assert found["relu"].calls == 2
    assert found["second"].kind == "Conv2d"


def test_outputs_are_those_at_the_moment_of_the_call():
    model = small_model()
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 20, 20))).float()
    before = LayerProbe(model, "second")(batch)
    after = LayerProbe(model, "relu")(batch)
    assert before.min() < 0, "the ReLU behind it works in place"
    assert torch.equal(torch.relu(before), after), "the last call of the shared ReLU counts"
    assert not any(part._forward_hooks for part in model.module.modules()), "hooks are removed"


def test_a_mistyped_layer_lists_the_near_ones():
    with pytest.raises(ValueError, match=r"no layer 'secnd'. Near ones: second"):
        check_layer(small_model(), "secnd")
    with pytest.raises(ValueError, match="cannot run on 'nowhere'"):
        LayerProbe(small_model(), "second", device="nowhere")
    with pytest.raises(ValueError, match="does not call 'unused'"):
        LayerProbe(small_model(), "unused")(torch.zeros(1, 3, 20, 20))


def test_model_is_evaluated_without_gradients():
    drop = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Dropout(0.5), nn.BatchNorm2d(2))
    probe = LayerProbe(LoadedModel.of(drop.train(), "drop"), "2")
    batch = torch.ones(4, 3, 5, 5)
    assert torch.equal(probe(batch), probe(batch))
    assert not probe(batch).requires_grad


@pytest.mark.parametrize(
    ("shape", "layout", "maps"),
    [
        ((2, 6, 3, 4), "auto", (2, 6, 3, 4)),
        ((2, 3, 4, 6), "nhwc", (2, 6, 3, 4)),
        ((2, 17, 6), "auto", (2, 6, 4, 4)),
        ((2, 16, 6), "tokens", (2, 6, 4, 4)),
        ((2, 6), "auto", (2, 6, 1, 1)),
    ],
)
def test_outputs_become_maps(shape, layout, maps):
    assert tuple(read_as_maps(torch.zeros(shape), layout).shape) == maps


def test_tokens_go_to_their_patches():
    tokens = torch.arange(10.0)[None, :, None]
    assert read_as_maps(tokens)[0, 0].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize("shape", [(2, 31, 6), (2, 3, 4, 5, 6)])
def test_other_outputs_are_refused(shape):
    with pytest.raises(ValueError, match=r"tokens|cannot be read"):
        read_as_maps(torch.zeros(shape))


def test_vision_transformer_layers():
    vision = import_torchvision().models.VisionTransformer(32, 8, 1, 2, 12, 24)
    model = LoadedModel.of(vision, "vit", Preprocessing(32))
    found = {layer.name: layer for layer in list_layers(model)}
    layer = found["encoder.layers.encoder_layer_0"]
    assert (layer.output, layer.units, layer.map_shape) == ((17, 12), 12, (4, 4))


def test_preprocessing_is_the_published_one():
    image = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)
    resized = np.asarray(Image.fromarray(image).resize((16, 16), Image.Resampling.BILINEAR))
    wanted = (resized / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    found = Preprocessing(16)(image)
    assert found.shape == (3, 16, 16)
    assert np.allclose(found, wanted.transpose(2, 0, 1), atol=1e-5)
    with pytest.raises(ValueError, match="red, green and blue"):
        Preprocessing().changed(mean=[0.5])


def test_only_running_a_model_imports_torch():
    code = (
        "import sys, optexp_jax.activations, optexp_jax.cli, optexp_jax.demo\n"
        "loaded = {'torch', 'torchvision', 'safetensors'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Checkpoints.


def places_file(name: str, path: Path) -> dict[str, torch.Tensor]:
    """A checkpoint in the form in which it is distributed; its tensors with torchvision's names."""
    model = load_model(f"places365:{name}", weights="random").module
    state = dict(model.state_dict())
    if name == "densenet161":
        torch.save(model, path)
        return state
    prefix = {"resnet18": ("", "module."), "alexnet": ("features.", "features.module.")}[name]
    old, new = prefix
    renamed = {
        new + key.removeprefix(old) if key.startswith(old) else key: value
        for key, value in state.items()
        if not key.endswith("num_batches_tracked")  # older than those
    }
    torch.save({"epoch": 1, "arch": name, "state_dict": renamed}, path)
    return state


@pytest.mark.parametrize("name", ["resnet18", pytest.param("alexnet", marks=pytest.mark.slow)])
def test_places365_state_dicts(tmp_path, name):
    path = tmp_path / PLACES365[name][0]
    state = places_file(name, path)
    loaded = load_model(f"places365:{name}", weights=path)
    assert loaded.preprocessing.size == {"resnet18": 224, "alexnet": 227}[name]
    for key, value in loaded.module.state_dict().items():
        assert torch.equal(value, state[key])


@pytest.fixture(scope="module")
def pickled_densenet(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("places") / PLACES365["densenet161"][0]
    with pytest.MonkeyPatch.context() as patch:
        # The smallest network with the same names: the real one takes seconds to make.
        vision = import_torchvision().models
        real = vision.get_model

        def small(name: str, **options: Any) -> nn.Module:
            if name != "densenet161":
                return real(name, **options)
            return vision.DenseNet(8, (2, 1), 8, num_classes=365)

        patch.setattr(vision, "get_model", small)
        places_file("densenet161", path)
    return path


def test_pickled_module_is_refused_and_converted_once(tmp_path, pickled_densenet, capsys):
    with pytest.raises(UntrustedPickleError, match=r"run any code.*--trust-pickle"):
        read_state(pickled_densenet)
    out = tmp_path / "dense.safetensors"
    assert cli.main(["models", "convert", str(pickled_densenet), str(out)]) == 1
    assert "trust" in capsys.readouterr().err
    assert not out.exists()
    convert = ["models", "convert", str(pickled_densenet), str(out), "--trust-pickle"]
    assert cli.main(convert) == 0
    assert "tensors" in capsys.readouterr().out
    plain, trusted = read_state(out), read_state(pickled_densenet, trust_pickle=True)
    assert plain.keys() == trusted.keys()
    assert "features.denseblock1.denselayer1.norm1.weight" in plain
    assert all(torch.equal(plain[name], trusted[name]) for name in plain)
    assert cli.main(convert) == 1
    assert "exists" in capsys.readouterr().err


def test_reading_a_refused_pickle_runs_nothing(tmp_path):
    marker = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (Path.touch, (marker,))

    torch.save(Trap(), tmp_path / "trap.pth")
    with pytest.raises(UntrustedPickleError):
        read_state(tmp_path / "trap.pth")
    assert not marker.exists()


def test_old_names_of_dense_layers_and_parallel_models(tmp_path):
    one = torch.ones(1)
    names = {
        "module.features.denseblock1.denselayer2.norm.1.weight": (
            "features.denseblock1.denselayer2.norm1.weight"
        ),
        "features.module.0.weight": "features.0.weight",
        "features.1.conv.0.weight": "features.1.conv.0.weight",
        "submodule.weight": "submodule.weight",
    }
    torch.save(dict.fromkeys(names, one), tmp_path / "old.pth")
    assert list(read_state(tmp_path / "old.pth")) == list(names.values())


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    torch.save({"state_dict": {"conv1.weight": torch.ones(1)}}, tmp_path / "x.pth")
    with pytest.raises(ValueError, match="does not fit this model"):
        load_model("resnet18", weights=tmp_path / "x.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ValueError, match="holds no state dict"):
        read_state(tmp_path / "list.pth")
    (tmp_path / "half.pth").write_bytes((tmp_path / "x.pth").read_bytes()[:200])
    (tmp_path / "text.pth").write_text("hello")
    (tmp_path / "text.safetensors").write_text("hello")
    for name in ("half.pth", "text.pth", "text.safetensors"):
        with pytest.raises(ValueError, match="not a checkpoint, or it is damaged"):
            read_state(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        read_state(tmp_path / "none.pth")


def test_torchvision_model_from_a_checkpoint_of_other_classes(tmp_path):
    vision = import_torchvision().models
    state = vision.squeezenet1_1(num_classes=7).state_dict()
    torch.save(state, tmp_path / "s.pth")
    loaded = load_model("squeezenet1_1", weights=tmp_path / "s.pth")
    assert torch.equal(loaded.module.state_dict()["classifier.1.bias"], state["classifier.1.bias"])


def test_random_weights_are_the_same_every_time():
    first, again = (load_model("squeezenet1_1", weights="random") for _ in range(2))
    assert first.weights == again.weights
    assert first.weights != LoadedModel.of(Small(), "s").weights


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnt18", "Did you mean resnet18"),
        ("places365:vgg", "Places365 networks are resnet18"),
        ("places365:resnet18", "resnet18_places365.pth.tar and pass it"),
        ("test_models:make_nothing", "must return a torch.nn.Module"),
        ("test_models:nothing_here", "cannot be imported"),
        ("no_such_module:make", "cannot be imported"),
        ("nowhere.pt", "no TorchScript file"),
    ],
)
def test_unknown_models_are_explained(name, said):
    with pytest.raises((ValueError, TypeError, OSError), match=said):
        load_model(name)


def test_functions_of_ones_own(tmp_path):
    torch.save(Small(1).state_dict(), tmp_path / "w.pth")
    loaded = load_model("test_models:make_small", weights=tmp_path / "w.pth")
    assert loaded.weights == small_model(1).weights


@pytest.mark.parametrize("how", ["script", "trace"])
def test_torchscript_layers_give_the_same(tmp_path, how):
    path = tmp_path / "small.pt"
    plain = nn.Sequential(Small().first, nn.Sequential(nn.ReLU(), Small().second), nn.Flatten())
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 20, 20))).float()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made: Any = torch.jit.script(plain) if how == "script" else torch.jit.trace(plain, batch)
        made.save(str(path))
    loaded = load_model(str(path))
    expected = LoadedModel.of(plain, "plain")
    for layer in ("0", "1.0", "1.1", "1"):
        found = LayerProbe(loaded, layer)(batch)
        assert torch.equal(found, LayerProbe(expected, layer)(batch)), layer
    names = {layer.name for layer in list_layers(loaded)}
    assert {"0", "1", "1.1"} <= names
    (tmp_path / "bad.pt").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a TorchScript file"):
        load_model(str(tmp_path / "bad.pt"))


# Recording.


def test_recorded_activations_are_the_layers(tmp_path):
    model, images = small_model(), shapes_images()
    store = record_activations(model, "second", images, tmp_path / "a.zarr", batch_size=3)
    inputs = np.stack([model.preprocessing(images.dataset[k].image) for k in range(10)])
    with torch.no_grad():
        maps = torch.relu(model.module.get_submodule("first")(torch.from_numpy(inputs)))
        wanted = model.module.get_submodule("second")(maps).numpy()
    assert store.shape == (10, 5, 4, 4)
    assert np.allclose(store.block(0, 10), wanted, atol=1e-5)
    assert store.metadata.dataset_spec == SHAPES.to_json()
    fully = record_activations(model, "head", images, tmp_path / "fc.zarr")
    assert fully.shape == (10, 3, 1, 1)


def test_a_recording_is_reused_continued_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("optexp_jax.activations.writer.MOST_SAMPLES_PER_ROW", 4)
    path, images = tmp_path / "a.zarr", shapes_images()
    seen: list[int] = []

    def stop_at_second_row(done: int, total: int) -> None:
        seen.append(done)
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_activations(small_model(), "second", images, path, progress=stop_at_second_row)
    with pytest.raises(ActivationFileError, match="another model, layer or dataset"):
        record_activations(small_model(1), "second", images, path)
    seen.clear()
    store = record_activations(
        small_model(), "second", images, path, progress=lambda done, total: seen.append(done)
    )
    assert seen == [10], "only the last row was left"
    whole = record_activations(small_model(), "second", images, tmp_path / "b.zarr")
    assert np.array_equal(store.block(0, 10), whole.block(0, 10))
    # The same again is read, anything else is refused.
    again = record_activations(small_model(), "second", images, path)
    assert again.metadata == store.metadata
    other_size = LoadedModel.of(Small(), "small0", Preprocessing(22))
    for model, layer in [
        (small_model(), "first"),
        (small_model(1), "second"),
        (other_size, "second"),
    ]:
        with pytest.raises(ActivationFileError, match="other activations"):
            record_activations(model, layer, images, path)


def test_infinite_activations_name_the_layer(tmp_path):
    class Endless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Identity()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.part(images / 0)

    model = LoadedModel.of(Endless(), "endless", Preprocessing(8))
    with pytest.raises(ValueError, match=r"Layer 'part' of endless: .*finite"):
        record_activations(model, "part", shapes_images(), tmp_path / "a.zarr")


# End to end.


def test_efficientnet_from_images_to_explanations(tmp_path, capsys):
    """A real pretrained network, generated images, all through the command line."""
    spec = DatasetSpec.parse("shapes:n=8,seed=2,size=64")
    table_path, out = tmp_path / "table.zarr", tmp_path / "head.zarr"
    build_table(spec.open(), table_path, mask_shape=(28, 28), spec=spec)
    command = ["activations", "--model", "efficientnet-lite0", "--layer", "_blocks.15"]
    assert cli.main([*command, "--data", str(table_path), "--out", str(out)]) == 0
    assert "320 units" in capsys.readouterr().out
    units = LayerUnits.open(table_path, out, TopQuantile(0.05))
    assert units.n_units == 320
    counts = units.counts(range(8))
    for unit in range(8):
        wanted = units.table.count(units.bitmap(unit))
        assert np.array_equal(counts[unit].inside, wanted.inside)
        found = ox.explain(units.table, counts[unit], ox.Optimal(2))
        assert found.status == "optimal"
        assert found.iou >= ox.explain(units.table, counts[unit], ox.NetDissect()).iou > 0


def test_activations_of_other_samples_are_refused(tmp_path):
    first, second = (DatasetSpec.parse(f"shapes:n=4,size=24,seed={k}") for k in (1, 2))
    build_table(first.open(), tmp_path / "1.zarr", mask_shape=(8, 8), spec=first)
    with_colours = DatasetSpec.parse("shapes:n=4,size=24,seed=1,add=position")
    build_table(with_colours.open(), tmp_path / "1p.zarr", mask_shape=(8, 8), spec=with_colours)
    fingerprints = [find_images(tmp_path / name).fingerprint for name in ("1.zarr", "1p.zarr")]
    assert fingerprints[0] == fingerprints[1], "derived concepts do not change the images"
    assert find_images(str(second)).fingerprint != fingerprints[0]
    images = find_images(tmp_path / "1.zarr")
    record_activations(small_model(), "second", images, tmp_path / "a.zarr")
    LayerUnits.open(tmp_path / "1p.zarr", tmp_path / "a.zarr")
    build_table(second.open(), tmp_path / "2.zarr", mask_shape=(8, 8), spec=second)
    with pytest.raises(ValueError, match="not of the same samples"):
        LayerUnits.open(tmp_path / "2.zarr", tmp_path / "a.zarr")


def test_layers_command(capsys):
    assert cli.main(["layers", "test_models:make_small", "--size", "20", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["layer"] for entry in shown] == ["first", "second", "relu", "head"]
    assert shown[1] == {
        "layer": "second",
        "kind": "Conv2d",
        "output": [5, 4, 4],
        "units": 5,
        "map": [4, 4],
        "calls": 1,
    }
    assert cli.main(["layers", "test_models:make_small", "--size", "20"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split() == ["second", "Conv2d", "5x4x4", "5", "4x4", "1"]


def test_activations_command_fails_in_one_line(tmp_path, capsys, monkeypatch):
    command = ["activations", "--model", "test_models:make_small", "--data", "shapes:n=3,size=24"]
    out = ["--out", str(tmp_path / "a.zarr")]
    assert cli.main([*command, "--layer", "thrid", *out]) == 1
    assert "no layer 'thrid'" in capsys.readouterr().err
    assert cli.main([*command, "--layer", "second", "--size", "20", *out]) == 0
    assert ActivationStore.open(tmp_path / "a.zarr").shape == (3, 5, 4, 4)
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "torch", None)
    for arguments in ([*command, "--layer", "second", *out], ["layers", "resnet18"]):
        assert cli.main(arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert 'pip install "optexp-jax[torch]"' in line


@pytest.mark.parametrize(
    "command", [["layers"], ["activations"], ["models"], ["models", "convert"]]
)
def test_help_shows_an_example_that_parses(capsys, monkeypatch, tmp_path, command):
    assert cli.main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (example,) = [line.removeprefix("example: ") for line in lines if line.startswith("example: ")]

    def fail(*_: object, **__: object):
        raise ValueError("not run, only parsed")

    monkeypatch.chdir(tmp_path)
    for module in (cli.layers, cli.activations):
        monkeypatch.setattr(module, "load_from_options", fail)
    monkeypatch.setattr("optexp_jax.activations.checkpoints.read_state", fail)
    assert cli.main(example.split()[1:]) == 1
    assert "not run, only parsed" in capsys.readouterr().err
