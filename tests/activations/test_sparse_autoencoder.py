"""Sparse autoencoders over a layer: features by hand, files that do not fit, recordings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.model_cases import shapes_images
from safetensors.torch import save_file

from optexp_jax import cli
from optexp_jax.activations import (
    ActivationStore,
    LayerProbe,
    SparseAutoencoder,
    list_layers,
    load_model,
    record_activations,
)

SMALL = "helpers.model_cases:make_small"
"""Its layer `second` has 5 units, and `first` has 4."""


def tensors(n_units: int = 5, n_features: int = 7) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(1)
    shapes = {"W_enc": (n_units, n_features), "b_enc": (n_features,), "b_pre": (n_units,)}
    return {name: torch.randn(shape, generator=drawn) for name, shape in shapes.items()}


def by_hand(x: np.ndarray, parts: dict[str, torch.Tensor], activation: str, k: int) -> np.ndarray:
    """The features of one location, written out."""
    encoder, bias, before = (parts[name].numpy() for name in ("W_enc", "b_enc", "b_pre"))
    values = [
        sum((x[i] - before[i]) * encoder[i, j] for i in range(len(x))) + bias[j]
        for j in range(len(bias))
    ]
    if activation == "jumprelu":
        return np.array(
            [v if v > max(t, 0) else 0 for v, t in zip(values, parts["threshold"], strict=True)]
        )
    kept = sorted(range(len(values)), key=lambda j: -values[j])[:k]
    return np.array(
        [max(v, 0) if activation == "relu" or j in kept else 0 for j, v in enumerate(values)]
    )


@pytest.mark.parametrize("activation", ["relu", "topk", "jumprelu"])
def test_features_are_those_of_the_layers_values(tmp_path: Path, activation: str):
    parts, k = tensors(), 2
    metadata = {"activation": activation}
    if activation == "topk":
        metadata["k"] = str(k)
    if activation == "jumprelu":
        parts["threshold"] = torch.tensor([0.0, 0.5, 1.0, -1.0, 0.2, 0.1, 3.0])
    save_file(parts, tmp_path / "sae.safetensors", metadata)
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 20, 20))).float()
    plain = LayerProbe(load_model(SMALL), "second")(batch).numpy()
    model = load_model(SMALL, sae=tmp_path / "sae.safetensors")
    found = LayerProbe(model, "second")(batch).numpy()
    assert found.shape == (2, 7, *plain.shape[2:])
    for sample, row, column in np.ndindex(2, *plain.shape[2:]):
        wanted = by_hand(plain[sample, :, row, column], parts, activation, k)
        np.testing.assert_allclose(found[sample, :, row, column], wanted, atol=1e-5)
    assert 0 < (found > 0).mean() < 1


def test_what_an_autoencoder_of_other_tools_subtracts_has_to_be_said(tmp_path: Path):
    parts = tensors()
    parts["b_dec"] = parts.pop("b_pre")
    parts["W_dec"] = torch.zeros(7, 5)
    file = tmp_path / "sae.safetensors"
    save_file(parts, file)
    with pytest.raises(ValueError, match=r"holds b_dec.*subtract_b_dec"):
        SparseAutoencoder.open(file)
    save_file(parts, file, {"subtract_b_dec": "true"})
    assert torch.equal(SparseAutoencoder.open(file).pre_bias, parts["b_dec"])
    save_file(parts, file, {"subtract_b_dec": "false"})
    assert not SparseAutoencoder.open(file).pre_bias.any()
    bare = {"W_enc": parts["W_enc"]}
    save_file(bare, file)
    assert not SparseAutoencoder.open(file).bias.any()


@pytest.mark.parametrize(("change", "metadata", "said"), [
    ({"W_enc": torch.ones(5)}, {}, r"W_enc must be \[unit, feature\]; its shape is \[5\]"),
    ({"W_enc": torch.ones(7, 5)}, {}, r"b_enc must have 5 values; its shape is \[7\].*transpose"),
    ({"b_pre": torch.ones(4)}, {}, r"b_pre must have 5 values; its shape is \[4\]"),
    ({"threshold": torch.ones(3)}, {}, r"threshold must have 7 values"),
    ({}, {"activation": "gelu"}, r"activations are relu, topk, jumprelu; its metadata say 'gelu'"),
    ({}, {"activation": "topk"}, r"topk needs k from 1 to 7 .*got None"),
    ({}, {"activation": "topk", "k": "8"}, r"topk needs k from 1 to 7 .*got 8"),
    ({}, {"activation": "jumprelu"}, r"jumprelu needs a tensor `threshold`"),
    ({"encoder.weight": torch.ones(7, 5)}, {}, r"Store it with these names"),
])  # fmt: skip
def test_files_that_do_not_fit_are_explained(
    tmp_path: Path, change: dict[str, torch.Tensor], metadata: dict[str, str], said: str
):
    save_file({**tensors(), **change}, tmp_path / "sae.safetensors", metadata)
    with pytest.raises(ValueError, match=said):
        SparseAutoencoder.open(tmp_path / "sae.safetensors")


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no sparse autoencoder at"):
        SparseAutoencoder.open(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        SparseAutoencoder.open(tmp_path / "text.safetensors")


def test_layers_of_another_width_are_refused_and_listed_without_units(tmp_path: Path):
    save_file(tensors(), tmp_path / "sae.safetensors")
    model = load_model(SMALL, sae=tmp_path / "sae.safetensors")
    small = {layer.name: layer for layer in list_layers(model)}
    assert small["second"].units == 7
    assert small["first"].units is None
    said = r"sae.safetensors takes 5 values a location, and 'first' gives 4"
    with pytest.raises(ValueError, match=said):
        record_activations(model, "first", shapes_images(), tmp_path / "a.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["sae.safetensors"]


def test_features_are_recorded_and_not_taken_for_others(tmp_path: Path, capsys: Any):
    file, out = tmp_path / "sae.safetensors", tmp_path / "a.zarr"
    save_file(tensors(), file)
    command = ["activations", "--model", SMALL, "--layer", "second", "--data", "shapes:n=3,size=24"]
    command += ["--size", "20", "--out", str(out)]
    assert cli.main([*command, "--sae", str(file)]) == 0
    assert f"7 units of second in {SMALL}+sae.safetensors" in capsys.readouterr().out
    assert ActivationStore.open(out).shape == (3, 7, 4, 4)
    assert cli.main([*command, "--sae", str(file)]) == 0, "the same is read again"
    capsys.readouterr()
    others = tensors()
    others["b_enc"] += 1
    save_file(others, file)
    for arguments in (command, [*command, "--sae", str(file)]):
        assert cli.main(arguments) == 1
        assert "holds other activations" in capsys.readouterr().err
    assert cli.main(["layers", SMALL, "--size", "20", "--sae", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "2 layers without units. first: sae.safetensors takes 5 values" in shown
