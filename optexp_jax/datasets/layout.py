"""Finding the parts of a dataset on disk, and saying what is missing where."""

import csv
import difflib
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from optexp_jax.datasets.protocol import BadSampleError, LayoutError

_SHOWN = 12
_SHOWN_CHARACTERS = 60


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


def read_rows(
    path: Path, required: Sequence[str], what: str, *, whole: bool = False
) -> list[dict[str, str]]:
    """The rows of a CSV or TSV file with a header, by lower-case column name.

    Cells that are missing at the end of a row are empty, or an error if rows are to be `whole`.
    """
    text = read_text(path, what)
    delimiter = delimiter_of(text.partition("\n")[0])
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or ()]
    except csv.Error as error:
        raise LayoutError(f"{what}: the header of {path}: {error}.") from error
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
    short_rows = [number for number, row in enumerate(rows, start=1) if None in row.values()]
    if whole and short_rows:
        raise LayoutError(
            f"{what}: row {short_rows[0]} of {path} has fewer than {len(columns)} cells: the file "
            "is cut off."
        )
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
        raise LayoutError(f"{path}: column {column!r} holds {short(text)}, not a number.") from None


def files_below(folder: Path, suffixes: Iterable[str]) -> tuple[Path, ...]:
    """Files with one of these endings in a folder and its folders, sorted by relative name.

    Links are followed, but no folder is entered twice, so that links in a circle come to an end;
    its own name counts rather than that of a link to it.
    """
    wanted = tuple(suffixes)
    found: list[Path] = []
    entered: set[tuple[int, int]] = set()
    pending, links = [str(folder)], []
    while pending or links:
        if not pending:
            links.sort(reverse=True)
            pending.append(links.pop())
        parent = pending.pop()
        try:
            status = os.stat(parent)
            with os.scandir(parent) as listed:
                entries = [entry for entry in listed if not entry.name.startswith(".")]
        except OSError:  # It may not be read, or is a link to nowhere.
            continue
        if (status.st_dev, status.st_ino) in entered:
            continue
        entered.add((status.st_dev, status.st_ino))
        for entry in entries:
            if _is_folder(entry):
                (links if entry.is_symlink() else pending).append(entry.path)
            elif entry.name.lower().endswith(wanted):
                found.append(Path(entry.path))
    return tuple(sorted(found, key=lambda path: path.relative_to(folder).as_posix()))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # A link to itself.
        return False


def check_names_inside(names: Iterable[str], folder: Path, root: Path, what: str) -> None:
    """Refuse file names, out of a file of the dataset, that lead out of its folder."""
    kept = (os.path.abspath(folder), os.path.abspath(root))
    for name in names:
        path = os.path.abspath(os.path.join(kept[0], name))
        if not _is_file_name(name) or os.path.isabs(name) or not _is_below(path, kept):
            raise LayoutError(
                f"{what}: {name!r} is not the name of a file in the dataset's folder {root}. Names "
                f"are relative to {folder} and must not lead out."
            )


def inside(folder: Path, name: str, root: Path, sample: str) -> Path:
    """The file that a dataset names; links must not lead out of the dataset either."""
    path = folder / name
    if not _is_below(os.path.realpath(path), (os.path.realpath(folder), os.path.realpath(root))):
        raise BadSampleError(
            sample,
            f"{path} is a link to {os.path.realpath(path)}, out of the dataset's folder {root}. "
            "Copy the file there.",
        )
    return path


def _is_file_name(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:  # Half of a character, which JSON can hold.
        return False


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(os.path.join(folder, "")) for folder in folders)


def listing(names: Sequence[str]) -> str:
    """A few names, for a message."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def short(value: object) -> str:
    """A value for a message: files can hold anything, of any length."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def read_text(path: Path, what: str) -> str:
    """The text of a file, or an error that says what is wrong with it."""
    try:
        return path.read_text(encoding="utf-8-sig")  # Spreadsheets put a mark in front.
    except FileNotFoundError:
        raise LayoutError(f"{what}: there is no file {path}.{_near_name(path)}") from None
    except IsADirectoryError:
        raise LayoutError(f"{what}: {path} is a folder, not a file.") from None
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
