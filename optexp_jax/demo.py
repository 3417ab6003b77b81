"""The whole way on a small example: scenes, a table, a network, its activations, explanations.

Scenes are generated with exact annotations. The network comes with the package; it was trained on
other scenes to tell concepts. What its units respond to was not designed, so the explanations are
found, not planted.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from optexp_jax.activations import LayerUnits, TopQuantile
from optexp_jax.activations.torch_import import require_torch
from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table
from optexp_jax.methods import Optimal
from optexp_jax.runs import Observer, Run, explain_layer
from optexp_jax.runs.layers import StoredLayer

N_SCENES = 300
MODEL = "demo"
LAYER = "conv4"


@dataclass(frozen=True, eq=False)
class Demo:
    """The units of the network's layer, over the annotated scenes that it was shown."""

    spec: DatasetSpec
    layer: StoredLayer

    @cached_property
    def units(self) -> LayerUnits:
        return LayerUnits.open(self.layer.table, self.layer.activations, TopQuantile())

    @property
    def table(self) -> ConceptTable:
        return self.units.table


def make_demo(folder: Path, seed: int = 0) -> Demo:
    """Generate scenes, show them to the network, and keep table and activations in the folder."""
    require_torch()  # now, and not after the scenes were drawn
    from optexp_jax.activations import find_images, load_model, record_activations

    spec = DatasetSpec("shapes", options=(("n", N_SCENES), ("seed", seed)))
    table, activations = folder / "table.zarr", folder / f"{LAYER}.zarr"
    build_table(spec.open(), table, spec=spec)
    record_activations(load_model(MODEL), LAYER, find_images(table), activations)
    return Demo(spec, StoredLayer(str(table), str(activations)))


def explain_demo(
    demo: Demo, folder: Path, length: int = 3, observer: Observer | None = None
) -> Run:
    """Explain each unit by at most `length` concepts, with a proof, into a run."""
    return explain_layer(folder, demo.layer, Optimal(length), observer=observer)
