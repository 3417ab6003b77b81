"""How far a store of activations is written: a line for each row, with the digests of its chunks.

A line is appended when its row is written. Whoever goes on trusts a row only if its line is whole
and every chunk fits, so nothing has to be synced on the way.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.activations.store import ARRAY, ActivationKey
from optexp_jax.stores.digests import Digests, MisfitError, digest_of, read_checked
from optexp_jax.stores.durable import write_whole

ROW_BYTES = 2**25
"""Of the samples that are held until they are written together."""
MOST_SAMPLES_PER_ROW = 64
CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class RowLayout:
    """How an array is cut into chunks, and these into rows that are written together."""

    shape: tuple[int, int, int, int]
    chunks: tuple[int, int, int, int]

    @classmethod
    def of(cls, shape: tuple[int, int, int, int]) -> "RowLayout":
        """The layout for an array of so many samples, units, rows and columns."""
        n_samples, n_units, rows, columns = shape
        sample_bytes = n_units * rows * columns * 4
        samples = min(MOST_SAMPLES_PER_ROW, n_samples, max(1, ROW_BYTES // sample_bytes))
        units = min(n_units, max(1, CHUNK_BYTES // (samples * rows * columns * 4)))
        return cls(shape, (samples, units, rows, columns))

    def names(self, row: int) -> list[str]:
        """The files that hold a row."""
        n_chunks = -(-self.shape[1] // self.chunks[1])
        return [f"{ARRAY}/c/{row}/{chunk}/0/0" for chunk in range(n_chunks)]


@dataclass(frozen=True)
class WrittenRow:
    """A row of whole chunks."""

    content: str
    """Digest of its activations."""
    chunks: Digests

    def fits(self, folder: Path, names: list[str]) -> bool:
        """Whether its chunks are there as they were written."""
        try:
            for name in names:
                read_checked(folder, name, self.chunks)
        except MisfitError:
            return False
        return True


class WriteProgress:
    """The rows of an unfinished store, kept in a file beside them."""

    def __init__(self, path: Path, head: dict[str, Any], rows: list[WrittenRow]):
        self._path, self._head, self.rows = path, head, rows
        write_whole(path, "".join(map(_line, [head, *map(dataclasses.asdict, rows)])).encode())

    @classmethod
    def begin(cls, path: Path, key: ActivationKey, layout: RowLayout) -> "WriteProgress":
        """Of a store that is not begun."""
        return cls(path, _head(key, layout), [])

    @classmethod
    def resume(cls, path: Path, key: ActivationKey, layout: RowLayout) -> "WriteProgress | None":
        """Of a store that another writer left, as far as it is whole; None if it is another."""
        head, *lines = _read(path)
        if head != _head(key, layout):
            return None
        rows: list[WrittenRow] = []
        for line in lines:
            row = WrittenRow(**line)
            if not row.fits(path.parent, layout.names(len(rows))):
                break
            rows.append(row)
        return cls(path, head, rows)

    def add(self, row: WrittenRow) -> None:
        """Take note of one more row."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(dataclasses.asdict(row)))
        self.rows.append(row)

    @property
    def content(self) -> str:
        """A checksum of all rows."""
        return digest_of("".join(row.content for row in self.rows).encode())

    @property
    def chunks(self) -> Digests:
        """Digests of all chunks."""
        return {name: digest for row in self.rows for name, digest in row.chunks.items()}


def _head(key: ActivationKey, layout: RowLayout) -> dict[str, Any]:
    return {
        "key": dataclasses.asdict(key),
        "shape": list(layout.shape),
        "chunks": list(layout.chunks),
    }


def _line(content: dict[str, Any]) -> str:
    text = json.dumps(content)
    return f"{digest_of(text.encode())}  {text}\n"


def _read(path: Path) -> list[dict[str, Any]]:
    """The head and the rows, up to the first line that is not whole."""
    found: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines():
        digest, _, text = line.partition(b"  ")
        if digest != digest_of(text).encode():
            break
        found.append(json.loads(text))
    if not found:
        raise ValueError(f"{path.name} is damaged")
    return found
