"""Which label maps and labels belong to which image of a folder."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from optexp_jax.datasets.folder_tables import ImageLabel
from optexp_jax.datasets.images import LABEL_SUFFIXES
from optexp_jax.datasets.layout import files_below, listing, read_text
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError

_LOG = logging.getLogger(__name__)
_NAME_END = re.compile(r"[_.-][^_.-]*$")


@dataclass(frozen=True)
class LabelFile:
    """A label map, and the number of its layer."""

    layer: int
    path: Path


@dataclass
class FolderEntry:
    """An image with its label maps and the concepts that hold on all of it."""

    image: str
    maps: list[LabelFile] = field(default_factory=list)
    everywhere: list[int] = field(default_factory=list)


class ConceptList:
    """Concepts in the order in which they are met; equal names are one concept."""

    def __init__(self):
        self._ids: dict[str, int] = {}
        self._infos: list[ConceptInfo] = []

    def add(self, name: str, category: str | None) -> int:
        if name not in self._ids:
            self._ids[name] = len(self._infos)
            self._infos.append(ConceptInfo(name, category))
        return self._ids[name]

    def infos(self) -> tuple[ConceptInfo, ...]:
        return tuple(self._infos)


def entry_keys(
    entries: Sequence[FolderEntry], folder: Path, suffix: str = ""
) -> dict[str, FolderEntry]:
    """Images by name without the ending and suffix, which is what label maps are named after."""
    keys: dict[str, FolderEntry] = {}
    for entry in entries:
        key = Path(entry.image).with_suffix("").as_posix().removesuffix(suffix)
        if key in keys:
            raise LayoutError(
                f"Folder: {keys[key].image} and {entry.image} in {folder} differ only in their "
                "ending, so label maps cannot be told apart."
            )
        keys[key] = entry
    return keys


def only_listed(entries: Sequence[FolderEntry], path: Path, suffix: str) -> list[FolderEntry]:
    """The images that a text file lists, one a line, in the order of the folder.

    A line is the name of an image, with or without folders, ending and suffix; what follows a space
    is the name of its label map.
    """
    by_name: dict[str, set[str]] = {}
    for entry in entries:
        whole = Path(entry.image)
        bare = whole.with_suffix("").as_posix().removesuffix(suffix)
        for name in {whole.as_posix(), whole.name, bare, Path(bare).name}:
            by_name.setdefault(name, set()).add(entry.image)
    listed: set[str] = set()
    missing: list[str] = []
    for line in filter(None, map(str.strip, read_text(path, "Folder").splitlines())):
        first = line.split()[0]
        names = (line, first, Path(first).name, Path(first).stem)
        found = next((by_name[name] for name in names if name in by_name), set())
        if len(found) > 1:
            raise LayoutError(
                f"Folder: {path} lists {line!r}, which may be {listing(sorted(found))}: add "
                "folders."
            )
        listed |= found
        missing += [] if found else [line]
    if missing or not listed:
        raise LayoutError(
            f"Folder: {path} lists {len(missing)} images that do not exist, "
            f"{listing(missing[:3]) or 'and no others'}; images are named like {entries[0].image}."
        )
    return [entry for entry in entries if entry.image in listed]


def attach_maps(
    folder: Path, layer: int, keys: Mapping[str, FolderEntry], suffix: str | None
) -> None:
    """Give the label maps of a folder to their images."""
    exact: dict[str, list[Path]] = {}
    longer: dict[str, list[Path]] = {}
    strays: list[str] = []
    for path in files_below(folder, LABEL_SUFFIXES):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if suffix is not None:
            key = name.removesuffix(suffix) if name.endswith(suffix) else ""
            if key in keys:
                exact.setdefault(key, []).append(path)
            continue
        key = _image_key(name, keys)
        if key is None:
            strays.append(path.name)
        else:
            (exact if key == name else longer).setdefault(key, []).append(path)
    if not exact and not longer:
        wanted = "" if suffix is None else f" followed by {suffix!r}"
        raise LayoutError(
            f"Folder: none of the label maps in {folder} has the name of an image{wanted}; images "
            f"are named like {next(iter(keys))}, label maps like {listing(strays[:3]) or 'none'}."
        )
    if strays:
        _LOG.warning("%s: %d label maps have no image: %s", folder, len(strays), listing(strays))
    # Beside x.png, a file such as x_colour.png is a picture of it and no further map.
    for key, paths in {**longer, **exact}.items():
        keys[key].maps += [LabelFile(layer, path) for path in paths]


def _image_key(name: str, keys: Mapping[str, FolderEntry]) -> str | None:
    """The image that a label map is named after: the longest name that its own begins with."""
    while name not in keys:
        shorter = _NAME_END.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return name


def attach_labels(
    labels: Sequence[ImageLabel],
    keys: Mapping[str, FolderEntry],
    vocabulary: ConceptList,
    ignored: frozenset[str],
    table: Path,
) -> None:
    """Give labels of whole images to them."""
    by_file = {entry.image: entry for entry in keys.values()}
    strays: list[str] = []
    for label in labels:
        entry = by_file.get(label.image) or keys.get(label.image)
        if entry is None:
            strays.append(label.image)
        elif label.name not in ignored:
            entry.everywhere.append(vocabulary.add(label.name, label.category))
    if labels and len(strays) == len(labels):
        raise LayoutError(
            f"Folder: none of the images that {table} names exists; images are named like "
            f"{next(iter(by_file))}, in the table {listing(strays[:3])}."
        )
    if strays:
        _LOG.warning(
            "%s names %d images that do not exist: %s", table, len(strays), listing(strays)
        )
