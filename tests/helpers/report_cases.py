"""Runs for tests of reports: a small folder of images, two methods, and names that bite."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import optexp_jax as ox
from optexp_jax.activations import ActivationStore
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table
from optexp_jax.runs import NullModel, OtherImages, Run, explain_layer
from optexp_jax.runs.layers import StoredLayer

SCRIPT = "<script>document.title='bitten'</script>"
IMAGE = '"><img src=x onerror="document.title=1">&amp;'
NAMES = ("sky", "water", SCRIPT, IMAGE, "boat's {{ 7 * 7 }}")
N_SAMPLES, N_UNITS, SIDE = 10, 12, 32


@dataclass(frozen=True)
class ReportRuns:
    """Runs over one layer."""

    optimal: Run
    beam: Run


def make_folder(root: Path) -> None:
    """Images with a label map each: rectangles of the concepts."""
    rng = np.random.default_rng(0)
    for part in ("images", "labels"):
        (root / part).mkdir(parents=True)
    for k in range(N_SAMPLES):
        labels = np.zeros((SIDE, SIDE), np.uint8)
        for value in range(1, len(NAMES)):
            top, left = rng.integers(0, SIDE - 8, 2)
            height, width = rng.integers(6, SIDE // 2, 2)
            labels[top : top + height, left : left + width] = value
        noise = rng.integers(0, 60, (SIDE, SIDE, 3), np.uint8)
        Image.fromarray(noise + 30 * labels[:, :, None]).save(root / "images" / f"{k:02}.png")
        Image.fromarray(labels).save(root / "labels" / f"{k:02}.png")
    with (root / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("value", "name"), *enumerate(NAMES)])


def make_runs(folder: Path) -> ReportRuns:
    """Two runs over the same units: the optimum with runners-up and a null model, and a beam."""
    make_folder(folder / "data")
    spec = DatasetSpec("folder", root=str(folder / "data"))
    table = build_table(spec.open(), folder / "table.zarr", mask_shape=(16, 16), spec=spec)
    rng = np.random.default_rng(1)
    masks = np.stack([table.mask(name) for name in table.names])
    values = rng.normal(0, 0.4, (N_SAMPLES, N_UNITS, 16, 16)).astype(np.float32)
    for unit in range(N_UNITS):
        one, other = rng.permutation(len(masks))[:2]
        values[:, unit] += masks[one] + 0.6 * masks[other]
    ActivationStore.from_array(folder / "layer.zarr", values, model="<b>net</b>", layer="conv")
    source = StoredLayer(str(folder / "table.zarr"), str(folder / "layer.zarr"), "quantile:0.2")
    optimal = explain_layer(
        folder / "optimal",
        source,
        ox.Optimal(length=3, top_k=3),
        null=NullModel(19),
        other_images=OtherImages(folds=2, bootstrap=3, within="noise"),
    )
    beam = explain_layer(folder / "beam", source, ox.Beam(length=2, size=1))
    return ReportRuns(optimal, beam)
