"""Counting a layer's units from raw activations, beside the forward pass that makes them.

The counting pass reads the activation store, finds the range of every unit, up-samples, thresholds
and counts by signature. Beside it stand the forward pass of a ResNet-18 over as many images, and a
plain loop in torch: `interpolate`, compare, `bincount`, one unit at a time. The latter two are
measured on a part and extrapolated. Activations are independent from cell to cell, which is hard on
a pass that leaves out samples where a unit stays silent.
"""

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

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
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, SuiteReport
from optexp_jax.bench.turns import Spread, Tell, Turns, interleave, ratios
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.stand_ins import make_annotations

SEED = 0
WHOLE = 512 * 2000
"""Units times samples that the limit of seconds is for."""
LIMIT_SECONDS, LIMIT_DIFFER = 180.0, 1e-6
BLOCK = 500
"""Samples that are compared with torch at once."""


@dataclass(frozen=True)
class ActivationSizes:
    """Units and samples of the layer, sides of its maps and masks, and of what is extrapolated."""

    units: int = 512
    samples: int = 2000
    cells: int = 7
    size: int = 112
    few: int = 4
    """Units of the torch loop and of the device kernel."""
    images: int = 32
    """Of the forward pass."""

    @classmethod
    def quick(cls) -> "ActivationSizes":
        return cls(units=32, samples=100, size=56, few=2, images=4)


def run(plan: BenchPlan, tell: Tell) -> SuiteReport:
    """Counting, the loop and the forward pass."""
    if importlib.util.find_spec("torch") is None:
        raise ImportError('The suite activations needs torch: pip install "optexp-jax[torch]".')
    sizes = ActivationSizes.quick() if plan.quick else ActivationSizes()
    tell("making data")
    made = make_annotations(sizes.samples, sizes.size, SEED)
    table = ConceptTable.from_label_maps(made.maps, made.layers, made.scenes)
    with tempfile.TemporaryDirectory(prefix="optexp-bench-") as folder:
        maps = make_activations(sizes, SEED)
        store = ActivationStore.from_array(Path(folder) / "activations.zarr", maps)
        figures = _measure(sizes, table, store, plan, tell)
    settings = {**asdict(sizes), "patches": len(table.patches), "turns": plan.turns}
    return SuiteReport(
        "activations", "Counting from activations", tuple(figures), settings=settings
    )


def make_activations(
    sizes: ActivationSizes, seed: int
) -> Float32[np.ndarray, "samples units rows columns"]:
    """As after a ReLU: two thirds of the cells are zero."""
    rng = np.random.default_rng(seed)
    shape = (sizes.samples, sizes.units, sizes.cells, sizes.cells)
    return np.maximum(rng.standard_normal(shape, np.float32) - np.float32(0.43), 0)


def _measure(
    sizes: ActivationSizes, table: ConceptTable, store: ActivationStore, plan: BenchPlan, tell: Tell
) -> list[BenchFigure]:
    every, few = range(sizes.units), range(sizes.few)

    def counting(
        rule: TopQuantile | ExplicitRange, units: range, **options: Any
    ) -> Callable[[], object]:
        return lambda: LayerUnits(table, store, rule).counts(units, **options)

    eighth = range(max(1, sizes.units // 8))
    loop = _torch_loop(sizes, table, store)
    turns = interleave(
        {
            "counting": counting(TopQuantile(), every),
            "a third active": counting(ExplicitRange(0.5), eighth),
            "host kernel": counting(TopQuantile(), few, kernel=count_pairs_on_host),
            "device kernel": counting(TopQuantile(), few, kernel=count_pairs_on_device),
            "torch loop": loop,
            "forward pass": _forward_pass(sizes),
        },
        plan.turns,
        tell=tell,
    )
    _check_loop(sizes, table, store, loop)
    passed, per_image = turns["counting"], sizes.samples / sizes.images
    scale = WHOLE / (sizes.units * sizes.samples)
    seconds = None if plan.quick else LIMIT_SECONDS
    dense = turns["a third active"].median * sizes.units / len(eighth)
    return [
        BenchFigure("counting pass", passed.median, "s"),
        BenchFigure("counting pass, whole", passed.median * scale, "s", seconds, "512 x 2000"),
        BenchFigure("counting, a third active", dense, "s", note="from an eighth of the units"),
        BenchFigure("counting pass, compiling", passed.compiling, "s"),
        _over(
            "counting / forward pass",
            passed,
            turns["forward pass"],
            1 / per_image,
            f"ResNet-18, from {sizes.images} images",
        ),
        _over(
            "counting / torch loop",
            passed,
            turns["torch loop"],
            sizes.few / sizes.units,
            f"interpolate and bincount, from {sizes.few} units",
        ),
        _over("device / host kernel", turns["device kernel"], turns["host kernel"], 1.0, ""),
        BenchFigure("differ from torch", _differing(sizes, table, store), "", LIMIT_DIFFER),
    ]


def _over(
    name: str, work: Turns[object], other: Turns[object], part: float, note: str
) -> BenchFigure:
    """A ratio to work that was measured on a part."""
    spread = Spread.of([ratio * part for ratio in ratios(work, other)])
    return BenchFigure(name, spread.median, "x", None, note, spread, watched=True)


def _torch_loop(
    sizes: ActivationSizes, table: ConceptTable, store: ActivationStore
) -> Callable[[], list[Any]]:
    """Active locations by patch, the plain way."""
    import torch

    located = table.require_map("benchmark")
    ranks = located.block(0, sizes.samples).astype(np.int64)
    patch = torch.from_numpy((table.patches.indptr[:-1, None] + ranks).reshape(-1))
    units = LayerUnits(table, store, TopQuantile())

    def loop() -> list[Any]:
        found: list[Any] = []
        for unit in range(sizes.few):
            low = units.range_of(unit).low
            maps = units.store.units(unit, unit + 1)[:, 0]
            bits = torch.from_numpy(_torch_values(maps, sizes.size) > low).reshape(-1)
            found.append(torch.bincount(patch[bits], minlength=len(table.patches)))
        return found

    return loop


def _check_loop(
    sizes: ActivationSizes,
    table: ConceptTable,
    store: ActivationStore,
    loop: Callable[[], list[Any]],
) -> None:
    """ValueError if the counts of the loop are others than ours."""
    mine = LayerUnits(table, store, TopQuantile()).counts(range(sizes.few))
    for ours, theirs in zip(mine, loop(), strict=True):
        off = int(np.abs(ours.patch_inside(table) - theirs.numpy()).sum())
        if off > 1e-5 * table.n_locations:
            raise ValueError(f"torch counts {off} locations elsewhere than the counting pass.")


def _torch_values(
    maps: Float32[np.ndarray, "samples rows columns"], size: int
) -> Float32[np.ndarray, "samples height width"]:
    import torch

    grown = torch.nn.functional.interpolate(
        torch.from_numpy(np.ascontiguousarray(maps))[:, None],
        size=(size, size),
        mode="bilinear",
        align_corners=False,
    )
    return grown[:, 0].numpy()


def _forward_pass(sizes: ActivationSizes) -> Callable[[], object]:
    """The forward pass with a hook on the last maps, over a batch."""
    import torch

    model = load_model("resnet18", weights="random")
    probe = LayerProbe(model, "layer4")
    side = model.preprocessing.size
    batch = torch.zeros(sizes.images, 3, side, side)
    return lambda: probe(batch)


def _differing(sizes: ActivationSizes, table: ConceptTable, store: ActivationStore) -> float:
    """The share of locations where torch's own interpolation gives another bit."""
    units = LayerUnits(table, store, TopQuantile())
    differ = total = 0
    for unit in range(sizes.few):
        maps = as_maps(units.store.units(unit, unit + 1)[:, 0])
        low = units.range_of(unit).low
        for start in range(0, len(maps), BLOCK):
            part = maps[start : start + BLOCK]
            bits = _torch_values(part, sizes.size) > low
            ours = upsample(part, (sizes.size, sizes.size)) > low
            differ += int(np.count_nonzero(bits != ours))
            total += bits.size
    return differ / total
