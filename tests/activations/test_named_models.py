"""Models of timm, of transformers and by torchvision's weights: loaded, prepared, listed, told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.model_cases import save_hf, shapes_images
from PIL import Image
from torch import nn

from optexp_jax import cli
from optexp_jax.activations import (
    LayerProbe,
    Preprocessing,
    list_layers,
    load_model,
    record_activations,
)
from optexp_jax.activations.checkpoints import hash_weights
from optexp_jax.activations.timm_models import stated_by_timm
from optexp_jax.activations.torch_import import MissingTorchError, import_extra, import_torchvision

IMAGE = np.random.default_rng(0).integers(0, 256, (70, 90, 3), dtype=np.uint8)


# Torchvision's weights.


def test_every_weights_enum_is_shown_what_torchvision_shows_it(monkeypatch: pytest.MonkeyPatch):
    vision: Any = import_torchvision().models
    small = nn.Conv2d(3, 1, 1)
    networks = vision.list_models(module=vision)
    enums = [weights for name in networks for weights in vision.get_model_weights(name)]
    assert len(enums) > len(networks)
    monkeypatch.setattr(vision, "get_model", lambda *_, **__: small)
    seen: set[str] = set()
    for weights in enums:
        loaded = load_model(f"torchvision:{weights}", weights="random", protocol="weights")
        assert loaded.name == str(weights)
        if loaded.preprocessing.to_text() not in seen:
            seen.add(loaded.preprocessing.to_text())
            expected = weights.transforms()(Image.fromarray(IMAGE)).numpy()
            np.testing.assert_allclose(loaded.preprocessing(IMAGE), expected, atol=1e-5)
        assert load_model(
            str(weights), weights="random", protocol="paper"
        ).preprocessing.filter == ("bilinear")
    assert len(seen) > 10, "or all weights would state the same"


def test_the_named_weights_are_those_that_are_downloaded(monkeypatch: pytest.MonkeyPatch):
    vision: Any = import_torchvision().models
    asked: list[str] = []
    state = vision.get_model("squeezenet1_1", weights=None).state_dict()

    def download(weights: Any, **_: object) -> Any:
        asked.append(str(weights))
        return state

    kind = vision.SqueezeNet1_1_Weights
    monkeypatch.setattr(kind, "get_state_dict", download)
    loaded = load_model("SqueezeNet1_1_Weights.IMAGENET1K_V1")
    assert asked == ["SqueezeNet1_1_Weights.IMAGENET1K_V1"]
    assert loaded.preprocessing == load_model("squeezenet1_1", weights="random").preprocessing


@pytest.mark.parametrize(("name", "said"), [
    ("ResNet50_Weights.IMAGENET1K_V3", "there are ResNet50_Weights.IMAGENET1K_V1, ResNet50_We"),
    ("torchvision:ResNet5_Weights.DEFAULT", "Did you mean ResNet50_Weights"),
    ("timm:resnt18", r"timm has no model 'resnt18'. Did you mean timm:resnet18 or"),
    ("timm:resnet18.v9", r"timm has no weights 'v9' of resnet18; it has: a1_in1k, "),
    ("hf:/nowhere", r"no config.json in /nowhere. Pass a folder that save_pretrained wrote"),
])  # fmt: skip
def test_unknown_names_are_explained(name: str, said: str):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        load_model(name, weights="random")


# timm.


def test_timm_models_are_recorded_and_say_how_they_were_shown(tmp_path: Path):
    model = load_model("timm:resnet10t", weights="random")
    timm: Any = import_extra("timm", "a test")
    assert model.name == "timm:resnet10t"
    assert model.weights == load_model("timm:resnet10t", weights="random").weights
    stated = timm.data.resolve_model_data_config(model.module)
    assert (3, model.preprocessing.size, model.preprocessing.size) == stated["input_size"]
    assert model.preprocessing.filter == stated["interpolation"] == "bicubic"
    store = record_activations(model, "layer1.0", shapes_images(), tmp_path / "a.zarr")
    assert store.shape[:2] == (10, 64)
    assert json.loads(store.metadata.key.preprocessing)["filter"] == "bicubic"
    assert load_model("timm:resnet10t", weights="random", protocol="paper").preprocessing == (
        Preprocessing()
    )


def test_files_of_timm_models(tmp_path: Path):
    timm: Any = import_extra("timm", "a test")
    module = timm.create_model("resnet10t", num_classes=7)
    torch.save({"state_dict": module.state_dict()}, tmp_path / "w.pth")
    assert load_model("timm:resnet10t", weights=tmp_path / "w.pth").weights == hash_weights(module)


def test_tokens_of_timm_transformers_are_locations():
    model = load_model("timm:vit_tiny_patch16_224", weights="random")
    assert model.preprocessing.mean == (0.5, 0.5, 0.5), "as its weights state"
    found = {layer.name: layer for layer in list_layers(model)}
    assert (found["blocks.11"].units, found["blocks.11"].map_shape) == (192, (14, 14))


def test_every_data_config_of_timm_is_shown_what_timm_shows():
    timm: Any = import_extra("timm", "a test")
    import_extra("timm.data", "a test")
    cropped = whole = 0
    seen: set[str] = set()
    for name in timm.list_pretrained():
        config = timm.get_pretrained_cfg(name).to_dict()
        stated = timm.data.resolve_data_config(pretrained_cfg=config)
        if str(stated) in seen or stated["input_size"][1] > 300:
            continue
        seen.add(str(stated))
        channels, height, width = stated["input_size"]
        if channels != 3 or height != width:
            with pytest.raises(ValueError, match="Wrap it in a module"):
                stated_by_timm(stated, False, name)
            continue
        prepared = stated_by_timm(stated, False, name)
        if prepared.other_crop is not None:
            with pytest.raises(ValueError, match="crop mode"):
                prepared.prepared("weights", name)
            whole += 1
            continue
        shown = timm.data.create_transform(**stated)(Image.fromarray(IMAGE)).numpy()
        np.testing.assert_allclose(prepared.exactly(IMAGE), shown, atol=1e-5, err_msg=name)
        cropped += 1
    assert cropped > 30, (cropped, whole)


def test_pretrained_weights_of_timm_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch):
    timm: Any = import_extra("timm", "a test")

    def fail(*_: object, **__: object) -> nn.Module:
        raise OSError("no route to host")

    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(ValueError, match=r"weights of resnet10t could not be had \(no route.*--we"):
        load_model("timm:resnet10t")


# transformers.


@pytest.mark.parametrize(
    ("kind", "layer", "units", "map_shape"),
    [
        ("ViT", "vit.layers.1", 12, (4, 4)),  # and a class token
        ("DINOv2 with registers", "encoder.layer.1", 12, (4, 4)),  # and four registers
        ("CLIP", "encoder.layers.1", 12, (4, 4)),  # of images and text: the part for images
        ("ConvNext", "convnext.encoder.stages.1", 12, (4, 4)),
    ],
)
def test_folders_of_transformers(
    tmp_path: Path, kind: str, layer: str, units: int, map_shape: tuple[int, int]
):
    processor = save_hf(kind, tmp_path / "m")
    model = load_model(f"hf:{tmp_path / 'm'}")
    again = load_model(f"hf:{tmp_path / 'm'}", protocol="weights")
    assert model.weights == again.weights
    shown = processor(images=Image.fromarray(IMAGE), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(again.preprocessing(IMAGE), shown, atol=1e-4)
    found = {each.name: each for each in list_layers(model)}
    assert (found[layer].units, found[layer].map_shape) == (units, map_shape)
    store = record_activations(model, layer, shapes_images(), tmp_path / "a.zarr")
    assert store.shape == (10, units, *map_shape)
    batch = torch.from_numpy(shown)[None]
    with torch.no_grad():
        assert LayerProbe(model, layer)(batch).isfinite().all()


def test_folders_without_a_processor_or_with_other_weights(tmp_path: Path):
    save_hf("ViT", tmp_path / "m")
    (tmp_path / "m" / "preprocessor_config.json").unlink()
    model = load_model(f"hf:{tmp_path / 'm'}")
    assert model.preprocessing == Preprocessing(32), "the size that the configuration names"
    with pytest.raises(ValueError, match="no statement of how its weights want images"):
        load_model(f"hf:{tmp_path / 'm'}", protocol="weights")
    drawn = load_model(f"hf:{tmp_path / 'm'}", weights="random")
    assert drawn.weights != model.weights
    file = tmp_path / "m" / "model.safetensors"
    assert load_model(f"hf:{tmp_path / 'm'}", weights=file).weights == model.weights
    torch.save({"classifier.bias": torch.ones(2)}, tmp_path / "few.pth")
    with pytest.raises(ValueError, match=r"tensors of ViTForImageClassification are missing"):
        load_model(f"hf:{tmp_path / 'm'}", weights=tmp_path / "few.pth")
    file.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read as a model of transformers"):
        load_model(f"hf:{tmp_path / 'm'}")
    with pytest.raises(ValueError, match=r"It is a folder: .* is named hf:"):
        load_model(str(tmp_path / "m"))


def test_a_pooler_may_be_absent(tmp_path: Path):
    transformers: Any = import_extra("transformers", "a test")
    save_hf("ViT", tmp_path / "m")
    whole = load_model(f"hf:{tmp_path / 'm'}").module
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(
        json.dumps(config | {"architectures": ["ViTModel"]})
    )
    model = load_model(f"hf:{tmp_path / 'm'}")
    assert isinstance(model.module, transformers.ViTModel)
    names = [layer.name for layer in list_layers(model)]
    assert "layers.1" in names
    assert not [name for name in names if name.startswith("pooler")], "it would be random"
    assert model.weights == hash_weights(whole.get_submodule("vit"))


def test_models_of_text_are_told_to_be_wrapped(tmp_path: Path):
    save_hf("Bert", tmp_path / "m")
    with pytest.raises(ValueError, match=r"BertModel takes input_ids, not images alone. Wrap it"):
        load_model(f"hf:{tmp_path / 'm'}")


@pytest.mark.chaos("hostile files refused")
def test_code_in_a_folder_is_not_run(tmp_path: Path):
    folder, marker = tmp_path / "m", tmp_path / "ran"
    save_hf("ViT", folder)
    plain = json.loads((folder / "config.json").read_text())
    code = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    for name in ("configuration", "modeling", "processing"):
        (folder / f"{name}.py").write_text(code)
    theirs = {
        "AutoConfig": "configuration.C",
        "AutoModel": "modeling.M",
        "AutoImageProcessor": "processing.P",
    }
    processing = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**processing, "image_processor_type": "P", "auto_map": theirs})
    )
    for change in (
        {"auto_map": theirs, "model_type": "theirs"},
        {"auto_map": theirs, "architectures": ["M"]},
        {"architectures": ["pipeline"], "_attn_implementation": "someone/kernel"},
    ):
        (folder / "config.json").write_text(json.dumps({**plain, **change}))
        for weights in (None, "random"):
            with pytest.raises(ValueError, match=r"custom code|attention|image processor"):
                load_model(f"hf:{folder}", weights=weights)
        assert not marker.exists(), change


# The extra.


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any):
    save_hf("ViT", tmp_path / "m")
    capsys.readouterr()
    for module, name in (("timm", "timm:resnet18"), ("transformers", f"hf:{tmp_path / 'm'}")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingTorchError, match=rf"needs {module}: .*optexp-jax\[models\]"):
            load_model(name)
        assert cli.main(["layers", name]) == 1
        assert 'pip install "optexp-jax[models]"' in capsys.readouterr().err


def test_other_models_import_neither():
    code = (
        "import sys\nfrom optexp_jax.activations import load_model\n"
        "load_model('resnet18', weights='random')\n"
        "loaded = {'timm', 'transformers'} & set(sys.modules)\nassert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
