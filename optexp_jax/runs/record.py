"""The record of a run: its tables, and what is read from them, checked against checksums."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from optexp_jax.runs.database import RunStoreError, damaged, in_our_words
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.seals import seal

FORMAT = 5
STATES = ("waiting", "claimed", "done", "failed")
KEYS = {"format", "id", "configuration", "inputs", "origin", "created", "sessions"}
"""What a run tells about itself."""
FOUND: Sequence[str] = (
    "formula",
    "iou",
    "intersection",
    "union",
    "upper_bound",
    "status",
    "active",
    "precision",
    "recall",
    "single_iou",
    "p_value",
    "held_out_iou",
    "recurrence",
    "error",
    "seconds",
)
"""Columns that repeat what is in `result`, for other programs."""
COLUMNS: Sequence[str] = ("unit", "state", "owner", "lease", *FOUND, "finished", "result")
"""All that the checksum of a unit's row covers."""

SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT)",
    """CREATE TABLE units (
    unit INTEGER PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'claimed', 'done', 'failed')),
    owner TEXT, lease REAL,
    formula TEXT, iou REAL, intersection INTEGER, "union" INTEGER, upper_bound REAL, status TEXT,
    active INTEGER, precision REAL, recall REAL, single_iou REAL,
    p_value REAL, held_out_iou REAL, recurrence REAL, error TEXT, seconds REAL, finished REAL,
    result TEXT,
    digest TEXT
)""",
    "CREATE INDEX units_by_state ON units (state, unit)",
    "CREATE TABLE sessions "
    "(number INTEGER PRIMARY KEY, owner TEXT, started REAL, versions TEXT, digest TEXT)",
)
QUOTED = ", ".join(f'"{name}"' for name in COLUMNS)


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


class RunRecord:
    """What a run file says, each row only if it is as it was stored."""

    def __init__(self, path: Path, connection: sqlite3.Connection):
        self._path = path
        self._connection = connection
        self._id = ""
        self._units: list[int] = []

    def close(self) -> None:
        self._connection.close()

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration that the run began with, as JSON."""
        return self._meta()["configuration"]

    @property
    def inputs(self) -> Any:
        """How to open the source again, as JSON."""
        return self._meta()["inputs"]

    @property
    def origin(self) -> Any:
        """Where the units come from: model, checksum of its weights, layer, dataset."""
        return self._meta()["origin"]

    def sessions(self) -> list[dict[str, Any]]:
        """Every process that worked on the run, with its versions."""
        with in_our_words(self._path):
            self._connection.execute("BEGIN")  # so that both are of the same moment
            try:
                n = self._meta()["sessions"]
                rows = self._ask("SELECT number, owner, started, versions, digest FROM sessions")
            finally:
                self._connection.execute("COMMIT")
        wrong = [row[0] for row in rows if row[-1] != seal(self._id, "sessions", *row[:-1])]
        if wrong or [row[0] for row in rows] != list(range(1, len(rows) + 1)) or n != len(rows):
            raise damaged(self._path, "the processes that worked on it are not as they were stored")
        return [
            {"owner": owner, "started": started, "versions": self._parse(found)}
            for _, owner, started, found, _ in rows
        ]

    def counts(self) -> Counts:
        """How many units are where, by the index: quick, for the one who works on the run."""
        return self._count(dict(self._ask("SELECT state, count(*) FROM units GROUP BY state")))

    def checked_counts(self) -> Counts:
        """The same from the rows themselves, after a look at the checksum of each."""
        return self._count(Counter(row["state"] for row in self._rows()))

    def results(self) -> Iterator[UnitResult]:
        """Finished units in ascending order, after a look at the checksum of every unit."""
        for row in self._rows():
            if row["state"] in ("done", "failed"):
                yield self._result(row)

    def _rows(self) -> list[dict[str, Any]]:
        """All units, after checks that each is as it was stored and that none is missing."""
        # By the table itself: a damaged index could hide rows.
        found = self._ask(f"SELECT {QUOTED}, digest FROM units NOT INDEXED ORDER BY unit")
        wrong = [row[0] for row in found if row[-1] != seal(self._id, "units", *row[:-1])]
        if wrong:
            raise damaged(self._path, f"not as they were stored: {_named(wrong)}")
        units = [row[0] for row in found]
        if units != self._units:
            missing = sorted(set(self._units) - set(units))
            what = f"missing: {_named(missing)}" if missing else "it has units that are not its own"
            raise damaged(self._path, what)
        return [dict(zip(COLUMNS, row, strict=False)) for row in found]

    def _result(self, row: dict[str, Any]) -> UnitResult:
        """The result in a row; the other columns have to say the same."""
        unit = row["unit"]
        try:
            found = UnitResult.from_json(self._parse(row["result"]))
        except ValueError as error:
            raise damaged(self._path, f"the result of unit {unit} is none ({error})") from error
        said = found.row()
        if found.unit != unit or row["state"] != state_of(found):
            raise damaged(self._path, f"the result of unit {unit} is that of another")
        for name in FOUND:
            if row[name] != said.get(name):
                raise damaged(
                    self._path,
                    f"the column {name} of unit {unit} is {row[name]!r}, its result says "
                    f"{said.get(name)!r}",
                )
        return found

    def _meta(self) -> dict[str, Any]:
        """What the run tells about itself, after a look at the checksums."""
        rows = self._ask("SELECT key, value, digest FROM meta NOT INDEXED")
        wrong = [key for key, value, digest in rows if digest != seal(self._id, "meta", key, value)]
        if wrong or {key for key, _, _ in rows} != KEYS:
            raise damaged(self._path, "what it tells about itself is not as it was stored")
        return {key: self._parse(value) for key, value, _ in rows}

    def check_meta(self) -> None:
        """Refuse other formats, other tables than ours, and a damaged description."""
        tables = self._ask("SELECT type, name, sql FROM sqlite_master ORDER BY rowid")
        if not any(name == "meta" for _, name, _ in tables):
            raise RunStoreError(
                f"{self._path} is not a run store: it has no table `meta`. Delete the file if the "
                "run was stopped before it began."
            )
        found = self._ask("SELECT value FROM meta NOT INDEXED WHERE key = 'format'")
        if found != [(str(FORMAT),)]:
            said = found[0][0] if found else None
            raise RunStoreError(
                f"{self._path.parent} has run format {said}; this release reads {FORMAT}. Do the "
                "run again, by the command that made it with another folder: optexp explain ... "
                "--run FOLDER. Or read it with the release that wrote it."
            )
        if tuple(sql for _, _, sql in tables if sql is not None) != SCHEMA:
            raise damaged(self._path, "its tables are not those of a run")
        ids = self._ask("SELECT value FROM meta NOT INDEXED WHERE key = 'id'")
        self._know(str(self._parse(ids[0][0])) if ids else "", [])
        described = self._meta()
        units: Any = described["configuration"]
        units = cast(dict[str, Any], units).get("units") if isinstance(units, dict) else None
        numbers: list[Any] = cast(list[Any], units) if isinstance(units, list) else [None]
        if not all(type(number) is int for number in [*numbers, described["sessions"]]):
            raise damaged(self._path, "it does not say which units it is about")
        self._know(self._id, numbers)

    def _know(self, run_id: str, units: list[int]) -> None:
        """From now on rows are those of this run."""
        self._id, self._units = run_id, units

        def sealed(table: str, *row: object) -> str:
            return seal(run_id, table, *row)

        self._connection.create_function("seal", -1, sealed, deterministic=True)

    def check_whole(self) -> None:
        """Refuse to go on with a damaged run, before anything is added to it."""
        faults = self._ask("PRAGMA integrity_check(1)")
        if faults != [("ok",)]:
            raise damaged(self._path, " ".join(str(faults[0][0]).split()))
        self.sessions()
        for _ in self.results():
            pass

    def _count(self, found: dict[str, int]) -> Counts:
        if not set(found) <= set(STATES) or sum(found.values()) != len(self._units):
            raise damaged(self._path, "units are missing, or in no state that there is")
        return Counts(*(found.get(state, 0) for state in STATES))

    def _ask(self, statement: str) -> list[Any]:
        with in_our_words(self._path):
            return self._connection.execute(statement).fetchall()

    def _parse(self, text: object) -> Any:
        try:
            return json.loads(cast(str, text))
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self._path, f"it holds something that is no JSON ({error})") from None


def state_of(result: UnitResult) -> str:
    """The state of a unit that has this result."""
    return "failed" if result.explanation is None else "done"


def _named(units: Sequence[int]) -> str:
    shown = ", ".join(str(unit) for unit in units[:5])
    return f"units {shown}" + (f" and {len(units) - 5} more" if len(units) > 5 else "")
