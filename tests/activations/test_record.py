"""Recording a layer's activations, from images to explanations, and the commands for it."""

import json
import sys

import numpy as np
import pytest
import torch
from helpers.model_cases import SHAPES, Small, shapes_images, small_model
from torch import nn

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations import (
    ActivationFileError,
    ActivationStore,
    LayerUnits,
    LoadedModel,
    Preprocessing,
    TopQuantile,
    find_images,
    record_activations,
)
from optexp_jax.cli import activations, layers
from optexp_jax.datasets import BadSampleError, DatasetSpec
from optexp_jax.datasets.build import build_table


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
    monkeypatch.setattr("optexp_jax.activations.progress.MOST_SAMPLES_PER_ROW", 4)
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


def test_an_image_that_cannot_be_read_says_how_to_leave_it_out(tmp_path):
    (tmp_path / "data" / "images").mkdir(parents=True)
    (tmp_path / "data" / "images" / "a.png").write_bytes(b"nothing")
    (tmp_path / "data" / "tags.csv").write_text("image,label\na.png,red\n")
    images = find_images(f"folder:{tmp_path / 'data'}")
    with pytest.raises(BadSampleError, match=r"'a.png' cannot be read: .*--skip-bad"):
        record_activations(small_model(), "second", images, tmp_path / "a.zarr")


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
    assert cli.main(["layers", "helpers.model_cases:make_small", "--size", "20", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["layer"] for entry in shown] == ["first", "second", "relu", "head"]
    assert shown[1] == {
        "layer": "second",
        "kind": "Conv2d",
        "output": [5, 4, 4],
        "units": 5,
        "map": [4, 4],
        "calls": 1,
        "why": None,
    }
    assert cli.main(["layers", "helpers.model_cases:make_small", "--size", "20"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split() == ["second", "Conv2d", "5x4x4", "5", "4x4", "1"]


def test_activations_command_fails_in_one_line(tmp_path, capsys, monkeypatch):
    command = [
        "activations",
        "--model",
        "helpers.model_cases:make_small",
        "--data",
        "shapes:n=3,size=24",
    ]
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
    for module in (layers, activations):
        monkeypatch.setattr(module, "load_from_options", fail)
    monkeypatch.setattr("optexp_jax.activations.checkpoints.read_state", fail)
    assert cli.main(example.split()[1:]) == 1
    assert "not run, only parsed" in capsys.readouterr().err
