"""The layer that a table is about: real activations over a real dataset, or a stand-in."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.activations import ActivationStore
from optexp_jax.activations.torch_import import require_torch
from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.reproduction.preset import LAYERS, TablePreset
from optexp_jax.reproduction.request import TableRequest
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.selection import sample_units
from optexp_jax.stand_ins import plant_layer

SEED = 0
DEMO_LAYER = "conv2"
Say = Callable[[str], None]
"""Told what is made, in a few words."""


@dataclass(frozen=True)
class TableLayer:
    """Where a layer is stored, and which of its units are explained."""

    source: StoredLayer
    units: tuple[int, ...]
    description: str
    is_stand_in: bool
    has_published_data: bool
    """Whether the dataset is that of the published figures."""


def prepare_layer(preset: TablePreset, request: TableRequest, folder: Path, say: Say) -> TableLayer:
    """The layer of a request, made in `folder` unless it is there."""
    if request.data is not None:
        return _real(preset, request, folder, say)
    if preset.name == "figures":
        return _shapes(preset, request, folder, say)
    return _stand_in(preset, request, folder, say)


def _stand_in(preset: TablePreset, request: TableRequest, folder: Path, say: Say) -> TableLayer:
    chosen, facts = preset.stand_in(request.small), LAYERS[preset.model]
    n_units = request.units or chosen.n_units
    home = folder / "data" / chosen.name
    home.mkdir(parents=True, exist_ok=True)
    table_path = home / "table.zarr"
    if not table_path.exists():
        say(f"generating {chosen.name}")
        chosen.build(table_path)
    table = ConceptTable.load(table_path)
    sign = "relu" if facts.relu else "signed"
    path = home / f"units-{n_units}-cells-{facts.cells}-{sign}.zarr"
    if not path.exists():
        say(f"planting {n_units} units")
        plant_layer(table, n_units, seed=SEED, cells=facts.cells, relu=facts.relu).save(path)
    return TableLayer(
        StoredLayer(str(table_path), str(path), preset.range),
        tuple(range(n_units)),
        f"STAND-IN {chosen.name}: {table.n_concepts} generated concepts, {table.n_samples} "
        f"samples, {n_units} planted units",
        is_stand_in=True,
        has_published_data=False,
    )


def _real(preset: TablePreset, request: TableRequest, folder: Path, say: Say) -> TableLayer:
    spec = DatasetSpec.parse(request.data or "")
    if spec.root is not None:
        spec = dataclasses.replace(spec, root=str(Path(spec.root).expanduser().resolve()))
    model = preset.model
    recorded = _record(
        spec, f"places365:{model}", LAYERS[model].layer, request, folder, preset.range, say
    )
    n_layer = ActivationStore.open(recorded.activations).shape[1]
    n_units = request.units or preset.n_units
    units = tuple(range(n_layer)) if n_units is None else sample_units(n_layer, n_units, SEED)
    table = ConceptTable.load(recorded.table)
    return TableLayer(
        recorded,
        units,
        f"{spec}: {table.n_concepts} concepts, {table.n_samples} samples, {len(units)} of "
        f"{n_layer} units of {LAYERS[model].layer}, {request.weights}",
        is_stand_in=False,
        has_published_data=spec.kind == preset.kind,
    )


def _shapes(preset: TablePreset, request: TableRequest, folder: Path, say: Say) -> TableLayer:
    """The demo network on generated scenes: planted units have no images."""
    chosen = preset.stand_in(request.small)
    spec = DatasetSpec.parse(chosen.name)
    recorded = _record(spec, "demo", DEMO_LAYER, request, folder, preset.range, say)
    n_layer = ActivationStore.open(recorded.activations).shape[1]
    n_units = min(n_layer, request.units or chosen.n_units)
    return TableLayer(
        recorded,
        tuple(range(n_units)),
        f"STAND-IN {spec}: generated scenes, {n_units} units of {DEMO_LAYER} of the demo network",
        is_stand_in=True,
        has_published_data=False,
    )


def _record(
    spec: DatasetSpec,
    model: str,
    layer: str,
    request: TableRequest,
    folder: Path,
    range_text: str,
    say: Say,
) -> StoredLayer:
    """The activations of a model's layer over a dataset, both stored unless they were before."""
    require_torch()
    from optexp_jax.activations.models import load_model
    from optexp_jax.activations.record import find_images, record_activations

    home = folder / "data" / f"{spec.kind.replace(':', '_')}-{spec.fingerprint[:8]}"
    home.mkdir(parents=True, exist_ok=True)
    table_path, path = home / "table.zarr", home / f"{model.replace(':', '-')}.zarr"
    if not table_path.exists():
        say(f"reading {spec}")
        workers = len(os.sched_getaffinity(0)) if spec.root is not None else 1
        build_table(spec.open(), table_path, spec=spec, workers=workers)
    say(f"recording {layer} of {model}")
    loaded = load_model(model, weights=request.weights, trust=request.trust)
    record_activations(loaded, layer, find_images(table_path), path)
    return StoredLayer(str(table_path), str(path), range_text)
