"""How images are prepared: what torchvision's weights state, and the paper's way."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.model_cases import Small, shapes_images
from PIL import Image
from torch import nn

from optexp_jax import cli
from optexp_jax.activations import LoadedModel, Preprocessing, load_model, record_activations
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.activations.vision_models import VisionName, vision_input

vision: Any = import_torchvision().models
NAMES = vision.list_models(module=vision)


class Shapeless(nn.Module):
    """A network of which only the images that it takes are asked for."""

    def __init__(self, name: str):
        super().__init__()
        if name.startswith("vit_"):
            self.image_size = vision.get_model_weights(name).DEFAULT.transforms().crop_size[0]


@pytest.mark.parametrize(("name", "shape"), [
    *((name, (90, 70)) for name in NAMES),
    *((name, shape) for name in ("resnet18", "vit_l_16") for shape in ((250, 333), (40, 31))),
])  # fmt: skip
def test_every_network_is_shown_what_torchvision_shows_it(name: str, shape: tuple[int, int]):
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    transforms = vision.get_model_weights(name).DEFAULT.transforms()
    expected = transforms(Image.fromarray(image)).numpy()
    found = VisionName.find(name)
    assert found is not None
    stated = vision_input(found, Shapeless(name))
    np.testing.assert_allclose(stated.prepared("weights", name)(image), expected, atol=1e-5)
    whole = stated.prepared("whole", name)
    size = transforms.crop_size[0]
    squeezed = Image.fromarray(image).resize(
        (size, size), Image.Resampling[transforms.interpolation.value.upper()]
    )
    wanted = (np.asarray(squeezed, np.float32) / 255 - transforms.mean) / transforms.std
    np.testing.assert_allclose(whole(image), wanted.transpose(2, 0, 1), atol=1e-5)


def test_the_paper_stays_available():
    model = load_model("resnet18", weights="random", protocol="paper")
    assert model.preprocessing == Preprocessing()
    own = load_model("helpers.model_cases:make_small", protocol="paper")
    assert own.preprocessing == Preprocessing()
    with pytest.raises(ValueError, match="comes with no statement of how"):
        load_model("demo", protocol="weights")


def test_maps_of_cropped_images_are_refused(tmp_path: Path):
    cropped = Preprocessing(20, shorter=24)
    model = LoadedModel.of(Small(), "small", cropped)
    with pytest.raises(ValueError, match=r"crops images.*--protocol whole"):
        record_activations(model, "second", shapes_images(), tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())  # Nothing that blocks the next.
    store = record_activations(model, "head", shapes_images(), tmp_path / "a.zarr")
    assert json.loads(store.metadata.key.preprocessing)["shorter"] == 24
    with pytest.raises(ValueError, match="cannot be cropped to 24"):
        Preprocessing(24, shorter=20)


def test_a_function_may_return_its_preprocessing(tmp_path: Path, monkeypatch: Any, capsys: Any):
    (tmp_path / "with_prep.py").write_text(
        "from helpers.model_cases import Small\n"
        "from optexp_jax.activations import Preprocessing\n"
        "def build():\n"
        "    return Small(), Preprocessing(32, filter='bicubic')\n"
        "def wrong():\n"
        "    return Small(), 32\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_model("with_prep:build").preprocessing == Preprocessing(32, filter="bicubic")
    with pytest.raises(TypeError, match="or that and a Preprocessing; it returned Small and int"):
        load_model("with_prep:wrong")
    assert cli.main(["layers", "with_prep:build", "--protocol", "whole"]) == 0
    assert "4x15x15" in capsys.readouterr().out
