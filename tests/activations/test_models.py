"""Models and layers: hooks, checkpoints, transformers, functions of one's own."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from helpers.model_cases import Small, small_model
from PIL import Image
from torch import nn

from optexp_jax import cli
from optexp_jax.activations import (
    LayerProbe,
    LoadedModel,
    Preprocessing,
    list_layers,
    load_model,
)
from optexp_jax.activations.checkpoints import (
    UntrustedCodeError,
    hash_weights,
    load_into,
    read_state,
    write_safetensors,
)
from optexp_jax.activations.layers import check_layer, read_as_maps
from optexp_jax.activations.models import PLACES365
from optexp_jax.activations.torch_import import import_torchvision


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


def test_a_failing_forward_pass_names_the_size_of_the_images():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4))
    said = "flat fails on images of 9 x 9: mat1 and mat2"
    with pytest.raises(ValueError, match=said):
        list_layers(LoadedModel.of(flat, "flat", Preprocessing(9)))
    with pytest.raises(ValueError, match=said):
        LayerProbe(LoadedModel.of(flat, "flat"), "1")(torch.zeros(2, 3, 9, 9))
    assert LayerProbe(LoadedModel.of(flat, "flat"), "1")(torch.zeros(2, 3, 8, 8)).shape[1] == 4


def test_models_of_other_precision_are_given_theirs():
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 20, 20))).float()
    single = LayerProbe(small_model(), "second")(batch)
    for kind, most in ((torch.bfloat16, 0.05), (torch.float64, 1e-5)):
        model = LoadedModel.of(Small().to(kind), "other", Preprocessing(20))
        maps = LayerProbe(model, "second")(batch)
        assert maps.dtype == torch.float32
        assert torch.allclose(maps, single, atol=most)
        assert list_layers(model)[0].name == "first"


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
        ((2, 3, 3, 6), "auto", (2, 6, 3, 3)),
        ((2, 3, 3, 6), "nchw", (2, 3, 3, 6)),
        ((2, 6, 3, 3), "auto", (2, 6, 3, 3)),
        ((2, 3, 3, 3), "auto", (2, 3, 3, 3)),
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
    with pytest.raises(UntrustedCodeError, match=r"run any code.*--trust"):
        read_state(pickled_densenet)
    out = tmp_path / "dense.safetensors"
    assert cli.main(["models", "convert", str(pickled_densenet), str(out)]) == 1
    assert "trust" in capsys.readouterr().err
    assert not out.exists()
    convert = ["models", "convert", str(pickled_densenet), str(out), "--trust"]
    assert cli.main(convert) == 0
    assert "tensors" in capsys.readouterr().out
    plain, trusted = read_state(out), read_state(pickled_densenet, trust=True)
    assert plain.keys() == trusted.keys()
    assert "features.denseblock1.denselayer1.norm1.weight" in plain
    assert all(torch.equal(plain[name], trusted[name]) for name in plain)
    assert cli.main(convert) == 1
    assert "exists" in capsys.readouterr().err


def test_safetensors_go_where_they_can(tmp_path):
    path = tmp_path / "new" / "folder" / "a.safetensors"
    write_safetensors({"a": torch.ones(2)}, path)
    assert read_state(path)["a"].tolist() == [1, 1]
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode, "others may read it"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match="plain"):
        write_safetensors({"a": torch.ones(2)}, tmp_path / "plain" / "a.safetensors")


def test_reading_a_refused_pickle_runs_nothing(tmp_path):
    marker = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (Path.touch, (marker,))

    torch.save(Trap(), tmp_path / "trap.pth")
    with pytest.raises(UntrustedCodeError):
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


def test_versions_of_modules_go_with_their_tensors(tmp_path):
    class Halved(nn.Module):
        """From version 2 on its weight is kept halved."""

        _version = 2

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
            if local_metadata.get("version") != 2:
                state_dict[f"{prefix}weight"] /= 2
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)

    parallel = nn.ModuleDict({"module": nn.Sequential(Halved())})
    state: Any = parallel.state_dict()
    torch.save(state, tmp_path / "new.pth")
    write_safetensors(state, tmp_path / "new.safetensors")
    state._metadata["module.0"]["version"] = 1
    torch.save(state, tmp_path / "old.pth")
    for name, wanted in (("new.pth", 1.0), ("new.safetensors", 1.0), ("old.pth", 0.5)):
        loaded = nn.Sequential(Halved())
        load_into(loaded, read_state(tmp_path / name), name)
        assert loaded.state_dict()["0.weight"].item() == wanted, name


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
        ("helpers.model_cases:make_nothing", "must return a torch.nn.Module"),
        ("helpers.model_cases:nothing_here", "model_cases has no nothing_here"),
        (
            "helpers.model_cases:make_failure",
            r"RuntimeError: no weights here \(.*model_cases.py, line",
        ),
        ("helpers.model_cases:make_with_argument", "called without arguments, raised TypeError"),
        ("no_such_module:make", "there is no module no_such_module"),
        ("nowhere.pt", "no TorchScript file"),
    ],
)
def test_unknown_models_are_explained(name, said):
    with pytest.raises((ValueError, TypeError, OSError), match=said):
        load_model(name)


def test_a_checkpoint_for_a_model_is_explained(tmp_path):
    torch.save(Small().state_dict(), tmp_path / "state.pth")
    with pytest.raises(ValueError, match=r"It is a file: pass it as weights"):
        load_model(str(tmp_path / "state.pth"))


def test_weights_that_cannot_be_downloaded_are_explained(monkeypatch):
    def fail(*_: object, **__: object):
        raise URLError("no route to host")

    weights = import_torchvision().models.get_model_weights("resnet18").DEFAULT
    monkeypatch.setattr(type(weights), "get_state_dict", fail)
    with pytest.raises(OSError, match=r"weights of resnet18 could not .*no route.*--weights"):
        load_model("resnet18")


def test_functions_of_ones_own(tmp_path):
    torch.save(Small(1).state_dict(), tmp_path / "w.pth")
    loaded = load_model("helpers.model_cases:make_small", weights=tmp_path / "w.pth")
    assert loaded.weights == small_model(1).weights


@pytest.mark.parametrize("wrap", [
    lambda state: {"model_state_dict": state, "epoch": 3},
    lambda state: {"net": state},
    lambda state: {f"_orig_mod.{name}": value for name, value in state.items()},
    lambda state: {f"module._orig_mod.{name}": value for name, value in state.items()},
    lambda state: {"state_dict": {**{f"model.{name}": v for name, v in state.items()},
                                  "loss.weight": torch.ones(2)}},
    lambda state: {"state_dict": {f"model._orig_mod.{name}": v for name, v in state.items()}},
])  # fmt: skip
def test_checkpoints_of_training_tools(tmp_path, wrap):
    vision = import_torchvision().models
    module = vision.get_model("squeezenet1_1", weights=None, num_classes=7)
    path = tmp_path / "checkpoint.ckpt"
    torch.save(wrap(dict(module.state_dict())), path)
    assert load_model("squeezenet1_1", weights=path).weights == hash_weights(module)
    torch.save(wrap(dict(Small(3).state_dict())), path)
    loaded = load_model("helpers.model_cases:make_small", weights=path)
    assert loaded.weights == hash_weights(Small(3))
