"""Tables and bitmaps as plain arrays on disk, which worker processes map and share.

A Zarr store is compressed, so every process that loads it holds a copy of its own. Mapped arrays
are held once by the operating system, however many processes read them.
"""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zarr

from optexp_jax.concepts.patches import Patches, RankArray, SampleMap
from optexp_jax.concepts.signatures import Signatures
from optexp_jax.concepts.storage import CheckedRanks
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.runs.sources import BitmapUnits, Opener, UnitSource

_SPARSE = ("data", "indices", "indptr")


def share_table(table: ConceptTable, folder: Path, stored: Path | None = None) -> Path:
    """Write a table's arrays for sharing; the folder that holds them, named by its fingerprint.

    The map of a table that is `stored` in a file stays there: it is read in blocks anyway.
    """
    target = folder / f"table-{table.fingerprint}"
    if target.exists():
        return target
    located = table.sample_map
    arrays = {
        "signature_indptr": table.signatures.indptr,
        "signature_indices": table.signatures.indices,
        "patch_indptr": table.patches.indptr,
        "patch_signature": table.patches.signature,
        "patch_size": table.patches.size,
        "sizes": table.sizes,
        # SciPy wants wider indices than the table has, and would make them in every process.
        **{f"incidence_{part}": getattr(table.signatures.incidence, part) for part in _SPARSE},
        **{f"holders_{part}": getattr(table.signatures.holders, part) for part in _SPARSE},
    }
    if table.given_rows is not None:
        arrays["given_rows"] = table.given_rows
    if located is not None and stored is None:
        arrays["ranks"] = located.block(0, located.n_samples)
    head = {
        "names": table.names,
        "categories": table.categories,
        "location_shape": None if located is None else located.location_shape,
        "ranks_digest": None if located is None else located.digest,
        "stored": None if stored is None else str(stored.resolve()),
    }
    return publish(target, arrays, head)


def open_shared_table(folder: Path) -> ConceptTable:
    """A table whose arrays are mapped, not read."""
    head = json.loads((folder / "head.json").read_text(encoding="utf-8"))
    sample_map = None
    if head["location_shape"] is not None:
        shape, digest = tuple(head["location_shape"]), head["ranks_digest"]
        sample_map = SampleMap(shape, _ranks(folder, head["stored"], digest), digest)
    has_rows = (folder / "given_rows.npy").exists()
    names = tuple(head["names"])
    table = ConceptTable(
        names=names,
        categories=tuple(head["categories"]),
        signatures=Signatures(
            _map(folder, "signature_indptr"), _map(folder, "signature_indices"), len(names)
        ),
        patches=Patches(
            *(_map(folder, f"patch_{part}") for part in ("indptr", "signature", "size"))
        ),
        sample_map=sample_map,
        given_rows=_map(folder, "given_rows") if has_rows else None,
    )
    # What is derived from them, and cached, is shared too.
    table.__dict__["sizes"] = _map(folder, "sizes")
    shape = (len(table.signatures), table.n_concepts)
    for name, kind in (("incidence", scipy.sparse.csr_array), ("holders", scipy.sparse.csc_array)):
        parts = tuple(_map(folder, f"{name}_{part}") for part in _SPARSE)
        table.signatures.__dict__[name] = kind(parts, shape=shape, copy=False)
    return table


def _ranks(folder: Path, stored: str | None, digest: str) -> RankArray:
    if stored is None:
        return _map(folder, "ranks")
    array = zarr.open_group(stored, mode="r")["ranks"]
    assert isinstance(array, zarr.Array)
    return CheckedRanks(array, digest)


@dataclass(frozen=True)
class SharedBitmaps(Opener):
    """Opens bitmaps and a table that `share_bitmaps` wrote."""

    folder: str
    table: str

    def open(self) -> UnitSource:
        bitmaps = np.load(Path(self.folder) / "bitmaps.npy", mmap_mode="r")
        return BitmapUnits(open_shared_table(Path(self.table)), bitmaps)


def share_bitmaps(source: BitmapUnits, folder: Path) -> SharedBitmaps:
    """Write units in memory so that other processes can open them."""
    table = share_table(source.table, folder)
    target = folder / f"bitmaps-{source.fingerprint}"
    if not target.exists():
        publish(target, {"bitmaps": source.bitmaps}, {})
    return SharedBitmaps(str(target.resolve()), str(table.resolve()))


def publish(target: Path, arrays: dict[str, np.ndarray], head: dict[str, Any]) -> Path:
    """Write a folder of arrays that others see whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", array)
    (partial / "head.json").write_text(json.dumps(head), encoding="utf-8")
    partial.chmod(0o755)
    try:
        os.rename(partial, target)
    except OSError:
        shutil.rmtree(partial)
        if not target.exists():  # else another process was first, with the same content
            raise
    return target


def _map(folder: Path, name: str) -> np.ndarray:
    # A plain view: sparse matrices and beartype alike treat the memmap class as something special.
    return np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
