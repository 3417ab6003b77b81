"""The run store: one SQLite file, one transaction a unit.

Any number of processes may work on one run. Each claims units before it explains them, in one
transaction, and keeps its claims alive while it works. Claims of a process that has died are free
again: at once if it ran on this machine, else when its lease is over.
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.runs.configuration import Configuration, versions
from optexp_jax.runs.owner import Owner
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.settings import differences

FILE = "run.sqlite"
OWN_FOLDERS = {"layer", "shared"}
"""Of a run, beside the file: tables and activations made for it, arrays that workers share."""
FORMAT = 1
LEASE = 60.0
"""Seconds for which a claim holds unless it is renewed."""
BUSY = 60.0
"""Seconds to wait for another process's transaction."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS units (
    unit INTEGER PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'claimed', 'done', 'failed')),
    owner TEXT, lease REAL,
    formula TEXT, iou REAL, intersection INTEGER, "union" INTEGER, upper_bound REAL, status TEXT,
    p_value REAL, error TEXT, seconds REAL, finished REAL,
    result TEXT
);
CREATE INDEX IF NOT EXISTS units_by_state ON units (state, unit);
CREATE TABLE IF NOT EXISTS sessions (owner TEXT, started REAL, versions TEXT);
"""


class RunStoreError(ValueError):
    """A folder that is not a run, or not the run that was asked for."""


@dataclass(frozen=True)
class Counts:
    """How many units of a run are where."""

    waiting: int
    claimed: int
    done: int
    failed: int

    @property
    def total(self) -> int:
        return self.waiting + self.claimed + self.done + self.failed

    @property
    def finished(self) -> int:
        return self.done + self.failed


class RunStore:
    """One process's hold on a run. Use it from the thread that made it; `open` makes another."""

    def __init__(self, folder: Path, connection: sqlite3.Connection):
        self.folder = folder
        self.owner = str(Owner.here())
        self._connection = connection

    @classmethod
    def create(
        cls, folder: str | Path, configuration: Configuration, inputs: Any, origin: Any = None
    ) -> "RunStore":
        """Begin a run, or go on with one of the same configuration.

        `inputs` says how to open the source again, for `verify` and for going on by name alone;
        `origin` where the units come from, for the record.
        """
        path = Path(folder)
        others = {entry.name for entry in path.iterdir()} - OWN_FOLDERS if path.is_dir() else set()
        if others and not (path / FILE).exists():
            raise RunStoreError(f"{path} holds something other than a run. Choose another folder.")
        path.mkdir(parents=True, exist_ok=True)
        store = cls(path, _connect(path / FILE))
        wanted = json.loads(json.dumps(configuration.to_json()))
        with store._transaction() as connection:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            stored = store._meta("configuration")
            if stored is None:
                values = {
                    "format": FORMAT,
                    "configuration": wanted,
                    "inputs": inputs,
                    "origin": origin,
                    "created": time.time(),
                }
                connection.executemany(
                    "INSERT INTO meta VALUES (?, ?)",
                    [(key, json.dumps(value)) for key, value in values.items()],
                )
                connection.executemany(
                    "INSERT INTO units (unit) VALUES (?)", [(unit,) for unit in configuration.units]
                )
        store._check_format()
        if stored is not None and stored != wanted:
            store.close()
            raise RunStoreError(
                f"{path} was begun with another configuration: "
                + "; ".join(differences(stored, wanted))
                + ". Use another folder for this one, or the options that the run began with."
            )
        return store

    @classmethod
    def open(cls, folder: str | Path) -> "RunStore":
        """Open a run that exists."""
        path = Path(folder)
        if not (path / FILE).exists():
            raise RunStoreError(f"There is no run at {path}: it has no {FILE}.")
        store = cls(path, _connect(path / FILE))
        store._check_format()
        return store

    def close(self) -> None:
        self._connection.close()

    # What the run is.

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration that the run began with, as JSON."""
        return self._meta("configuration")

    @property
    def inputs(self) -> Any:
        """How to open the source again, as JSON."""
        return self._meta("inputs")

    @property
    def origin(self) -> Any:
        """Where the units come from: model, checksum of its weights, layer, dataset."""
        return self._meta("origin")

    def sessions(self) -> list[dict[str, Any]]:
        """Every process that worked on the run, with its versions."""
        rows = self._connection.execute("SELECT owner, started, versions FROM sessions").fetchall()
        return [
            {"owner": owner, "started": started, "versions": json.loads(found)}
            for owner, started, found in rows
        ]

    def counts(self) -> Counts:
        rows = self._connection.execute("SELECT state, count(*) FROM units GROUP BY state")
        found: dict[str, int] = dict(rows.fetchall())
        return Counts(*(found.get(s, 0) for s in ("waiting", "claimed", "done", "failed")))

    def results(self) -> Iterator[UnitResult]:
        """Finished units in ascending order."""
        rows = self._connection.execute(
            "SELECT result FROM units WHERE state IN ('done', 'failed') ORDER BY unit"
        )
        for (result,) in rows.fetchall():
            yield UnitResult.from_json(json.loads(result))

    # Working on it.

    def begin_session(self) -> None:
        """Take note of this process and its versions."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?)",
                (self.owner, time.time(), json.dumps(versions())),
            )

    def claim(self, n: int) -> list[int]:
        """Take up to `n` units that nobody works on."""
        now = time.time()
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT unit FROM units WHERE state = 'waiting' ORDER BY unit LIMIT ?", (n,)
            )
            free = [unit for (unit,) in rows.fetchall()]
            if len(free) < n:
                rows = connection.execute(
                    "SELECT unit, owner, lease FROM units "
                    "WHERE state = 'claimed' AND owner != ? ORDER BY unit",
                    (self.owner,),
                ).fetchall()
                gone = {owner: Owner.parse(owner).is_gone for owner in {row[1] for row in rows}}
                left = [unit for unit, owner, lease in rows if gone[owner] or lease < now]
                free += left[: n - len(free)]
            connection.executemany(
                "UPDATE units SET state = 'claimed', owner = ?, lease = ? WHERE unit = ?",
                [(self.owner, now + LEASE, unit) for unit in free],
            )
        return free

    def renew(self) -> None:
        """Keep this process's claims alive."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE units SET lease = ? WHERE state = 'claimed' AND owner = ?",
                (time.time() + LEASE, self.owner),
            )

    def release(self) -> None:
        """Give up this process's claims."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE units SET state = 'waiting', owner = NULL, lease = NULL "
                "WHERE state = 'claimed' AND owner = ?",
                (self.owner,),
            )

    def commit(self, result: UnitResult) -> bool:
        """Store one unit, in a transaction of its own; False if another process was first."""
        found, row = result.explanation, result.row()
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE units SET state = ?, owner = ?, lease = NULL, formula = ?, iou = ?, "
                'intersection = ?, "union" = ?, upper_bound = ?, status = ?, p_value = ?, '
                "error = ?, seconds = ?, finished = ?, result = ? "
                "WHERE unit = ? AND state IN ('waiting', 'claimed')",
                (
                    "failed" if found is None else "done",
                    self.owner,
                    *(row.get(key) for key in _COLUMNS),
                    time.time(),
                    json.dumps(result.to_json()),
                    result.unit,
                ),
            )
            return changed.rowcount == 1

    def retry_failed(self) -> int:
        """Let units that failed be done again; how many there are."""
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE units SET state = 'waiting', owner = NULL, error = NULL, result = NULL "
                "WHERE state = 'failed'"
            )
            return changed.rowcount

    def _meta(self, key: str) -> Any:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _check_format(self) -> None:
        try:
            found = self._meta("format")
        except sqlite3.DatabaseError as error:
            raise RunStoreError(f"{self.folder / FILE} is not a run store ({error}).") from None
        if found != FORMAT:
            raise RunStoreError(
                f"{self.folder} has run format {found}; this release reads {FORMAT}. Use the "
                "release that wrote it, or another folder."
            )

    @contextlib.contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """All or nothing, and nobody else writes meanwhile."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise TimeoutError(
                f"{self.folder / FILE} cannot be written ({error}). Another process may be stopped "
                f"while it writes; waited {BUSY:.0f} seconds for it."
            ) from error
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


_COLUMNS: Sequence[str] = (
    "formula",
    "iou",
    "intersection",
    "union",
    "upper_bound",
    "status",
    "p_value",
    "error",
    "seconds",
)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    try:
        # With a write-ahead log readers never wait, and a killed writer leaves nothing half done.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise RunStoreError(f"{path} is not a run store ({error}).") from None
    return connection
