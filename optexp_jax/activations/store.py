"""Raw activations of a layer on disk: float32 `[sample, unit, row, column]` in a Zarr store.

Chunks hold some units of some samples, so that either can be read without the rest.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from jaxtyping import Float32

from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.stores import StoreKind


class ActivationFileError(ValueError):
    """A file that is not an activation store, or no longer a whole one."""


ACTIVATION_STORE = StoreKind(
    "an activation store",
    "optexp_jax.ActivationStore",
    1,
    ActivationFileError,
    "Compute the activations again.",
)


@dataclass(frozen=True)
class ActivationKey:
    """What activations depend on: stores with different keys are never taken for each other."""

    model: str
    weights: str
    """Checksum of all parameters and buffers."""
    layer: str
    dataset: str
    """Fingerprint of the dataset and of which of its samples were shown."""
    preprocessing: str
    layout: str = "auto"
    """How the layer's output was read as maps."""

    @property
    def fingerprint(self) -> str:
        """A checksum of all of it."""
        text = json.dumps(dataclasses.astuple(self))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class ActivationMetadata:
    """What a store tells about itself."""

    key: ActivationKey
    dataset_spec: str | None = None
    """The dataset as `DatasetSpec.to_json` wrote it, to open it again."""
    samples: str | None = None
    """Checksum of the samples and their order, where their names are known."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ActivationMetadata":
        """From what `to_json` gave."""
        return cls(ActivationKey(**stored["key"]), stored["dataset_spec"], stored["samples"])


def hash_samples(names: Sequence[str], spec: DatasetSpec | None) -> str:
    """A checksum of which samples these are, to tell whether activations and a table go together.

    It is made without opening the dataset. Options that are text do not count: they may be paths,
    and a dataset may be moved.
    """
    told: list[Any] = [list(names)]
    if spec is not None:
        options = [option for option in spec.options if not isinstance(option[1], str)]
        told += [spec.kind, options]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class ActivationStore:
    """Stored activations, read a block at a time."""

    path: Path
    metadata: ActivationMetadata
    _array: zarr.Array[Any]

    @classmethod
    def open(cls, path: str | Path) -> "ActivationStore":
        """Open a complete store."""
        source = Path(path)
        if not source.exists():
            partial = partial_path(source)
            hint = f" {partial} is unfinished: run the command that made it again."
            raise FileNotFoundError(
                f"There is no activation store at {source}.{hint if partial.exists() else ''}"
            )
        group = ACTIVATION_STORE.open(source)
        metadata: Any = group.attrs["metadata"]
        array = stored_array(group)
        if array.nchunks_initialized != array.nchunks:  # Zarr would read what is missing as zeros.
            raise ActivationFileError(
                f"{source} is damaged: {array.nchunks - array.nchunks_initialized} of "
                f"{array.nchunks} chunks are missing. Compute the activations again."
            )
        return cls(source, ActivationMetadata.from_json(metadata), array)

    @classmethod
    def from_array(
        cls, path: str | Path, activations: np.ndarray, *, model: str = "array", layer: str = "0"
    ) -> "ActivationStore":
        """Store activations that were computed elsewhere, `[sample, unit]` or with rows and
        columns."""
        from optexp_jax.activations.writer import ActivationWriter

        values = np.asarray(activations, np.float32)
        if values.ndim == 2:
            values = values[:, :, None, None]
        if values.ndim != 4 or 0 in values.shape:
            raise ValueError(
                "Activations must be [sample, unit] or [sample, unit, row, column], none of them "
                f"empty; got {values.shape}."
            )
        content = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16)
        key = ActivationKey(model, content.hexdigest(), layer, "", "")
        n_samples, n_units, rows, columns = values.shape
        shape = (n_samples, n_units, rows, columns)
        with ActivationWriter(path, ActivationMetadata(key), shape) as writer:
            for start in range(writer.n_done, n_samples, writer.samples_per_row):
                writer.append(values[start : start + writer.samples_per_row])
            return writer.finish()

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Samples, units, rows and columns."""
        n_samples, n_units, rows, columns = self._array.shape
        return n_samples, n_units, rows, columns

    @property
    def units_per_chunk(self) -> int:
        """Units that are read together."""
        return self._array.chunks[1]

    def block(self, start: int, stop: int) -> Float32[np.ndarray, "samples units rows columns"]:
        """All units of the samples `start:stop`."""
        return self._read((slice(start, stop),))

    def units(self, start: int, stop: int) -> Float32[np.ndarray, "samples units rows columns"]:
        """All samples of the units `start:stop`."""
        return self._read((slice(None), slice(start, stop)))

    def _read(self, key: tuple[slice, ...]) -> Float32[np.ndarray, "samples units rows columns"]:
        try:
            return np.asarray(self._array[key])
        except Exception as error:
            raise ActivationFileError(
                f"{self.path} is damaged or gone ({error}). Compute the activations again."
            ) from error


def partial_path(path: Path) -> Path:
    """Where a store is written until it is complete."""
    return path.with_name(path.name + ".partial")


def stored_array(group: zarr.Group) -> zarr.Array[Any]:
    """The activations in a store's group."""
    array = group.get("activations")
    if not isinstance(array, zarr.Array) or len(array.shape) != 4:
        raise ActivationFileError(f"{group.store} is damaged: it holds no activations.")
    return array
