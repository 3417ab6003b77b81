"""Concept tables on disk: a Zarr group, chunked, compressed and checksummed.

Every chunk carries a CRC-32C, so damage is noticed when it is read; the content's fingerprint is
kept beside it, so damage to what is read at once is noticed when the table is loaded.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import zarr
import zarr.codecs
from jaxtyping import UInt

from optexp_jax.concepts.patches import (
    CHUNK_BYTES,
    Patches,
    RankArray,
    SampleMap,
    rank_dtype,
    samples_per_chunk,
)
from optexp_jax.concepts.signatures import Signatures
from optexp_jax.stores import StoreKind

if TYPE_CHECKING:
    from optexp_jax.concepts.table import ConceptTable


class TableFileError(ValueError):
    """A file that is not a concept table, or no longer a whole one."""


TABLE_STORE = StoreKind(
    "a concept table",
    "optexp_jax.ConceptTable",
    1,
    TableFileError,
    "Build the table again, or use the release that wrote it.",
)


class RankSink:
    """Takes the ranks of one sample after another, in memory or into a Zarr store."""

    def __init__(self, sample_size: int, path: str | Path | None, overwrite: bool = False):
        self._chunk = samples_per_chunk(sample_size)
        self._pending: list[UInt[np.ndarray, " locations"]] = []
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        check_free(self._path, overwrite)
        self._group = zarr.create_group(_partial(self._path), overwrite=True)
        self._array = _create(
            self._group, "ranks", (0, sample_size), rank_dtype(sample_size), self._chunk
        )

    def append(self, ranks: UInt[np.ndarray, " locations"]) -> None:
        self._pending.append(ranks)
        if self._path is not None and len(self._pending) == self._chunk:
            self._flush()

    def finish(self) -> RankArray:
        """All ranks, as an array that reads them where they are."""
        if self._path is None:
            return np.stack(self._pending)
        self._flush()
        return cast(RankArray, self._array)  # Reads with a slice, as used here, give arrays.

    def publish(self, table: "ConceptTable") -> "ConceptTable":
        """The table as it can be used; with a path, complete on disk and read from there."""
        if self._path is None:
            return table
        _write_parts(self._group, table)
        replace_folder(_partial(self._path), self._path)
        return read_table(self._path)

    def _flush(self) -> None:
        if self._pending:
            self._array.append(np.stack(self._pending))
            self._pending.clear()


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace what is there unless told to, and a folder of other things in any case."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True, or --overwrite, to replace it.")
    if path.is_dir() and any(path.iterdir()) and not (path / "zarr.json").exists():
        raise FileExistsError(
            f"{path} is a folder that holds no Zarr store, which overwrite=True does not replace. "
            "Choose another path."
        )


def write_table(table: "ConceptTable", path: str | Path, overwrite: bool = False) -> None:
    """Write a table; a reader sees the whole of it or nothing."""
    target = Path(path)
    check_free(target, overwrite)
    group = zarr.create_group(_partial(target), overwrite=True)
    if table.sample_map is not None:
        ranks, shape = table.sample_map, (table.n_samples, table.sample_map.sample_size)
        chunk = samples_per_chunk(shape[1])
        array = _create(group, "ranks", shape, rank_dtype(shape[1]), chunk)
        for start in range(0, shape[0], chunk):
            stop = min(start + chunk, shape[0])
            array[start:stop] = ranks.block(start, stop)
    _write_parts(group, table)
    replace_folder(_partial(target), target)


def read_table(path: str | Path, verify: bool = False) -> "ConceptTable":
    """Read a table; the map stays on disk and is read in the blocks that are asked for."""
    from optexp_jax.concepts.table import ConceptTable

    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"There is no concept table at {source}.")
    group = TABLE_STORE.open(source)
    attributes: dict[str, Any] = dict(group.attrs)
    try:
        table = _read_parts(ConceptTable, group, attributes)
    except Exception as error:
        raise TableFileError(
            f"{source} is damaged or incomplete ({error}). Build the table again."
        ) from error
    if table.fingerprint != attributes.get("fingerprint"):
        raise TableFileError(f"{source} is damaged: its checksum does not fit its content.")
    if verify and table.sample_map is not None:
        _verify_ranks(table.sample_map, source)
    return table


def _read_parts(
    table_type: type["ConceptTable"], group: zarr.Group, attributes: dict[str, Any]
) -> "ConceptTable":
    def array(name: str) -> np.ndarray:
        stored = group[name]
        assert isinstance(stored, zarr.Array)
        return np.asarray(stored[:])

    sample_map = None
    if attributes["location_shape"] is not None:
        ranks = group["ranks"]
        assert isinstance(ranks, zarr.Array)
        if ranks.nchunks_initialized != ranks.nchunks:  # Zarr would read what is missing as zeros.
            raise TableFileError(
                f"{ranks.nchunks - ranks.nchunks_initialized} of {ranks.nchunks} map chunks missing"
            )
        shape = tuple(attributes["location_shape"])
        digest = attributes["ranks_digest"]
        sample_map = SampleMap(shape, CheckedRanks(ranks, digest), digest)
    names = tuple(attributes["names"])
    return table_type(
        names=names,
        categories=tuple(attributes["categories"]),
        signatures=Signatures(array("signature_indptr"), array("signature_indices"), len(names)),
        patches=Patches(array("patch_indptr"), array("patch_signature"), array("patch_size")),
        sample_map=sample_map,
        given_rows=array("given_rows") if "given_rows" in group else None,
    )


class CheckedRanks:
    """A stored map whose read errors say what is wrong and what to do.

    The map is read long after the table was loaded: by then another table may stand in its place.
    """

    def __init__(self, array: zarr.Array[Any], digest: str):
        self._array = array
        self._digest = digest

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def __getitem__(self, key: slice) -> np.ndarray:
        try:
            current = zarr.open_group(self._array.store, mode="r").attrs.get("ranks_digest")
            ranks = np.asarray(self._array[key])
        except Exception as error:
            raise TableFileError(
                f"The map of {self._array.store} is damaged or gone ({error}). Build the table "
                "again."
            ) from error
        if current != self._digest:
            raise TableFileError(
                f"Another table was written to {self._array.store} after this one was loaded. "
                "Load it again."
            )
        return ranks


def _write_parts(group: zarr.Group, table: "ConceptTable") -> None:
    parts = {
        "signature_indptr": table.signatures.indptr,
        "signature_indices": table.signatures.indices,
        "patch_indptr": table.patches.indptr,
        "patch_signature": table.patches.signature,
        "patch_size": table.patches.size,
    }
    if table.given_rows is not None:
        parts["given_rows"] = table.given_rows
    for name, values in parts.items():
        chunk = max(1, CHUNK_BYTES // values.itemsize)
        array = _create(group, name, values.shape, values.dtype, chunk)
        array[:] = values
    located = table.sample_map
    group.attrs.update(
        {
            **TABLE_STORE.attributes,
            "names": list(table.names),
            "categories": list(table.categories),
            "location_shape": None if located is None else list(located.location_shape),
            "ranks_digest": None if located is None else located.digest,
            "fingerprint": table.fingerprint,
        }
    )


def _create(
    group: zarr.Group, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], chunk: int
) -> zarr.Array[Any]:
    return group.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=(chunk, *shape[1:]),
        compressors=[zarr.codecs.ZstdCodec(level=3), zarr.codecs.Crc32cCodec()],
        config={"write_empty_chunks": True},  # A missing chunk then always means damage.
    )


def _verify_ranks(sample_map: SampleMap, source: Path) -> None:
    digest = hashlib.blake2b(digest_size=16)
    step = max(1, CHUNK_BYTES // sample_map.sample_size)
    for start in range(0, sample_map.n_samples, step):
        block = sample_map.block(start, min(start + step, sample_map.n_samples))
        digest.update(np.ascontiguousarray(block).tobytes())
    if digest.hexdigest() != sample_map.digest:
        raise TableFileError(f"{source} is damaged: the map's checksum does not fit.")


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def replace_folder(partial: Path, target: Path) -> None:
    """Put the finished folder in its place; what was there goes only once the new one is in."""
    if not target.exists():
        partial.rename(target)
        return
    # A folder of its own to set the old table aside: any other name may be in use.
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.old-", dir=target.parent))
    target.rename(aside / target.name)
    partial.rename(target)
    shutil.rmtree(aside)
