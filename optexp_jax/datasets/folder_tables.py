"""The tables of a generic folder: what label values mean, and labels of whole images."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.datasets.layout import delimiter_of, read_rows
from optexp_jax.datasets.name_lists import (
    LISTS,
    NamedValue,
    colour,
    label_value,
    read_name_list,
)
from optexp_jax.datasets.protocol import LayoutError

VALUE_COLUMNS = ("value", "id", "number", "index", "idx", "class_id", "label_id")
NAME_COLUMNS = ("name", "label", "class", "class_name")
COLOUR_COLUMNS = (("r", "red"), ("g", "green"), ("b", "blue"))
IMAGE_COLUMNS = ("image", "file", "filename", "file_name")
LABEL_COLUMNS = ("label", "labels", "name")
_LONGEST_HEADER = 2**16
NOT_CONCEPTS = frozenset({"", "ignore", "ignored", "unlabeled", "unlabelled", "void"})
"""Names, in lower case, that say that there is no annotation."""


@dataclass(frozen=True)
class ImageLabel:
    """A concept that holds on a whole image."""

    image: str
    name: str
    category: str | None


@dataclass(frozen=True)
class FolderTables:
    """The tables found in a folder."""

    names: Path | None
    image_labels: Path | None


def find_tables(
    root: Path, names: str | None, image_labels: str | None, *, has_maps: bool
) -> FolderTables:
    """The tables, as given or by what their headers say; label maps need a table of names."""
    tables = sorted(
        path
        for path in root.iterdir()
        if path.suffix.lower() in (".csv", ".tsv") and path.is_file()
    )
    headers = {path: _header(path) for path in tables}
    if names is not None:
        named = root / names
    else:
        named = _the_one([path for path in tables if _names_values(headers[path])], root, "names")
        if named is None:
            named = _the_one([root / f for f in LISTS if (root / f).is_file()], root, "names")
        if named is None and has_maps:
            others = "".join(
                f" {path.name} has the columns {', '.join(header)}."
                for path, header in headers.items()
            )
            raise LayoutError(
                f"Folder: {root} has no table of names.{others} Write labels.csv with the columns "
                "value, name and, if wanted, category and layer (a label folder), or name, r, g, b "
                "for label maps in colours; or say which file it is with the option names=FILE: a "
                "table, or a list of names in a .txt file."
            )
    if image_labels is not None:
        return FolderTables(named, root / image_labels)
    rest = [path for path in tables if path != named]
    return FolderTables(
        named,
        _the_one(
            [path for path in rest if _has(headers[path], IMAGE_COLUMNS)], root, "image_labels"
        ),
    )


def read_names(path: Path) -> tuple[NamedValue, ...]:
    """The table of names: value or r, g, b or both, name[, category][, layer]; or a list."""
    if path.suffix.lower() not in (".csv", ".tsv") and not _is_table(path):
        return read_name_list(path)
    rows = read_rows(path, [], "Folder")
    columns = list(rows[0]) if rows else []
    name_column = _column(columns, NAME_COLUMNS, path)
    colour_columns = [
        next((name for name in choices if name in columns), "") for choices in COLOUR_COLUMNS
    ]
    coloured = all(colour_columns)
    value_column = next((name for name in VALUE_COLUMNS if name in columns), None)
    if value_column is None and not coloured:
        value_column = _column(columns, VALUE_COLUMNS, path)
    return tuple(
        NamedValue(
            None if value_column is None else label_value(row[value_column], path),
            row[name_column],
            row.get("category") or None,
            row.get("layer") or None,
            colour([row[name] for name in colour_columns], path) if coloured else None,
        )
        for row in rows
    )


def read_image_labels(path: Path) -> tuple[ImageLabel, ...]:
    """Labels of whole images: image, label[, category]; or image and one column a category.

    A cell may hold several labels with `;` between them, and an image may have several rows.
    """
    rows = read_rows(path, [], "Folder")
    columns = list(rows[0]) if rows else []
    image_column = _column(columns, IMAGE_COLUMNS, path)
    label_column = next((name for name in LABEL_COLUMNS if name in columns), None)
    wide = [name for name in columns if name != image_column] if label_column is None else []
    labels: list[ImageLabel] = []
    for row in rows:
        image = row[image_column]
        if label_column is not None:
            labels += _cell(image, row[label_column], row.get("category") or None)
        for name in wide:
            labels += _cell(image, row[name], name)
    return tuple(labels)


def _cell(image: str, cell: str, category: str | None) -> list[ImageLabel]:
    names = map(str.strip, cell.split(";"))
    return [ImageLabel(image, name, category) for name in names if name.lower() not in NOT_CONCEPTS]


def _header(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(_LONGEST_HEADER)
    try:
        cells = next(csv.reader([line], delimiter=delimiter_of(line)), [])
    except csv.Error:
        return ()  # Not the header of a table of ours; reading it as one says why.
    return tuple(cell.strip().lower() for cell in cells)


def _is_table(path: Path) -> bool:
    """Whether a text file is a table all the same: its first line names the columns."""
    return path.is_file() and _names_values(_header(path))


def _has(header: Sequence[str], *choices: Iterable[str]) -> bool:
    return all(any(name in header for name in names) for names in choices)


def _names_values(header: Sequence[str]) -> bool:
    return _has(header, VALUE_COLUMNS, NAME_COLUMNS) or _has(header, *COLOUR_COLUMNS, NAME_COLUMNS)


def _the_one(found: Sequence[Path], root: Path, option: str) -> Path | None:
    if len(found) > 1:
        raise LayoutError(
            f"Folder: in {root} both {found[0].name} and {found[1].name} could be meant; choose "
            f"with the option {option}=FILE."
        )
    return found[0] if found else None


def _column(columns: Sequence[str], choices: Sequence[str], path: Path) -> str:
    found = next((name for name in choices if name in columns), None)
    if found is None:
        raise LayoutError(
            f"Folder: {path} lacks the column {choices[0]!r}; it has "
            f"{', '.join(columns) or 'no rows'}."
        )
    return found
