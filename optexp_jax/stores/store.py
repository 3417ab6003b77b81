"""Zarr stores of this package: how each kind tells what it is, and refuses what it is not."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from optexp_jax.stores.arrays import DigestedStore, StoredArray
from optexp_jax.stores.digests import (
    DIGESTS,
    Digests,
    MisfitError,
    read_checked,
    read_digests,
    write_digests,
)


class DataFileError(ValueError):
    """A file that results are made of is damaged, gone, or another one than before.

    Such an error says nothing about the unit that was being explained: it stops a run.
    """


@dataclass(frozen=True)
class StoreKind:
    """One kind of store: a Zarr group whose attributes give its format and version."""

    name: str
    """What it is, with its article, in error messages."""
    format: str
    version: int
    error: type[DataFileError]
    """Raised for a file that is not such a store, or no longer a whole one."""
    again: str
    """What to do about one that is damaged or of another version."""

    def create(self, folder: Path, attributes: Mapping[str, Any], digests: Digests) -> zarr.Group:
        """A group to be written into a folder; its `DigestedStore` keeps the digests."""
        marked = {"format": self.format, "version": self.version, **attributes}
        return zarr.create_group(
            DigestedStore.at(folder, digests), zarr_format=3, attributes=marked
        )

    def open(self, source: Path) -> "Store":
        """A complete store, to be read."""
        self._check_version(source)
        try:
            digests = read_digests(source)
            read_checked(source, "zarr.json", digests)
            missing = [name for name in digests if not (source / name).is_file()]
            if missing:
                raise MisfitError(
                    f"{len(missing)} of {len(digests)} files are missing, the first {missing[0]}"
                )
            group = zarr.open_group(
                DigestedStore.at(source, digests, read_only=True), mode="r", zarr_format=3
            )
            return Store(self, source, digests, group, Stamp.of(source))
        except MemoryError:
            raise
        except Exception as error:  # whatever zarr makes of it
            raise self.damaged(source, error) from error

    def read_file(self, source: Path, name: str) -> bytes | None:
        """A file of a complete store beside its arrays; None if it has none of that name."""
        self._check_version(source)
        try:
            digests = read_digests(source)
            if name not in digests and not (source / name).exists():
                return None
            return read_checked(source, name, digests)
        except (OSError, MisfitError) as error:
            raise self.damaged(source, error) from error

    def damaged(self, source: Path, why: object) -> DataFileError:
        """The error for a store that is not what was written."""
        return self.error(f"{source} is damaged or incomplete ({why}). {self.again}")

    def _check_version(self, source: Path) -> None:
        """Refuse what was never such a store, or is of another release, in these words."""
        try:
            attributes = dict(zarr.open_group(source, mode="r").attrs)
        except Exception as error:  # zarr raises many kinds for a folder or file of another make
            raise self.error(f"{source} is not {self.name} (no Zarr group: {error}).") from error
        if attributes.get("format") != self.format:
            raise self.error(f"{source} is a Zarr group, but not {self.name}.")
        if attributes.get("version") != self.version:
            raise self.error(
                f"{source} has format version {attributes.get('version')}; this release reads "
                f"{self.version}. {self.again}"
            )


@dataclass(frozen=True)
class Stamp:
    """Tells, without reading it, that a store's list of digests is the file that it was."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, folder: Path) -> "Stamp":
        found = (folder / DIGESTS).stat()
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class Store:
    """A complete store. All of it is checked when it is read, long after it was opened, too."""

    def __init__(
        self, kind: StoreKind, path: Path, digests: Digests, group: zarr.Group, stamp: Stamp
    ):
        self.kind, self.path, self.digests = kind, path, digests
        self.attributes: dict[str, Any] = dict(group.attrs)
        self._group, self._stamp = group, stamp

    def __contains__(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._group

    def array(self, name: str) -> "CheckedArray":
        """An array of the store."""
        try:
            found = self._group[name]
        except Exception as error:
            raise self.kind.damaged(self.path, error) from error
        if not isinstance(found, zarr.Array):
            raise self.kind.damaged(self.path, f"{name} is no array")
        stored = StoredArray.of(self.path, self.digests, found)
        return CheckedArray(self.kind, stored, self._stamp)


class CheckedArray:
    """An array of a store, whose read errors say what is wrong and what to do.

    It may be read long after the store was opened: by then another store may stand in its place.
    """

    def __init__(self, kind: StoreKind, stored: StoredArray, stamp: Stamp):
        self._kind, self._stored, self._stamp = kind, stored, stamp

    @property
    def shape(self) -> tuple[int, ...]:
        return self._stored.shape

    @property
    def chunks(self) -> tuple[int, ...]:
        return self._stored.chunks

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._stored.dtype

    def __getitem__(self, key: slice | tuple[slice, ...]) -> np.ndarray:
        try:
            self._check_stamp()
            return self._stored.read(key if isinstance(key, tuple) else (key,))
        except (OSError, ValueError, RuntimeError) as error:  # the last is Zstandard's
            if self._is_replaced():
                raise self._kind.error(
                    f"{self._stored.folder} was replaced by another store after it was opened. "
                    "Open it again."
                ) from error
            raise self._kind.damaged(self._stored.folder, error) from error

    def _check_stamp(self) -> None:
        """Notice another store in this one's place, even where its chunks are the same."""
        now = Stamp.of(self._stored.folder)
        if now == self._stamp:
            return
        if read_digests(self._stored.folder) != self._stored.digests:
            raise MisfitError(f"{DIGESTS} has changed")
        self._stamp = now  # the same store, copied back

    def _is_replaced(self) -> bool:
        try:
            return read_digests(self._stored.folder) != self._stored.digests
        except (OSError, MisfitError):
            return False


def begin_folder(folder: Path) -> None:
    """An empty folder to write a store into."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def complete(group: zarr.Group) -> None:
    """Write the digests of a group that is written, which makes it a complete store."""
    store = group.store
    assert isinstance(store, DigestedStore)
    write_digests(store.folder, store.digests)
