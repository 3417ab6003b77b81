"""The whole way on a small example: scenes, a table, a network, its activations, explanations.

Scenes are generated with exact annotations. The network comes with the package; it was trained on
other scenes to tell concepts. What its units respond to was not designed, so the explanations are
found, not planted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.activations import ActivationRange, LayerUnits, TopQuantile
from optexp_jax.activations.torch_import import require_torch
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table
from optexp_jax.explain import explain
from optexp_jax.explanation import Explanation
from optexp_jax.methods import NetDissect, Optimal

N_SCENES = 300
MODEL = "demo"
LAYER = "conv4"


@dataclass(frozen=True, eq=False)
class Demo:
    """The units of the network's layer, over the annotated scenes that it was shown."""

    spec: DatasetSpec
    units: LayerUnits

    @property
    def table(self) -> ConceptTable:
        return self.units.table


@dataclass(frozen=True, eq=False)
class DemoResult:
    """A unit's best single concept and best formula."""

    unit: int
    active_range: ActivationRange
    counts: NeuronCounts
    single: Explanation
    best: Explanation


def make_demo(folder: Path, seed: int = 0) -> Demo:
    """Generate scenes, show them to the network, and keep table and activations in the folder."""
    require_torch()  # now, and not after the scenes were drawn
    from optexp_jax.activations import find_images, load_model, record_activations

    spec = DatasetSpec("shapes", options=(("n", N_SCENES), ("seed", seed)))
    table, activations = folder / "table.zarr", folder / f"{LAYER}.zarr"
    build_table(spec.open(), table, spec=spec)
    record_activations(load_model(MODEL), LAYER, find_images(table), activations)
    return Demo(spec, LayerUnits.open(table, activations, TopQuantile()))


def explain_demo(demo: Demo, length: int = 3) -> Iterator[DemoResult]:
    """Explain each unit by one concept and by at most `length`, with a proof.

    Units that are never active are left out.
    """
    single, best = NetDissect(), Optimal(length)
    every = range(demo.units.n_units)
    for unit, counts in zip(every, demo.units.counts(every), strict=True):
        if counts.size:
            yield DemoResult(
                unit,
                demo.units.range_of(unit),
                counts,
                explain(demo.table, counts, single),
                explain(demo.table, counts, best),
            )
