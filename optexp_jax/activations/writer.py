"""Writing an activation store, so that a writer that was killed can be followed by another.

A store is written in rows of whole chunks into `NAME.partial`, which becomes `NAME` when it is
complete. The next writer goes on behind the last whole row.
"""

import dataclasses
import fcntl
import json
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import zarr
import zarr.codecs
from jaxtyping import Float32

from optexp_jax.activations.store import (
    ACTIVATION_STORE,
    ActivationFileError,
    ActivationMetadata,
    ActivationStore,
    partial_path,
    stored_array,
)
from optexp_jax.activations.upsample import as_maps

ROW_BYTES = 2**25
"""Of the samples that are held until they are written together."""
MOST_SAMPLES_PER_ROW = 64
CHUNK_BYTES = 2**18


class ActivationWriter:
    """Takes activations of one row of samples after another; a context manager.

    It goes on where a killed one with the same key stopped, and has its store for itself.
    """

    def __init__(
        self,
        path: str | Path,
        metadata: ActivationMetadata,
        shape: tuple[int, int, int, int],
    ):
        self._path, self._shape = Path(path), shape
        if self._path.exists():
            raise FileExistsError(f"{self._path} exists; remove it or choose another path.")
        partial = partial_path(self._path)
        partial.mkdir(parents=True, exist_ok=True)
        self._progress = partial / "progress.json"
        self._lock = (partial / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._array = _open_array(partial, metadata, shape)
        except BlockingIOError as error:
            self._lock.close()
            raise BlockingIOError(f"Another process is writing {partial}.") from error
        except BaseException:
            self._lock.close()
            raise
        self.samples_per_row = self._array.chunks[0]
        self.n_done = self._read_progress()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def append(self, activations: Float32[np.ndarray, "samples units rows columns"]) -> None:
        """Write a row: `samples_per_row` samples, fewer only at the end."""
        stop = self.n_done + len(activations)
        wanted = min(self.samples_per_row, self._shape[0] - self.n_done)
        if len(activations) != wanted or activations.shape[1:] != self._shape[1:]:
            raise ValueError(
                f"Samples {self.n_done}.. need activations of shape "
                f"{(wanted, *self._shape[1:])}; got {activations.shape}."
            )
        try:
            self._array[self.n_done : stop] = as_maps(activations)
        except ValueError as error:
            raise ValueError(f"Samples {self.n_done} to {stop - 1}: {error}") from error
        self.n_done = stop
        written = self._progress.with_suffix(".new")
        written.write_text(json.dumps({"n_done": stop}), encoding="utf-8")
        os.replace(written, self._progress)

    def finish(self) -> ActivationStore:
        """The complete store, under its name."""
        if self.n_done != self._shape[0]:
            raise ValueError(f"Only {self.n_done} of {self._shape[0]} samples were written.")
        partial = partial_path(self._path)
        partial.rename(self._path)
        for name in (self._progress.name, "lock"):
            (self._path / name).unlink(missing_ok=True)
        self._lock.close()
        return ActivationStore.open(self._path)

    def _read_progress(self) -> int:
        if not self._progress.exists():  # killed before the first row was whole
            return 0
        return int(json.loads(self._progress.read_text(encoding="utf-8"))["n_done"])


def _open_array(
    partial: Path, metadata: ActivationMetadata, shape: tuple[int, int, int, int]
) -> zarr.Array[Any]:
    """The array to write to: that of an unfinished store, or a new one."""
    if not (partial / "zarr.json").exists():
        attributes = {**ACTIVATION_STORE.attributes, "metadata": metadata.to_json()}
        group = zarr.create_group(partial, attributes=attributes)
        return _create_array(group, shape)
    try:
        group = zarr.open_group(partial, mode="r+")
        stored: Any = group.attrs["metadata"]
        key = stored["key"]
        array = stored_array(group) if "activations" in group else _create_array(group, shape)
    except Exception as error:  # zarr raises many kinds for files of another make
        raise ActivationFileError(
            f"{partial} holds something that cannot be continued ({error}). Remove it."
        ) from error
    if key != dataclasses.asdict(metadata.key) or array.shape != shape:
        raise ActivationFileError(
            f"{partial} holds the unfinished activations of another model, layer or dataset. "
            "Remove it or choose another path."
        )
    return array


def _create_array(group: zarr.Group, shape: tuple[int, int, int, int]) -> zarr.Array[Any]:
    n_samples, n_units, rows, columns = shape
    sample_bytes = n_units * rows * columns * 4
    samples = min(MOST_SAMPLES_PER_ROW, n_samples, max(1, ROW_BYTES // sample_bytes))
    units = min(n_units, max(1, CHUNK_BYTES // (samples * rows * columns * 4)))
    return group.create_array(
        "activations",
        shape=shape,
        dtype=np.float32,
        chunks=(samples, units, rows, columns),
        compressors=[zarr.codecs.ZstdCodec(level=1), zarr.codecs.Crc32cCodec()],
        config={"write_empty_chunks": True},  # A missing chunk then always means damage.
    )
