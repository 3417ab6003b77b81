"""The SQLite file of a run: opened to be written or only read, with errors in our words."""

import contextlib
import errno
import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from os import W_OK, access
from pathlib import Path

BUSY = 60.0
"""Seconds to wait for another process's transaction."""


class RunStoreError(ValueError):
    """A folder that is not a run, not the run that was asked for, or a damaged one."""


def damaged(path: Path, what: str) -> RunStoreError:
    """The error for a file that is not as it was written."""
    return RunStoreError(
        f"{path} is damaged: {what}. Take a copy of the file from before, or do the run again in "
        "another folder."
    )


@contextlib.contextmanager
def in_our_words(path: Path) -> Generator[None]:
    """Errors of SQLite as those of a full or locked disk, or of a damaged run."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
        raise _translated(path, error) from error


def _translated(path: Path, error: Exception) -> Exception:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return damaged(path, "it ends too early")
    match code & 0xFF:  # the rest tells more than matters here
        case sqlite3.SQLITE_FULL:
            return OSError(
                errno.ENOSPC,
                f"No space is left for {path}. What was stored before is whole; make room and go "
                "on with the same command",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return TimeoutError(
                f"{path} cannot be written ({error}). Another process may be stopped while it "
                f"writes; waited {BUSY:.0f} seconds for it."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return PermissionError(errno.EACCES, f"{path} cannot be written ({error})")
        case sqlite3.SQLITE_IOERR:
            return OSError(errno.EIO, f"{path} cannot be read or written ({error})")
        case sqlite3.SQLITE_NOTADB:
            return RunStoreError(f"{path} is not a run store ({error}).")
        case _:
            return damaged(path, " ".join(str(error).split()))


def connect_to_write(path: Path) -> sqlite3.Connection:
    """The file, made if there is none."""
    connection = _connect(path, "rwc")
    try:
        with in_our_words(path):
            # With a write-ahead log readers never wait, and a killed writer leaves nothing half
            # done.
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """A file that exists, to be read, and written where that is allowed."""
    if access(path, W_OK) and access(path.parent, W_OK):
        return _connect(path, "rw")
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return _connect(path, "ro&immutable=1")
    # Transactions wait in the log. To read them SQLite needs an index of it beside the file,
    # which only a process that may write can make.
    with tempfile.TemporaryDirectory(prefix="optexp-") as folder:
        for part in (path, log):
            shutil.copyfile(part, Path(folder) / part.name)
        copy = _connect(Path(folder) / path.name, "rw")
        held = sqlite3.connect(":memory:", isolation_level=None)
        try:
            with in_our_words(path):
                copy.backup(held)
        except BaseException:
            held.close()
            raise
        finally:
            copy.close()
    return held


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with in_our_words(path):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}", timeout=BUSY, isolation_level=None, uri=True
        )
    try:
        with in_our_words(path):
            connection.execute("PRAGMA synchronous = FULL")
            # What a schema of others names is not run, and damaged pages are looked at closely.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Generator[sqlite3.Connection]:
    """All or nothing, and nobody else writes meanwhile."""
    try:
        with in_our_words(path):
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
    except BaseException:
        # SQLite itself has rolled back where a disk is full.
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
