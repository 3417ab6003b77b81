"""Tables and bitmaps as plain arrays on disk, which worker processes map and share.

A Zarr store is compressed, so every process that loads it holds a copy of its own. Mapped arrays
are held once by the operating system, however many processes read them. Each process checks their
digests when it maps them; a folder that does not fit is written again when a run begins.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from optexp_jax.concepts.patches import Patches, RankArray, SampleMap
from optexp_jax.concepts.signatures import Signatures
from optexp_jax.concepts.storage import TABLE_STORE
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.runs.sources import AbstractOpener, BitmapUnits, UnitSource
from optexp_jax.stores.digests import (
    Digests,
    MisfitError,
    digest_of,
    read_checked,
    read_digests,
    write_digests,
)
from optexp_jax.stores.durable import rename_folder, sync_tree
from optexp_jax.stores.store import DataFileError

_SPARSE = ("data", "indices", "indptr")
HEAD = "head.json"


class SharedFileError(DataFileError):
    """Arrays that workers share are damaged or gone."""


def share_table(table: ConceptTable, folder: Path, stored: Path | None = None) -> Path:
    """Write a table's arrays for sharing; the folder that holds them, named by its fingerprint.

    The map of a table that is `stored` in a file stays there: it is read in blocks anyway.
    """
    target = folder / f"table-{table.fingerprint}"
    located = table.sample_map
    head = {
        "names": table.names,
        "categories": table.categories,
        "location_shape": None if located is None else located.location_shape,
        "ranks_digest": None if located is None else located.digest,
        "stored": None if stored is None else str(stored.resolve()),
    }
    if is_whole(target, head):
        return target
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
    return publish(target, arrays, head)


def open_shared_table(folder: Path) -> ConceptTable:
    """A table whose arrays are mapped, not read."""
    shared = SharedArrays.open(folder)
    head, arrays = shared.head, shared.arrays
    sample_map = None
    if head["location_shape"] is not None:
        sample_map = SampleMap(tuple(head["location_shape"]), _ranks(shared), head["ranks_digest"])
    names = tuple(head["names"])
    table = ConceptTable(
        names=names,
        categories=tuple(head["categories"]),
        signatures=Signatures(arrays["signature_indptr"], arrays["signature_indices"], len(names)),
        patches=Patches(*(arrays[f"patch_{part}"] for part in ("indptr", "signature", "size"))),
        sample_map=sample_map,
        given_rows=arrays.get("given_rows"),
    )
    # What is derived from them, and cached, is shared too.
    table.__dict__["sizes"] = arrays["sizes"]
    shape = (len(table.signatures), table.n_concepts)
    for name, kind in (("incidence", scipy.sparse.csr_array), ("holders", scipy.sparse.csc_array)):
        parts = tuple(arrays[f"{name}_{part}"] for part in _SPARSE)
        table.signatures.__dict__[name] = kind(parts, shape=shape, copy=False)
    return table


def _ranks(shared: "SharedArrays") -> RankArray:
    stored = shared.head["stored"]
    if stored is None:
        return shared.arrays["ranks"]
    store = TABLE_STORE.open(Path(stored))
    if store.attributes["ranks_digest"] != shared.head["ranks_digest"]:
        raise TABLE_STORE.error(
            f"{stored} was replaced by another table since the run began. Begin another run."
        )
    return store.array("ranks")


@dataclass(frozen=True)
class SharedBitmaps(AbstractOpener):
    """Opens bitmaps and a table that `share_bitmaps` wrote."""

    folder: str
    table: str

    def open(self) -> UnitSource:
        shared = SharedArrays.open(Path(self.folder))
        return BitmapUnits(open_shared_table(Path(self.table)), shared.arrays["bitmaps"])


def share_bitmaps(source: BitmapUnits, folder: Path) -> SharedBitmaps:
    """Write units in memory so that other processes can open them."""
    table = share_table(source.table, folder)
    target = folder / f"bitmaps-{source.fingerprint}"
    if not is_whole(target, {}):
        publish(target, {"bitmaps": source.bitmaps}, {})
    return SharedBitmaps(str(target.resolve()), str(table.resolve()))


@dataclass(frozen=True, eq=False)
class SharedArrays:
    """Arrays of a folder, mapped."""

    head: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def open(cls, folder: Path) -> "SharedArrays":
        """Map the arrays of a folder, if they are those that were written there."""
        try:
            digests = read_digests(folder)
            head = json.loads(read_checked(folder, HEAD, digests))
            if head["name"] != folder.name:
                raise MisfitError(f"it was written as {head['name']}")
            names = [name for name in digests if name != HEAD]
            return cls(
                head, {name.removesuffix(".npy"): _map(folder, name, digests) for name in names}
            )
        except (OSError, MisfitError) as error:
            raise SharedFileError(
                f"{folder} is damaged or gone ({error}). Begin again with the same command: it is "
                "then made anew."
            ) from error


def is_whole(target: Path, head: Mapping[str, Any]) -> bool:
    """Whether a folder holds arrays that fit their digests, with such a head."""
    if not target.exists():
        return False
    try:
        found = SharedArrays.open(target).head
    except SharedFileError:
        return False
    return found == _with_name(target, head)


def publish(target: Path, arrays: Mapping[str, np.ndarray], head: Mapping[str, Any]) -> Path:
    """Write a folder of arrays that others see whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", array)
    (partial / HEAD).write_text(json.dumps(_with_name(target, head)), encoding="utf-8")
    write_digests(partial, {path.name: _digest(path) for path in partial.iterdir()})
    partial.chmod(0o755)
    sync_tree(partial)
    if target.exists():  # damaged, or of a table that lay elsewhere; who has mapped it keeps it
        shutil.rmtree(target, ignore_errors=True)
    try:
        rename_folder(partial, target)
    except OSError:
        shutil.rmtree(partial)
        if not is_whole(target, head):  # else another process was first, with the same content
            raise
    return target


def _with_name(target: Path, head: Mapping[str, Any]) -> dict[str, Any]:
    """The head as it is read again: it says under which name it was written."""
    return json.loads(json.dumps({"name": target.name, **head}))


def _digest(path: Path) -> str:
    return digest_of(np.memmap(path, np.uint8, mode="r").data)


def _map(folder: Path, name: str, digests: Digests) -> np.ndarray:
    try:
        if _digest(folder / name) != digests[name]:
            raise MisfitError(f"{name} is not what was written there")
    except (FileNotFoundError, ValueError) as error:  # numpy maps no empty file
        raise MisfitError(f"{name} is missing or damaged ({error})") from error
    # A plain view: sparse matrices and beartype alike treat the memmap class as something special.
    return np.load(folder / name, mmap_mode="r").view(np.ndarray)
