"""The layer that a command line names: files that there are, or a model and a dataset."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.activations.torch_import import require_torch
from optexp_jax.cli.bars import bar
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.runs.layers import StoredLayer

MOST_PIXELS = 8192
"""In a row or column of a table's maps."""


@dataclass(frozen=True)
class LayerInputs:
    """A table and activations, or what to make them of."""

    table: Path | None = None
    """Concept table of the dataset, a .zarr folder."""
    activations: Path | None = None
    """Stored activations of the layer over the same samples, a .zarr folder."""
    data: str | None = None
    """In place of --table: the dataset, such as folder:/data/mine. Its table is kept in the run."""
    mask_size: int = 112
    """Resolution of a table that is built of --data."""
    model: str | None = None
    """In place of --activations: the model, as `optexp layers` takes it."""
    weights: str | None = None
    """The model's weights: a checkpoint, a safetensors file, or random."""
    trust: bool = False
    """Allow a file that runs code when it is read: a TorchScript program, a pickled module."""
    layer: str | None = None
    """The model's layer, a name that `optexp layers` lists."""
    range: str = "quantile"
    """Which activations count as active: quantile:SHARE, the highest (quantile alone is
    quantile:0.005), clusters:K:CLUSTER or range:LOW:HIGH."""

    def __post_init__(self) -> None:
        if (self.table is None) == (self.data is None):
            raise ValueError(
                "Name the annotations with --table, or with --data to have a table built."
            )
        if (self.activations is None) == (self.model is None):
            raise ValueError(
                "Name the layer with --activations, or with --model and --layer to have them "
                "recorded."
            )
        if (self.model is None) != (self.layer is None):
            raise ValueError("--model and --layer go together.")
        if not 1 <= self.mask_size <= MOST_PIXELS:
            raise ValueError(f"--mask-size is from 1 to {MOST_PIXELS}; got {self.mask_size}.")

    @property
    def name(self) -> str:
        """A name for the run's folder."""
        if self.activations is not None:
            return self.activations.name.removesuffix(".zarr")
        parts = (Path(self.model or "").name, self.layer or "")
        return "-".join(part.replace(":", "_").replace("/", "_") for part in parts)


def open_inputs(inputs: LayerInputs, folder: Path, quiet: bool) -> StoredLayer:
    """A way to open the layer; what has to be made first goes into the run's folder."""
    table = inputs.table or _build(inputs, folder / "layer" / "table.zarr", quiet)
    activations = inputs.activations or _record(
        inputs, table, folder / "layer" / "activations.zarr", quiet
    )
    for option, path in (("--table", table), ("--activations", activations)):
        if not path.exists():
            raise FileNotFoundError(f"There is nothing at {path}. Check the path of {option}.")
    return StoredLayer(str(table.resolve()), str(activations.resolve()), inputs.range)


def _build(inputs: LayerInputs, out: Path, quiet: bool) -> Path:
    """The table of the dataset, built unless it was before."""
    spec = DatasetSpec.parse(inputs.data or "")
    if spec.root is not None:
        spec = dataclasses.replace(spec, root=str(Path(spec.root).expanduser().resolve()))
    shape = (inputs.mask_size, inputs.mask_size)
    if out.exists():
        built = read_provenance(out)
        if built.spec != spec or tuple(built.mask_shape) != shape:
            raise ValueError(
                f"{out} was built of {built.spec} at {built.mask_shape}, not of {spec} at {shape}. "
                "Use another --run folder."
            )
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with bar("Reading samples", quiet=quiet) as progress:
        build_table(
            spec.open(),
            out,
            mask_shape=shape,
            spec=spec,
            workers=len(os.sched_getaffinity(0)),
            progress=progress,
        )
    return out


def _record(inputs: LayerInputs, table: Path, out: Path, quiet: bool) -> Path:
    """The layer's activations over the table's samples; goes on with what is there."""
    require_torch()
    from optexp_jax.activations.models import load_model
    from optexp_jax.activations.record import find_images, record_activations

    assert inputs.model is not None
    assert inputs.layer is not None
    out.parent.mkdir(parents=True, exist_ok=True)
    model = load_model(inputs.model, weights=inputs.weights, trust=inputs.trust)
    with bar("Recording activations", quiet=quiet) as progress:
        record_activations(model, inputs.layer, find_images(table), out, progress=progress)
    return out
