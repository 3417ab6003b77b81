"""Raw activations of a layer on disk: float32 `[sample, unit, row, column]` in a Zarr store.

Chunks hold some units of some samples, so that either can be read without the rest. Each is checked
against its digest when it is read.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from optexp_jax.stores.store import CheckedArray, DataFileError, StoreKind


class ActivationFileError(DataFileError):
    """A file that is not an activation store, or no longer a whole one."""


ACTIVATION_STORE = StoreKind(
    "an activation store",
    "optexp_jax.ActivationStore",
    2,
    ActivationFileError,
    "Remove it and compute the activations again: optexp activations ...",
)
ARRAY = "activations"
"""The name of the array."""


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
    """Identity of the samples and their order; None for activations that came as an array."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ActivationMetadata":
        """From what `to_json` gave."""
        found = cls(ActivationKey(**stored["key"]), stored["dataset_spec"], stored["samples"])
        texts = (*dataclasses.astuple(found.key), found.dataset_spec or "", found.samples or "")
        if not all(type(text) is str for text in texts):
            raise ValueError("its metadata is no text")
        return found


@dataclass(frozen=True, eq=False)
class ActivationStore:
    """Stored activations, read a block at a time."""

    path: Path
    metadata: ActivationMetadata
    content: str
    """Checksum of all activations."""
    _array: CheckedArray

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
        store = ACTIVATION_STORE.open(source)
        array = store.array(ARRAY)
        try:
            metadata = ActivationMetadata.from_json(store.attributes["metadata"])
            content = store.attributes["content"]
        except (KeyError, TypeError, ValueError) as error:
            raise ACTIVATION_STORE.damaged(source, error) from error
        if len(array.shape) != 4 or array.dtype != np.float32 or type(content) is not str:
            raise ACTIVATION_STORE.damaged(source, "it holds no activations")
        return cls(source, metadata, content, array)

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
    def samples_per_chunk(self) -> int:
        """Samples that are read together."""
        return self._array.chunks[0]

    @property
    def units_per_chunk(self) -> int:
        """Units that are read together."""
        return self._array.chunks[1]

    def block(self, start: int, stop: int) -> Float32[np.ndarray, "samples units rows columns"]:
        """All units of the samples `start:stop`."""
        return self._array[start:stop]

    def units(self, start: int, stop: int) -> Float32[np.ndarray, "samples units rows columns"]:
        """All samples of the units `start:stop`."""
        return self._array[:, start:stop]


def partial_path(path: Path) -> Path:
    """Where a store is written until it is complete."""
    return path.with_name(path.name + ".partial")
