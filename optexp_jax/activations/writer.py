"""Writing an activation store, so that a writer that was killed can be followed by another.

A store is written in rows of whole chunks into `NAME.partial`, which becomes `NAME` when it is
complete. The next writer goes on behind the last whole row.
"""

import fcntl
import shutil
from pathlib import Path
from typing import Self

import numpy as np
from jaxtyping import Float32

from optexp_jax.activations.progress import RowLayout, WriteProgress, WrittenRow
from optexp_jax.activations.store import (
    ACTIVATION_STORE,
    ARRAY,
    ActivationFileError,
    ActivationMetadata,
    ActivationStore,
    partial_path,
)
from optexp_jax.activations.upsample import as_maps
from optexp_jax.stores.arrays import create_array
from optexp_jax.stores.digests import Digests, digest_of
from optexp_jax.stores.durable import rename_folder, sync_tree
from optexp_jax.stores.store import complete

LEVEL = 1
"""Of compression."""
PROGRESS = "progress.txt"
"""In an unfinished store."""


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
        self._partial = partial_path(self._path)
        self._partial.mkdir(parents=True, exist_ok=True)
        self._lock = (self._partial / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin(metadata)
        except BlockingIOError as error:
            self._lock.close()
            raise BlockingIOError(f"Another process is writing {self._partial}.") from error
        except BaseException:
            self._lock.close()
            raise

    def _begin(self, metadata: ActivationMetadata) -> None:
        """Find what an earlier writer left, and lay out the array."""
        layout = RowLayout.of(self._shape)
        self._progress = _find_progress(self._partial, metadata, layout)
        # What describes the store is written anew: of what is there, only whole rows are trusted.
        self._digests: Digests = self._progress.chunks
        attributes = {"metadata": metadata.to_json()}
        self._group = ACTIVATION_STORE.create(self._partial, attributes, self._digests)
        self._array = create_array(
            self._group, ARRAY, layout.shape, np.float32, layout.chunks, LEVEL
        )
        self._layout, self.samples_per_row = layout, layout.chunks[0]
        self.n_done = min(len(self._progress.rows) * self.samples_per_row, self._shape[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self.n_done == 0:
            self.discard()  # Nothing of worth, and it would block other activations.
        self._lock.close()

    def discard(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self._partial, ignore_errors=True)

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
            maps = as_maps(activations)
        except ValueError as error:
            raise ValueError(f"Samples {self.n_done} to {stop - 1}: {error}") from error
        self._array[self.n_done : stop] = maps
        names = self._layout.names(len(self._progress.rows))
        content = digest_of(np.ascontiguousarray(maps).data.cast("B"))
        self._progress.add(WrittenRow(content, {name: self._digests[name] for name in names}))
        self.n_done = stop

    def finish(self) -> ActivationStore:
        """The complete store, under its name."""
        if self.n_done != self._shape[0]:
            raise ValueError(f"Only {self.n_done} of {self._shape[0]} samples were written.")
        self._group.attrs["content"] = self._progress.content
        complete(self._group)
        sync_tree(self._partial)
        rename_folder(self._partial, self._path)
        for name in (PROGRESS, "lock"):
            (self._path / name).unlink(missing_ok=True)
        self._lock.close()
        return ActivationStore.open(self._path)


def _find_progress(partial: Path, metadata: ActivationMetadata, layout: RowLayout) -> WriteProgress:
    """How far an unfinished store is, or the beginning of a new one."""
    path = partial / PROGRESS
    try:
        if not path.exists():
            others = {entry.name for entry in partial.iterdir()} - {"lock", f"{PROGRESS}.new"}
            if others:
                raise ValueError(f"{min(others)} is there, but no {PROGRESS}")
            return WriteProgress.begin(path, metadata.key, layout)
        found = WriteProgress.resume(path, metadata.key, layout)
    except ValueError as error:
        raise ActivationFileError(
            f"{partial} holds something that cannot be continued ({error}). Remove it."
        ) from error
    if found is None:
        raise ActivationFileError(
            f"{partial} holds the unfinished activations of another model, layer or dataset. "
            "Remove it or choose another path."
        )
    return found
