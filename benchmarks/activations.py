"""Counting a layer's units from raw activations, beside the forward pass that makes them.

    python benchmarks/activations.py
    python benchmarks/activations.py --units 64 --samples 200   # a quick run

The counting pass reads the activation store, finds the range of every unit, up-samples, thresholds
and counts by signature. Beside it stand the forward pass of a ResNet-18 over as many images, and a
plain loop in torch: `interpolate`, compare, `bincount`, one unit at a time. The latter two are
measured on a part and extrapolated. Activations are independent from cell to cell, which is hard on
a pass that leaves out samples where a unit stays silent.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from harness import Figure, benchmark_parser, report, say, stopwatch
from jaxtyping import Float32

from optexp_jax import ConceptTable
from optexp_jax.activations import (
    ActivationStore,
    ExplicitRange,
    LayerProbe,
    LayerUnits,
    TopQuantile,
    load_model,
)
from optexp_jax.activations.counting import count_pairs_on_device, count_pairs_on_host
from optexp_jax.activations.upsample import as_maps, upsample
from optexp_jax.stand_ins import make_annotations

UNITS, SAMPLES, CELLS, SIZE, SEED = 512, 2000, 7, 112, 0
LIMIT_SECONDS, LIMIT_DIFFER = 180, 1e-6
FORWARD_IMAGES, FORWARD_BATCH = 64, 32
LOOP_UNITS, DEVICE_UNITS, CHECKED_UNITS = 4, 4, 4


def make_activations(
    n_samples: int, n_units: int, cells: int, seed: int
) -> Float32[np.ndarray, "samples units rows columns"]:
    """As after a ReLU: two thirds of the cells are zero."""
    rng = np.random.default_rng(seed)
    maps = rng.standard_normal((n_samples, n_units, cells, cells), np.float32)
    return np.maximum(maps - np.float32(0.43), 0)


def torch_values(
    maps: Float32[np.ndarray, "samples rows columns"], size: int
) -> Float32[np.ndarray, "samples height width"]:
    grown = torch.nn.functional.interpolate(
        torch.from_numpy(np.ascontiguousarray(maps))[:, None],
        size=(size, size),
        mode="bilinear",
        align_corners=False,
    )
    return grown[:, 0].numpy()


def torch_loop(
    units: LayerUnits, patch: torch.Tensor, n_units: int, size: int
) -> list[torch.Tensor]:
    """Active locations by patch, the plain way."""
    found: list[torch.Tensor] = []
    for unit in range(n_units):
        low = units.range_of(unit).low
        maps = units.store.units(unit, unit + 1)[:, 0]
        bits = torch.from_numpy(torch_values(maps, size) > low).reshape(-1)
        found.append(torch.bincount(patch[bits], minlength=len(units.table.patches)))
    return found


def forward_seconds() -> float:
    """Seconds an image of the forward pass with a hook on the last maps."""
    model = load_model("resnet18", weights="random")
    probe = LayerProbe(model, "layer4")
    batch = torch.zeros(FORWARD_BATCH, 3, model.preprocessing.size, model.preprocessing.size)
    probe(batch)
    batches = FORWARD_IMAGES // FORWARD_BATCH
    return stopwatch(lambda: [probe(batch) for _ in range(batches)]) / FORWARD_IMAGES


def differing_from_torch(units: LayerUnits, size: int) -> float:
    """The share of locations where torch's own interpolation gives another bit."""
    differ = total = 0
    for unit in range(CHECKED_UNITS):
        maps = as_maps(units.store.units(unit, unit + 1)[:, 0])
        low = units.range_of(unit).low
        for start in range(0, len(maps), 500):
            part = maps[start : start + 500]
            bits = torch_values(part, size) > low
            differ += int(np.count_nonzero(bits != (upsample(part, (size, size)) > low)))
            total += bits.size
    return differ / total


def measure(table: ConceptTable, store: ActivationStore, size: int, scale: float) -> list[Figure]:
    n_samples, n_units = store.shape[:2]
    every = range(n_units)

    def fresh(rule: TopQuantile | ExplicitRange) -> LayerUnits:
        return LayerUnits(table, store, rule)

    say("Counting ...")
    fresh(TopQuantile()).counts(every[:2])  # compiles
    counting = stopwatch(lambda: fresh(TopQuantile()).counts(every))
    dense = stopwatch(lambda: fresh(ExplicitRange(0.5)).counts(every[: max(1, n_units // 8)]))
    dense *= n_units / max(1, n_units // 8)
    few = every[:DEVICE_UNITS]
    fresh(TopQuantile()).counts(few[:1], kernel=count_pairs_on_device)
    on_device = stopwatch(lambda: fresh(TopQuantile()).counts(few, kernel=count_pairs_on_device))
    on_host = stopwatch(lambda: fresh(TopQuantile()).counts(few, kernel=count_pairs_on_host))

    say("The torch loop and the forward pass ...")
    located = table.require_map("benchmark")
    ranks = located.block(0, n_samples).astype(np.int64)
    patch = torch.from_numpy((table.patches.indptr[:-1, None] + ranks).reshape(-1))
    units = fresh(TopQuantile())
    loop_counts = torch_loop(units, patch, LOOP_UNITS, size)
    loop = stopwatch(lambda: torch_loop(units, patch, LOOP_UNITS, size)) * n_units / LOOP_UNITS
    for mine, theirs in zip(units.counts(every[:LOOP_UNITS]), loop_counts, strict=True):
        off = np.abs(mine.patch_inside(table) - theirs.numpy()).sum()
        assert off <= 1e-5 * table.n_locations, f"torch counts {off} locations elsewhere"
    forward = forward_seconds() * n_samples
    whole = f"for {UNITS} units x {SAMPLES} samples"
    return [
        Figure("counting pass", counting, "s", note=f"{n_units} units x {n_samples} samples"),
        Figure("counting pass, whole", counting * scale, "s", LIMIT_SECONDS, whole),
        Figure("counting, a third active", dense, "s", note="an eighth of the units, extrapolated"),
        Figure("torch forward pass", forward, "s", note=f"ResNet-18, from {FORWARD_IMAGES} images"),
        Figure("torch loop", loop, "s", note=f"interpolate + bincount, from {LOOP_UNITS} units"),
        Figure("loop / counting", loop / counting, "x"),
        Figure("counting / forward", counting / forward, "x"),
        Figure("device / host kernel", on_device / on_host, "x", note=f"{DEVICE_UNITS} units"),
        Figure("differ from torch", differing_from_torch(units, size), "", LIMIT_DIFFER),
    ]


def main() -> int:
    parser = benchmark_parser("Count a layer's units from raw activations.", "activations")
    parser.add_argument("--units", type=int, default=UNITS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--cells", type=int, default=CELLS, help="side of a map (default: 7)")
    parser.add_argument("--size", type=int, default=SIZE, help="side of a mask (default: 112)")
    options = parser.parse_args()
    if options.units < LOOP_UNITS:
        parser.error(f"--units must be at least {LOOP_UNITS}")
    say(f"Building a table of {options.samples} samples of {options.size}x{options.size} ...")
    annotations = make_annotations(options.samples, options.size, SEED)
    table = ConceptTable.from_label_maps(annotations.maps, annotations.layers, annotations.scenes)
    say(repr(table))
    with tempfile.TemporaryDirectory() as folder:
        maps = make_activations(options.samples, options.units, options.cells, SEED)
        store = ActivationStore.from_array(Path(folder) / "activations.zarr", maps)
        del maps
        scale = (UNITS * SAMPLES) / (options.units * options.samples)
        figures = measure(table, store, options.size, scale)
    settings = {
        "units": options.units,
        "samples": options.samples,
        "cells": options.cells,
        "size": options.size,
        "patches": len(table.patches),
        "torch_threads": torch.get_num_threads(),
        "seed": SEED,
    }
    return report("Counting from activations", figures, settings, options.json)


if __name__ == "__main__":
    sys.exit(main())
