"""Arrays of a Zarr store, every chunk of which is checked against its digest when it is read.

Zarr lays the arrays out and writes them; chunks are read here, because Zarr takes a chunk that is
missing for one of zeros, and one that fits its own checksum for the right one.
"""

import asyncio
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import zarr
import zarr.codecs
from numcodecs.zstd import Zstd
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore, WrapperStore

from optexp_jax.stores.digests import Digests, digest_of, read_checked

MOST_THREADS = 8
"""That read chunks at a time: hashing and decompressing need no lock."""

_ZSTD = Zstd()


class DigestedStore(WrapperStore[LocalStore]):
    """A Zarr store that takes the digest of all that is written and gives nothing that has none."""

    def __init__(self, store: LocalStore, digests: Digests):
        super().__init__(store)
        self.digests = digests

    @classmethod
    def at(cls, folder: Path, digests: Digests, *, read_only: bool = False) -> Self:
        """The store in a folder."""
        return cls(LocalStore(folder, read_only=read_only), digests)

    @property
    def folder(self) -> Path:
        return self._store.root

    def _with_store(self, store: LocalStore) -> Self:
        return type(self)(store, self.digests)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if byte_range is not None:
            raise NotImplementedError("A part of a file cannot be checked.")
        if key not in self.digests:  # Zarr asks for what may be there.
            return None
        content = await asyncio.to_thread(read_checked, self.folder, key, self.digests)
        return prototype.buffer.from_bytes(content)

    async def get_partial_values(self, *_: Any, **__: Any) -> list[Buffer | None]:
        raise NotImplementedError("A part of a file cannot be checked.")

    async def exists(self, key: str) -> bool:
        return key in self.digests

    async def set(self, key: str, value: Buffer) -> None:
        self.digests.pop(key, None)
        await self._store.set(key, value)
        self.digests[key] = digest_of(value.to_bytes())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        if key not in self.digests:
            await self.set(key, value)

    async def _set_many(self, values: Any) -> None:
        for key, value in values:
            await self.set(key, value)

    async def delete(self, key: str) -> None:
        self.digests.pop(key, None)
        await self._store.delete(key)


def create_array(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: tuple[int, ...],
    level: int,
) -> zarr.Array[Any]:
    """An array to be written, as `StoredArray` reads it."""
    return group.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=chunks,
        compressors=[zarr.codecs.ZstdCodec(level=level)],
        config={"write_empty_chunks": True},  # A missing chunk then always means damage.
    )


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a store's folder. Reading gives what was written, or an error."""

    folder: Path
    digests: Digests
    name: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, folder: Path, digests: Digests, array: zarr.Array[Any]) -> Self:
        """The array that Zarr has opened."""
        dtype = np.dtype(array.dtype).newbyteorder("<")
        return cls(folder, digests, array.basename, array.shape, array.chunks, dtype)

    def read(self, key: tuple[slice, ...]) -> np.ndarray:
        """A block: a range of each of the first axes, all of the others."""
        ranges = [part.indices(size)[:2] for part, size in zip(key, self.shape, strict=False)]
        ranges += [(0, size) for size in self.shape[len(key) :]]
        # A range that ends before it begins is empty, as in numpy.
        starts = [start for start, _ in ranges]
        stops = [max(start, stop) for start, stop in ranges]
        found = np.empty([b - a for a, b in zip(starts, stops, strict=True)], self.dtype)
        if not found.size:
            return found
        chunks = list(
            itertools.product(
                *(
                    range(start // chunk, -(-stop // chunk))
                    for start, stop, chunk in zip(starts, stops, self.chunks, strict=True)
                )
            )
        )

        def place(chunk: tuple[int, ...]) -> None:
            origin = [index * size for index, size in zip(chunk, self.chunks, strict=True)]
            ends = [at + size for at, size in zip(origin, self.chunks, strict=True)]
            first = [max(start, at) for start, at in zip(starts, origin, strict=True)]
            last = [min(stop, end) for stop, end in zip(stops, ends, strict=True)]
            here = tuple(slice(a - s, b - s) for a, b, s in zip(first, last, starts, strict=True))
            there = tuple(slice(a - o, b - o) for a, b, o in zip(first, last, origin, strict=True))
            content = self._content(chunk)
            target = found[here]
            if target.shape == self.chunks and target.flags.c_contiguous:
                _ZSTD.decode(content, target)  # in its place, without a copy
            else:
                values = np.frombuffer(_ZSTD.decode(content), self.dtype)
                target[...] = values.reshape(self.chunks)[there]

        threads = min(len(chunks), os.cpu_count() or 1, MOST_THREADS)
        if threads == 1:
            for chunk in chunks:
                place(chunk)
            return found
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(place, chunks):
                pass
        return found

    def _content(self, chunk: tuple[int, ...]) -> bytes:
        """One chunk as it was written."""
        name = "/".join([self.name, "c", *map(str, chunk)])
        return read_checked(self.folder, name, self.digests)
