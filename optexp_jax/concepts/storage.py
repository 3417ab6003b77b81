"""Concept tables on disk: a Zarr group, chunked and compressed.

Every file of it has a digest, which is checked when it is read; the content's fingerprint is kept
too, which does not depend on how the arrays are stored.
"""

import hashlib
import math
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import zarr
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
from optexp_jax.stores.arrays import create_array
from optexp_jax.stores.durable import rename_folder, sync_tree
from optexp_jax.stores.store import DataFileError, Store, StoreKind, begin_folder, complete

if TYPE_CHECKING:
    from optexp_jax.concepts.table import ConceptTable


class TableFileError(DataFileError):
    """A file that is not a concept table, or no longer a whole one."""


TABLE_STORE = StoreKind(
    "a concept table",
    "optexp_jax.ConceptTable",
    2,
    TableFileError,
    "Build the table again: optexp data build ... --overwrite.",
)
LEVEL = 3
"""Of compression."""


class RankSink:
    """Takes the ranks of one sample after another, in memory or into a Zarr store."""

    def __init__(self, sample_size: int, path: str | Path | None, overwrite: bool = False):
        self._chunk = samples_per_chunk(sample_size)
        self._pending: list[UInt[np.ndarray, " locations"]] = []
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        check_free(self._path, overwrite)
        self._group = _begin(self._path)
        self._array = create_array(
            self._group,
            "ranks",
            (0, sample_size),
            rank_dtype(sample_size),
            (self._chunk, sample_size),
            LEVEL,
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
    group = _begin(target)
    if table.sample_map is not None:
        ranks, shape = table.sample_map, (table.n_samples, table.sample_map.sample_size)
        chunk = samples_per_chunk(shape[1])
        chunks = (chunk, shape[1])
        array = create_array(group, "ranks", shape, rank_dtype(shape[1]), chunks, LEVEL)
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
    store = TABLE_STORE.open(source)
    try:
        table = _read_parts(ConceptTable, store)
        _check_parts(table)
    except (TableFileError, MemoryError):
        raise
    except Exception as error:  # attributes of another make
        raise TABLE_STORE.damaged(source, error) from error
    if table.fingerprint != store.attributes.get("fingerprint"):
        raise TABLE_STORE.damaged(source, "its fingerprint does not fit its content")
    if verify and table.sample_map is not None:
        _verify_ranks(table.sample_map, source)
    return table


def _read_parts(table_type: type["ConceptTable"], store: Store) -> "ConceptTable":
    def array(name: str) -> np.ndarray:
        return store.array(name)[:]

    attributes = store.attributes
    sample_map = None
    if attributes["location_shape"] is not None:
        shape = tuple(attributes["location_shape"])
        sample_map = SampleMap(shape, store.array("ranks"), attributes["ranks_digest"])
    names = tuple(attributes["names"])
    return table_type(
        names=names,
        categories=tuple(attributes["categories"]),
        signatures=Signatures(array("signature_indptr"), array("signature_indices"), len(names)),
        patches=Patches(array("patch_indptr"), array("patch_signature"), array("patch_size")),
        sample_map=sample_map,
        given_rows=array("given_rows") if "given_rows" in store else None,
    )


def _check_parts(table: "ConceptTable") -> None:
    """Refuse parts that do not fit each other: a store may have been made by anybody."""
    signatures, patches, located = table.signatures, table.patches, table.sample_map
    n_concepts = len(table.names)
    if not all(isinstance(name, str) for name in table.names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("its concepts have no names")
    categories = [category for category in table.categories if category is not None]
    if len(table.categories) != n_concepts or not all(type(text) is str for text in categories):
        raise ValueError("its categories are not those of its concepts")
    _check_rows("signatures", signatures.indptr, signatures.indices, n_concepts)
    _check_rows("patches", patches.indptr, patches.signature, len(signatures))
    sizes = patches.size
    if sizes.dtype != np.int64 or sizes.shape != patches.signature.shape or (sizes < 0).any():
        raise ValueError("the sizes of its patches are no counts")
    rows = table.given_rows
    if rows is not None and (rows.dtype != np.int64 or not _within(rows, len(signatures))):
        raise ValueError("its rows are not those of signatures")
    if located is None:
        return
    shape = located.location_shape
    if not all(type(size) is int and size > 0 for size in shape):
        raise ValueError("its locations have no shape")
    if located.ranks.shape != (patches.n_samples, math.prod(shape)):
        raise ValueError("its map is not that of its samples")


def _check_rows(what: str, indptr: np.ndarray, entries: np.ndarray, most: int) -> None:
    fits = (
        (indptr.dtype, entries.dtype) == (np.int64, np.int32)
        and (indptr.ndim, entries.ndim) == (1, 1)
        and len(indptr) > 0
        and (indptr[0], indptr[-1]) == (0, len(entries))
        and bool((np.diff(indptr) >= 0).all())
        and _within(entries, most)
    )
    if not fits:
        raise ValueError(f"its {what} are no lists of numbers below {most}")


def _within(numbers: np.ndarray, most: int) -> bool:
    return numbers.ndim == 1 and bool(((numbers >= 0) & (numbers < most)).all())


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
        chunk = max(1, min(CHUNK_BYTES // values.itemsize, len(values)))
        array = create_array(group, name, values.shape, values.dtype, (chunk,), LEVEL)
        array[:] = values
    located = table.sample_map
    group.attrs.update(
        {
            "names": list(table.names),
            "categories": list(table.categories),
            "location_shape": None if located is None else list(located.location_shape),
            "ranks_digest": None if located is None else located.digest,
            "fingerprint": table.fingerprint,
        }
    )
    complete(group)


def _verify_ranks(sample_map: SampleMap, source: Path) -> None:
    digest = hashlib.blake2b(digest_size=16)
    step = max(1, CHUNK_BYTES // sample_map.sample_size)
    for start in range(0, sample_map.n_samples, step):
        block = sample_map.block(start, min(start + step, sample_map.n_samples))
        digest.update(np.ascontiguousarray(block).tobytes())
    if digest.hexdigest() != sample_map.digest:
        raise TABLE_STORE.damaged(source, "the map's checksum does not fit")


def _begin(target: Path) -> zarr.Group:
    """A group beside the target, to be written and to replace it."""
    partial = _partial(target)
    begin_folder(partial)
    return TABLE_STORE.create(partial, {}, {})


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def replace_folder(partial: Path, target: Path) -> None:
    """Put the finished folder in its place; what was there goes only once the new one is in."""
    sync_tree(partial)
    if not target.exists():
        rename_folder(partial, target)
        return
    # A folder of its own to set the old table aside: any other name may be in use.
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.old-", dir=target.parent))
    target.rename(aside / target.name)
    rename_folder(partial, target)
    shutil.rmtree(aside)
