"""The folders of label maps of a generic folder, and what their values or colours mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Int32

from optexp_jax.datasets.colour_codes import ColourCodes
from optexp_jax.datasets.folder_entries import ConceptList
from optexp_jax.datasets.folder_tables import NOT_CONCEPTS
from optexp_jax.datasets.images import LABEL_SUFFIXES, has_colours, read_colours, read_labels
from optexp_jax.datasets.layout import files_below, listing
from optexp_jax.datasets.name_lists import MAX_VALUE, Colour, NamedValue
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import LayoutError
from optexp_jax.datasets.values import NONE, ValueCodes

_Key = TypeVar("_Key", int, Colour)
_LABEL_FOLDERS = ("labels", "label", "annotations", "masks", "segmentation", "SegmentationClass")
_UNNAMED = (0, 255, 65535)
"""Values that mean "no label" in most datasets; here they do unless they have a name."""


@dataclass(frozen=True, eq=False)
class FolderLayer:
    """A folder of label maps and what their values mean, or their colours."""

    folder: Path
    codes: ValueCodes | None
    """None if the table names colours only."""
    colours: ColourCodes | None = None

    def read(self, path: Path, sample: str, exif: Exif) -> Int32[np.ndarray, "height width"]:
        """Concept ids of one of its label maps."""
        if self.colours is not None and (self.codes is None or has_colours(path)):
            return self.colours.decode(read_colours(path, sample, exif), path, sample)
        assert self.codes is not None
        return self.codes.decode(read_labels(path, sample, exif), path, sample)


def find_label_folders(root: Path, given: str | None, images: Path) -> list[Path]:
    """The folders of label maps: as given, or all that hold files that could be some."""
    if given is not None:
        folders = [root / name for name in given.split("+") if name]
        missing = [folder for folder in folders if not folder.is_dir()]
        if missing:
            raise LayoutError(f"Folder: there is no folder of label maps {missing[0]}.")
        for folder in folders:
            _refuse_jpegs(folder)
        return folders
    others = sorted(path for path in root.iterdir() if path.is_dir() and path != images)
    shown = [path for path in others if not path.name.startswith(".")]
    found = [path for path in shown if files_below(path, LABEL_SUFFIXES)]
    if not found:
        for folder in shown:
            if folder.name in _LABEL_FOLDERS:
                _refuse_jpegs(folder)
    return found


def likely_folders(folders: Sequence[Path], rows: Sequence[NamedValue]) -> Sequence[Path]:
    """Those that the table of names speaks of, or those with a usual name, or all of them."""
    named = {row.layer for row in rows}
    if rows and None not in named:
        return [folder for folder in folders if folder.name in named] or folders
    return [folder for folder in folders if folder.name in _LABEL_FOLDERS] or folders


def make_layers(
    folders: Sequence[Path],
    rows: Sequence[NamedValue],
    table: Path | None,
    vocabulary: ConceptList,
    ignored: frozenset[str],
    offset: int,
) -> tuple[FolderLayer, ...]:
    """A layer for each folder. A map's value `v` is the one that the table calls `v + offset`."""
    if table is None:
        return ()
    named = {row.layer for row in rows if row.layer is not None}
    unknown = sorted(named.difference(folder.name for folder in folders))
    if unknown:
        has = listing([folder.name for folder in folders]) or "none"
        raise LayoutError(
            f"Folder: {table} names the layer {unknown[0]!r}; the folders of label maps: {has}."
        )
    values: list[dict[int, int]] = [{} for _ in folders]
    colours: list[dict[Colour, int]] = [{} for _ in folders]
    for row in rows:  # In their order, which the concepts keep.
        none = row.name.lower() in NOT_CONCEPTS or not ignored.isdisjoint(
            (row.name, str(row.value))
        )
        concept = NONE if none else vocabulary.add(row.name, row.category or row.layer)
        for place, folder in enumerate(folders):
            if row.layer not in (None, folder.name):
                continue
            if row.value is not None and row.value >= offset:
                told = f"{table} gives two names to the value {row.value}"
                _set(values[place], row.value - offset, concept, told)
            if row.colour is not None:
                told = f"{table} gives two names to the colour {' '.join(map(str, row.colour))}"
                _set(colours[place], row.colour, concept, told)
    without = {*_UNNAMED, *(int(text) for text in ignored if _is_value(text))}
    has_values = any(row.value is not None for row in rows) or not any(colours)
    return tuple(
        FolderLayer(
            folder,
            ValueCodes.of({**dict.fromkeys(without, NONE), **known}, table.name)
            if has_values
            else None,
            ColourCodes.of(shades, table.name) if shades else None,
        )
        for folder, known, shades in zip(folders, values, colours, strict=True)
    )


def _set(known: dict[_Key, int], key: _Key, concept: int, told: str) -> None:
    if known.setdefault(key, concept) != concept:
        raise LayoutError(f"Folder: {told}.")


def _is_value(text: str) -> bool:
    return text.isdecimal() and len(text) < 9 and int(text) <= MAX_VALUE


def _refuse_jpegs(folder: Path) -> None:
    if not files_below(folder, LABEL_SUFFIXES) and (
        found := files_below(folder, [".jpg", ".jpeg"])
    ):
        raise LayoutError(
            f"Folder: the label maps in {folder} are JPEG images ({found[0].name}). JPEG mixes the "
            "values of neighbouring pixels; label maps have to be stored without loss, as PNG or "
            "TIFF: make them again from their source."
        )
