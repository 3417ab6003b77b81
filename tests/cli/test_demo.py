"""The demo: from generated scenes through the network of the package to explanations."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations import list_layers, load_model
from optexp_jax.activations.demo_network import WEIGHTS
from optexp_jax.cli import demo
from optexp_jax.datasets.shapes import Shapes
from optexp_jax.demo import LAYER, Demo, make_demo

SCENES = 10


@pytest.fixture(autouse=True)
def _few_scenes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("optexp_jax.demo.N_SCENES", SCENES)
    monkeypatch.chdir(tmp_path)  # where the report would go


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optexp_jax.demo.N_SCENES", SCENES)
        return make_demo(tmp_path_factory.mktemp("demo"), seed=3)


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_demo_json_recomputes(capsys: pytest.CaptureFixture[str], small_demo: Demo):
    shown = run_json(capsys, "demo", "--seed", "3", "--length", "2")
    table = small_demo.table
    assert shown["table"]["concepts"] == list(table.names)
    assert shown["table"]["samples"] == SCENES
    assert len(shown["units"]) > 50
    masks = {name: table.mask(name) for name in table.names}
    lengths = set()
    for entry in shown["units"][::8]:
        bitmap = small_demo.units.bitmap(entry["unit"])
        assert entry["active"] == np.count_nonzero(bitmap)
        for found in (entry["single"], entry["best"]):
            mask = ox.Formula.parse(found["formula"], table).evaluate(masks)
            assert found["intersection"] == np.count_nonzero(mask & bitmap)
            assert found["union"] == np.count_nonzero(mask | bitmap)
            assert found["iou"] == found["intersection"] / found["union"]
        assert entry["best"]["iou"] == entry["best"]["upper_bound"]
        assert entry["best"]["status"] == "optimal"
        best_concept = max(overlap(mask, bitmap) for mask in masks.values())
        assert entry["single"]["iou"] == best_concept
        assert entry["best"]["iou"] >= best_concept
        lengths.add(len(ox.Formula.parse(entry["best"]["formula"])))
    assert max(lengths) == 2, "a limit of two concepts is used"


def overlap(mask: np.ndarray, bitmap: np.ndarray) -> float:
    return np.count_nonzero(mask & bitmap) / np.count_nonzero(mask | bitmap)


def test_demo_table_is_plain_when_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_demo: Demo
):
    monkeypatch.setattr(demo, "make_demo", lambda folder, seed: small_demo)
    first = run_json(capsys, "demo", "--length", "1")
    assert not Path("optexp-demo-report").exists()
    assert cli.main(["demo", "--length", "1", "--no-report"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "", "a progress bar belongs on a terminal only"
    assert "\x1b" not in captured.out
    lines = captured.out.splitlines()
    # The best units come first.
    best = sorted(first["units"], key=lambda entry: -entry["best"]["iou"])[:12]
    rows = [line for line in lines if line.startswith("unit ") and "optimal" in line]
    assert len(rows) == len(best)
    for entry, row in zip(best, rows, strict=True):
        assert row.split()[1] == str(entry["unit"])
        assert entry["best"]["formula"] in row
        assert f"{entry['best']['iou']:.3f}" in row
    assert "README" in lines[-1]


def test_demo_ends_with_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_demo: Demo
):
    pytest.importorskip("altair")
    monkeypatch.setattr(demo, "make_demo", lambda folder, seed: small_demo)
    assert cli.main(["demo", "--length", "1"]) == 0
    page = Path("optexp-demo-report/index.html")
    assert f"Look at the units: open {page} in a browser." in capsys.readouterr().out.splitlines()
    assert "<html" in page.read_text(encoding="utf-8")
    assert cli.main(["demo", "--length", "1", "--report", "other"]) == 0
    assert Path("other/index.html").exists()


def test_demo_says_what_a_report_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_demo: Demo
):
    monkeypatch.setattr(demo, "make_demo", lambda folder, seed: small_demo)
    monkeypatch.setitem(sys.modules, "optexp_jax.report", None)
    assert cli.main(["demo", "--length", "1"]) == 0
    assert 'pip install "optexp-jax[report]"' in capsys.readouterr().out


def test_demo_without_torch_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert cli.main(["demo"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert 'pip install "optexp-jax[torch]"' in line


def test_network_ships_and_is_small():
    assert Path(str(WEIGHTS)).stat().st_size < 1_000_000
    model = load_model("demo")
    (layer,) = [layer for layer in list_layers(model) if layer.name == LAYER]
    assert (layer.units, layer.map_shape) == (64, (14, 14))


def test_network_knows_its_concepts():
    """It was trained: what it says of scenes it has not seen is far better than chance."""
    model = load_model("demo")
    scenes = Shapes(16, seed=7)
    samples = [scenes[k] for k in range(len(scenes))]
    images = np.stack([model.preprocessing(sample.image) for sample in samples])
    with torch.no_grad():
        said = model.module(torch.from_numpy(images)).amax((2, 3)).numpy()
    there = np.zeros(said.shape, bool)
    for sample, row in zip(samples, there, strict=True):
        present = np.unique(np.concatenate([values.reshape(-1) for values in sample.maps]))
        row[[*present[present >= 0], *sample.everywhere]] = True
    told = np.flatnonzero(there.any(0) & ~there.all(0))
    better = [said[there[:, k], k].mean() > said[~there[:, k], k].mean() for k in told]
    assert len(told) > 50
    assert np.mean(better) > 0.85
