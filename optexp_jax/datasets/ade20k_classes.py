"""The class list of ADE20K: from a file, or from the dataset's own index."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from jaxtyping import Shaped

from optexp_jax.datasets.layout import listing, read_rows, short, to_integer
from optexp_jax.datasets.protocol import LayoutError
from optexp_jax.datasets.values import distinct

INDEX_FILE = "index_ade20k.pkl"
MATLAB_INDEX_FILE = "index_ade20k.mat"
_TRAIN_ID_COLUMNS = ("trainid", "train_id", "train id")
_IGNORED_TRAIN_IDS = ("", "-1", "65535")


@dataclass(frozen=True)
class AdeClass:
    """A class: the id that the files as distributed use, and its name."""

    id: int
    name: str


@dataclass(frozen=True)
class AdeClasses:
    """Classes by train id, which is their place here, and where they come from."""

    classes: tuple[AdeClass, ...]
    source: str


def classes_from_file(path: Path) -> AdeClasses:
    """From CSV, TSV or JSON (a list of objects) with id, name and, if wanted, trainId.

    Without train ids, classes are numbered as they stand.
    """
    rows = _json_rows(path) if path.suffix == ".json" else read_rows(path, ["id", "name"], "ADE20K")
    column = next((name for name in _TRAIN_ID_COLUMNS if rows and name in rows[0]), None)
    placed: dict[int, AdeClass] = {}
    for row in rows:
        text = str(len(placed)) if column is None else row[column]
        if text in _IGNORED_TRAIN_IDS:
            continue
        train_id = to_integer(text, path, "trainId")
        if train_id in placed:
            raise LayoutError(f"ADE20K: {path} gives train id {train_id} to two classes.")
        placed[train_id] = AdeClass(to_integer(row["id"], path, "id"), row["name"])
    if not placed or sorted(placed) != list(range(len(placed))):
        raise LayoutError(
            f"ADE20K: the train ids of {path} must be 0, 1, 2, ... without a gap; there are "
            f"{len(placed)}, from {min(placed, default=0)} to {max(placed, default=0)}."
        )
    return _checked([placed[train_id] for train_id in range(len(placed))], f"the list {path.name}")


def read_matlab_index(path: Path) -> dict[str, Any]:
    """The index of the release of 2016, a Matlab file, with the keys of the one of 2021."""
    try:
        index = scipy.io.loadmat(path, squeeze_me=True, variable_names=["index"])["index"]
        return {name: index[name].item() for name in index.dtype.names}
    except Exception as error:  # scipy raises many kinds for damaged files and files of others
        raise LayoutError(f"{path} is not the index of ADE20K: {error}") from error


def classes_from_index(path: Path, index: Any) -> AdeClasses:
    """The classes that occur as objects in training images and in validation images, by id."""
    names, files = (_texts(index, name, path) for name in ("objectnames", "filename"))
    presence, as_part = (_counts(index, name, path) for name in ("objectPresence", "objectIsPart"))
    shape = (len(names), len(files))
    if presence.shape != shape or as_part.shape != shape:
        raise LayoutError(
            f"{path}: objectPresence and objectIsPart must be [class, image] = {list(shape)}; "
            f"they are {list(presence.shape)} and {list(as_part.shape)}."
        )
    validation = np.array([is_validation(name) for name in files], np.bool_)
    kept: list[AdeClass] = []
    for place, name in enumerate(names):
        as_object = presence[place] > as_part[place]
        if as_object[validation].any() and as_object[~validation].any():
            kept.append(AdeClass(place + 1, name))  # In the files 0 stands for no class.
    if not kept:
        raise LayoutError(f"{path}: no class occurs in training and in validation images.")
    return _checked(kept, f"classes of {path.name} in both training and validation images")


def is_validation(file_name: str) -> bool:
    """Whether an image is of the validation split, as its name tells: `ADE_val_00000001.jpg`."""
    return file_name.split("_")[1:2] == ["val"]


def _texts(index: Any, name: str, path: Path) -> list[str]:
    found = _field(index, name, path)
    texts = found.tolist() if isinstance(found, np.ndarray) else found
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise LayoutError(f"{path}: {name} must be a list of names.")
    return list(texts)


def _counts(index: Any, name: str, path: Path) -> Shaped[np.ndarray, "..."]:
    try:
        found = np.asarray(_field(index, name, path))
    except ValueError as error:  # Rows of different lengths.
        raise LayoutError(f"{path}: {name} must be an array; {error}") from error
    if found.dtype.kind not in "biuf":
        raise LayoutError(f"{path}: {name} must hold numbers; it is of type {found.dtype}.")
    return found


def _checked(classes: Sequence[AdeClass], source: str) -> AdeClasses:
    ids = [kind.id for kind in classes]
    repeated = sorted(number for number, count in Counter(ids).items() if count > 1)
    if repeated or min(ids) < 1:
        wrong = f"id {repeated[0]} is listed twice" if repeated else f"id {min(ids)} is below 1"
        raise LayoutError(f"ADE20K, {source}: {wrong}.")
    names = distinct([kind.name for kind in classes], ids)
    return AdeClasses(tuple(map(AdeClass, ids, names)), source)


def _field(index: Any, name: str, path: Path) -> Any:
    if not isinstance(index, Mapping) or name not in index:
        has = listing(list(map(short, index))) if isinstance(index, Mapping) else short(index)
        raise LayoutError(
            f"{path} is not the index of ADE20K: expected the key {name!r}, it has {has}. Give the "
            "class list with the option classes=FILE."
        )
    return index[name]


def _json_rows(path: Path) -> list[dict[str, str]]:
    try:
        entries: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LayoutError(f"ADE20K: there is no file {path}.") from None
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"ADE20K: {path} is not JSON of a class list: {error}") from error
    rows: list[dict[str, str]] = []
    for entry in entries if isinstance(entries, list) else [None]:
        row = {str(k).lower(): str(v) for k, v in entry.items()} if isinstance(entry, dict) else {}
        if not {"id", "name"} <= row.keys():
            raise LayoutError(
                f"ADE20K: {path} must list objects with id, name and trainId; got {short(entry)}."
            )
        rows.append(row)
    return rows
