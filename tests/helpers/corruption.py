"""Ways to damage a store on disk, and a count of how many of them are noticed.

A store is any folder of this package's that lists the digests of its files: tables, activations,
arrays that workers share. Damage is done to a copy; `other` is a whole store of the same kind and
shape, with other content.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optexp_jax.stores.digests import DIGESTS, read_digests

METADATA = {"zarr.json", "head.json", "dataset.json"}


@dataclass(frozen=True)
class Case:
    """A store to damage."""

    store: Path
    other: Path
    rng: np.random.Generator
    array: str = ""
    """Only chunks of this array are damaged; of any, if it is empty."""

    @property
    def data(self) -> list[Path]:
        """Files that hold arrays, or their chunks."""
        return [file for file in self._files() if file.name not in METADATA]

    @property
    def metadata(self) -> list[Path]:
        """Files that say what the others mean."""
        return [file for file in self._files("") if file.name in METADATA]

    @property
    def differing(self) -> list[Path]:
        """Files of arrays that are not the same in the other store."""
        there = {file: self.twin(file) for file in self.data}
        return [
            file
            for file, twin in there.items()
            if twin.exists() and twin.read_bytes() != file.read_bytes()
        ]

    @property
    def digests(self) -> Path:
        return self.store / DIGESTS

    def twin(self, file: Path) -> Path:
        """The same file of the other store."""
        return self.other / file.relative_to(self.store)

    def some(self, files: list[Path]) -> Path:
        return files[self.rng.integers(len(files))]

    def _files(self, array: str | None = None) -> list[Path]:
        chosen = self.array if array is None else array
        return [
            self.store / name
            for name in sorted(read_digests(self.store))
            if name.startswith(chosen)
        ]


Damage = Callable[[Case], None]


def _flip(file: Path, rng: np.random.Generator) -> None:
    content = bytearray(file.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    file.write_bytes(content)


def delete_data(case: Case) -> None:
    case.some(case.data).unlink()


def truncate_data(case: Case) -> None:
    file = case.some(case.data)
    content = file.read_bytes()
    file.write_bytes(content[: case.rng.integers(len(content))])


def empty_data(case: Case) -> None:
    case.some(case.data).write_bytes(b"")


def flip_data(case: Case) -> None:
    _flip(case.some(case.data), case.rng)


def zero_data(case: Case) -> None:
    """As a file whose content never reached the disk."""
    file = case.some(case.data)
    file.write_bytes(bytes(len(file.read_bytes())))


def swap_data(case: Case) -> None:
    """Two chunks of one array, or two arrays of one size where each is one file."""
    files, store = case.data, case.store
    pairs = [
        (one, two)
        for k, one in enumerate(files)
        for two in files[k + 1 :]
        if one.relative_to(store).parts[0] == two.relative_to(store).parts[0] or one.suffix
        if one.read_bytes() != two.read_bytes()
    ]
    one, two = pairs[case.rng.integers(len(pairs))]
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def foreign_data(case: Case) -> None:
    """One chunk of the other store, in the same place."""
    file = case.some(case.differing)
    shutil.copyfile(case.twin(file), file)


def mix_stores(case: Case) -> None:
    """A copy of the other store over this one, broken off somewhere."""
    files = case.differing
    for file in files[: case.rng.integers(1, len(files) + 1)]:
        shutil.copyfile(case.twin(file), file)


def foreign_data_and_digests(case: Case) -> None:
    """All but the metadata, or all but one chunk, of the other store."""
    kept = case.some(case.differing)
    for file in [*case.data, case.digests]:
        if file != kept:
            shutil.copyfile(case.twin(file), file)


def delete_digests(case: Case) -> None:
    case.digests.unlink()


def flip_digests(case: Case) -> None:
    _flip(case.digests, case.rng)


def foreign_digests(case: Case) -> None:
    shutil.copyfile(case.twin(case.digests), case.digests)


def shorten_digests(case: Case) -> None:
    """Without one of its lines."""
    lines = case.digests.read_text().splitlines(keepends=True)
    del lines[case.rng.integers(len(lines))]
    case.digests.write_text("".join(lines))


def delete_metadata(case: Case) -> None:
    case.some(case.metadata).unlink()


def edit_metadata(case: Case) -> None:
    """Shape, dtype, an attribute or whatever: one value of the JSON is another."""
    file = case.some(case.metadata)
    content = json.loads(file.read_text())
    places = list(_values(content))
    holder, key = places[case.rng.integers(len(places))]
    holder[key] = _another(holder[key])
    file.write_text(json.dumps(content))


def _values(node: Any) -> Iterable[tuple[Any, Any]]:
    """Every value that is no list or object, as what holds it and under which key."""
    keys = node.keys() if isinstance(node, dict) else range(len(node))
    for key in keys:
        if isinstance(node[key], dict | list):
            yield from _values(node[key])
        else:
            yield node, key


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return {"float32": "int32", "int64": "uint64"}.get(value, value + "x")
        case _:
            return 0


BEFORE_OPENING: dict[str, Damage] = {
    function.__name__: function
    for function in (
        delete_data,
        truncate_data,
        empty_data,
        flip_data,
        zero_data,
        swap_data,
        foreign_data,
        mix_stores,
        foreign_data_and_digests,
        delete_digests,
        flip_digests,
        foreign_digests,
        shorten_digests,
        delete_metadata,
        edit_metadata,
    )
}
"""Damage that must be noticed when the store is opened, or read at the latest."""


def replace_store(case: Case) -> None:
    """By the other one, whole."""
    shutil.rmtree(case.store)
    shutil.copytree(case.other, case.store)


def remove_store(case: Case) -> None:
    shutil.rmtree(case.store)


def mend(store: Path, whole: Path) -> None:
    """Put the whole store back."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(whole, store)


_METADATA_DAMAGE = {"flip_digests", "shorten_digests", "delete_metadata", "edit_metadata"}
WHILE_OPEN: dict[str, Damage] = {
    **{name: BEFORE_OPENING[name] for name in BEFORE_OPENING if name not in _METADATA_DAMAGE},
    "replace_store": replace_store,
    "remove_store": remove_store,
}
"""Damage that must be noticed by a process that opened the store before, when it reads.

What it has read of the metadata by then stays right, whatever becomes of the files."""


@dataclass(frozen=True)
class Tally:
    """How many cases of damage were noticed."""

    detected: int
    total: int
    missed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.detected}/{self.total} detected" + "".join(
            f"; {each}" for each in self.missed
        )


def count_detected(
    whole: Path,
    other: Path,
    scratch: Path,
    read: Callable[[Path], Callable[[], object]],
    error: type[Exception],
    *,
    damages: Iterable[str],
    array: str = "",
    while_open: bool = False,
    rounds: int = 1,
    seed: int = 0,
) -> Tally:
    """Damage copies of a store and see which of them are noticed.

    `read(path)` opens a store and gives a function that reads all of it. Noticed is what raises
    `error`; everything else, right content too, is missed.
    """
    detected, missed, total = 0, list[str](), 0
    for round_ in range(rounds):
        for name in damages:
            rng = np.random.default_rng([seed, round_, total])
            total += 1
            mend(scratch, whole)
            try:
                reader = read(scratch) if while_open else None
                (WHILE_OPEN if while_open else BEFORE_OPENING)[name](
                    Case(scratch, other, rng, array)
                )
                (read(scratch) if reader is None else reader)()
            except error:
                detected += 1
            except Exception as wrong:  # noticed, but not in the words that users understand
                missed.append(f"{name}: {wrong!r}")
            else:
                missed.append(name)
    return Tally(detected, total, tuple(missed))
