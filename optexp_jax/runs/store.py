"""The run store: one SQLite file, one transaction a unit, a checksum a row.

Any number of processes may work on one run. Each claims units before it explains them, in one
transaction, and keeps its claims alive while it works. Claims of a process that has died are free
again: at once if it ran on this machine, else when its lease is over.
"""

import contextlib
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from optexp_jax.runs.configuration import Configuration, versions
from optexp_jax.runs.database import RunStoreError, connect, connect_to_write, transaction
from optexp_jax.runs.owner import Owner
from optexp_jax.runs.record import COLUMNS, FORMAT, FOUND, QUOTED, SCHEMA, RunRecord, state_of
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.seals import seal
from optexp_jax.runs.settings import differences

log = logging.getLogger(__name__)

FILE = "run.sqlite"
OWN_FOLDERS = {"layer", "shared"}
"""Of a run, beside the file: tables and activations made for it, arrays that workers share."""
LEASE = 60.0
"""Seconds for which a claim holds unless it is renewed."""

_SEAL_UNIT = f"UPDATE units SET digest = seal('units', {QUOTED})"


class RunStore(RunRecord):
    """One process's hold on a run. Use it from the thread that made it; `open` makes another."""

    def __init__(self, folder: Path, connection: sqlite3.Connection):
        super().__init__(folder / FILE, connection)
        self.folder = folder
        self.owner = str(Owner.here())

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
        with _closing_on_error(cls(path, connect_to_write(path / FILE))) as store:
            wanted = json.loads(json.dumps(configuration.to_json()))
            with store._transaction() as connection:
                if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    store._begin(configuration.units, wanted, inputs, origin)
            store.check_meta()
            if store.configuration != wanted:
                raise RunStoreError(
                    f"{path} was begun with another configuration: "
                    + "; ".join(differences(store.configuration, wanted))
                    + ". Use another folder for this one, or the options that the run began with."
                )
            store.check_whole()
            return store

    @classmethod
    def open(cls, folder: str | Path) -> "RunStore":
        """Open a run that exists; one that may not be written can be read."""
        path = Path(folder)
        if not (path / FILE).exists():
            raise RunStoreError(f"There is no run at {path}: it has no {FILE}.")
        with _closing_on_error(cls(path, connect(path / FILE))) as store:
            store.check_meta()
            return store

    def begin_session(self) -> None:
        """Take note of this process and its versions."""
        with self._transaction() as connection:
            self._give_up()  # what this process could not give up before, on a full disk say
            number = self._meta()["sessions"] + 1
            row = (number, self.owner, time.time(), json.dumps(versions()))
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)",
                (*row, seal(self._id, "sessions", *row)),
            )
            self._set_meta("sessions", number)

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
            self._seal_units(free)
        return free

    def renew(self) -> None:
        """Keep this process's claims alive."""
        with self._transaction():
            mine = self._mine()
            self._connection.executemany(
                "UPDATE units SET lease = ? WHERE unit = ?",
                [(time.time() + LEASE, unit) for unit in mine],
            )
            self._seal_units(mine)

    def release(self) -> None:
        """Give up this process's claims. What cannot be given up is free when the process ends."""
        try:
            with self._transaction():
                self._give_up()
        except (OSError, RunStoreError) as error:  # a full disk, say, which has stopped the run
            log.warning("claims could not be given up", extra={"error": str(error)})

    def commit(self, result: UnitResult) -> bool:
        """Store one unit, in a transaction of its own; False if another process was first."""
        if result.error is not None and "KeyboardInterrupt" in result.error:
            # Ctrl-C in a function that JAX calls comes out as an error of JAX. Nothing failed.
            raise KeyboardInterrupt
        row = result.row()
        assigned = ", ".join(f'"{name}" = ?' for name in (*FOUND, "finished", "result"))
        with self._transaction() as connection:
            changed = connection.execute(
                f"UPDATE units SET state = ?, owner = ?, lease = NULL, {assigned} "
                "WHERE unit = ? AND state IN ('waiting', 'claimed')",
                (
                    state_of(result),
                    self.owner,
                    *(row.get(key) for key in FOUND),
                    time.time(),
                    json.dumps(result.to_json()),
                    result.unit,
                ),
            )
            if changed.rowcount == 1:
                self._seal_units([result.unit])
            return changed.rowcount == 1

    def retry_failed(self) -> int:
        """Let units that failed be done again; how many there are."""
        emptied = ", ".join(f'"{name}" = NULL' for name in COLUMNS[2:])
        with self._transaction() as connection:
            rows = connection.execute("SELECT unit FROM units WHERE state = 'failed'").fetchall()
            failed = [unit for (unit,) in rows]
            connection.executemany(
                f"UPDATE units SET state = 'waiting', {emptied} WHERE unit = ?",
                [(unit,) for unit in failed],
            )
            self._seal_units(failed)
        return len(failed)

    def _give_up(self) -> None:
        mine = self._mine()
        self._connection.executemany(
            "UPDATE units SET state = 'waiting', owner = NULL, lease = NULL WHERE unit = ?",
            [(unit,) for unit in mine],
        )
        self._seal_units(mine)

    def _mine(self) -> list[int]:
        rows = self._connection.execute(
            "SELECT unit FROM units WHERE state = 'claimed' AND owner = ?", (self.owner,)
        )
        return [unit for (unit,) in rows.fetchall()]

    def _begin(self, units: Sequence[int], configuration: Any, inputs: Any, origin: Any) -> None:
        """Make the tables and fill in what the run is."""
        for statement in SCHEMA:
            self._connection.execute(statement)
        self._know(secrets.token_hex(16), [])
        values = {
            "format": FORMAT,
            "id": self._id,
            "configuration": configuration,
            "inputs": inputs,
            "origin": origin,
            "created": time.time(),
            "sessions": 0,
        }
        for key, value in values.items():
            self._set_meta(key, value)
        self._connection.executemany(
            "INSERT INTO units (unit) VALUES (?)", [(unit,) for unit in units]
        )
        self._connection.execute(_SEAL_UNIT)

    def _seal_units(self, units: Sequence[int]) -> None:
        self._connection.executemany(f"{_SEAL_UNIT} WHERE unit = ?", [(unit,) for unit in units])

    def _set_meta(self, key: str, value: Any) -> None:
        text = json.dumps(value)
        self._connection.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)",
            (key, text, seal(self._id, "meta", key, text)),
        )

    def _transaction(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return transaction(self._connection, self._path)


@contextlib.contextmanager
def _closing_on_error(store: RunStore) -> Generator[RunStore]:
    try:
        yield store
    except BaseException:
        store.close()
        raise
