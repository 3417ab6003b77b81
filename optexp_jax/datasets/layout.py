"""Finding the parts of a dataset on disk, and saying what is missing where."""

import csv
import difflib
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from optexp_jax.datasets.protocol import LayoutError

_SHOWN = 12


def check_root(root: Path, what: str, expected: str, holds: Callable[[Path], bool]) -> None:
    """Refuse a folder that does not hold the dataset; hint at one near by that does."""
    if not root.exists():
        raise LayoutError(f"{what}: there is no folder {root}.{_near_name(root)}")
    if not root.is_dir():
        unpack = " Unpack it first." if root.suffix in (".zip", ".gz", ".tar", ".tgz") else ""
        raise LayoutError(f"{what}: {root} is a file, not the dataset's folder.{unpack}")
    if holds(root):
        return
    near = next(filter(holds, _around(root)), None)
    hint = f" It looks as if you meant {near}." if near is not None else ""
    raise LayoutError(f"{what}: expected {expected} in {root}, which has {_listing(root)}.{hint}")


def read_rows(path: Path, required: Sequence[str], what: str) -> list[dict[str, str]]:
    """The rows of a CSV or TSV file with a header, by lower-case column name."""
    text = _text(path, what)
    delimiter = delimiter_of(text.partition("\n")[0])
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    columns = [name.strip().lower() for name in reader.fieldnames or ()]
    missing = [name for name in required if name not in columns]
    if missing:
        raise LayoutError(
            f"{what}: {path} lacks the column {missing[0]!r}; its header must name "
            f"{', '.join(required)}; it has {', '.join(columns) or 'nothing'}."
        )
    reader.fieldnames = columns
    try:
        rows = list(reader)
    except csv.Error as error:
        raise LayoutError(f"{what}: {path}, line {reader.line_num}: {error}.") from error
    return [
        {key: (value or "").strip() for key, value in row.items() if isinstance(key, str)}
        for row in rows
    ]


def delimiter_of(header: str) -> str:
    """What separates the columns; spreadsheets write `;` where the comma is a decimal sign."""
    return max(",\t;", key=header.count)


def to_integer(text: str, path: Path, column: str) -> int:
    """A whole number from a cell of a file."""
    try:
        return int(text)
    except ValueError:
        raise LayoutError(f"{path}: column {column!r} holds {text!r}, not a number.") from None


def files_below(folder: Path, suffixes: Iterable[str]) -> tuple[Path, ...]:
    """Files with one of these endings in a folder and its folders, sorted by relative name."""
    wanted = tuple(suffixes)
    found: list[Path] = []
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(parent, name)
            for name in names
            if name.lower().endswith(wanted) and not name.startswith(".")
        ]
    return tuple(sorted(found, key=lambda path: path.relative_to(folder).as_posix()))


def listing(names: Sequence[str]) -> str:
    """A few names, for a message."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # Spreadsheets put a mark in front.
    except FileNotFoundError:
        raise LayoutError(f"{what}: there is no file {path}.{_near_name(path)}") from None
    except UnicodeDecodeError as error:
        raise LayoutError(f"{what}: {path} is not UTF-8 text ({error}).") from error


def _around(root: Path) -> list[Path]:
    inside = [path for path in _entries(root) if path.is_dir()][:50]
    deeper = [path for folder in inside[:10] for path in _entries(folder)[:50] if path.is_dir()]
    above = list(root.resolve().parents)[:2]
    return [*inside, *above, *deeper]


def _near_name(path: Path) -> str:
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f" {existing} is a file."
    missing = path.relative_to(existing).parts[0]
    near = difflib.get_close_matches(missing, [entry.name for entry in _entries(existing)], n=3)
    shown = f"{' and '.join(near)} there" if near else _listing(existing)
    return f" {existing} exists, with {shown}."


def _listing(folder: Path) -> str:
    names = [entry.name for entry in _entries(folder)]
    return listing(names) if names else "nothing in it"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # It may not be read; these are only hints.
        return []
