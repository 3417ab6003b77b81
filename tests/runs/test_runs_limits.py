"""Full disks, folders that may not be written, little memory, and absurd inputs: one line each."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from helpers.run_cases import memory_layer, same, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.runs import LocalWorkers, Run, UnitChoice, explain_layer, parse_units
from optexp_jax.runs import database as database_module
from optexp_jax.runs.export import as_json, write_csv, write_json
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.store import FILE, RunStore
from optexp_jax.runs.verify import verify_run

METHOD = ox.Optimal(length=2, top_k=2)


@contextmanager
def mounted(folder: Path, *options: str) -> Generator[Path]:
    """A file system at a folder, where one may be mounted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", *options, str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> StoredLayer:
    return stored_layer(tmp_path_factory.mktemp("layer"), 30)


@pytest.mark.chaos("full disks survived")
def test_a_full_disk_stops_the_run_and_nothing_is_lost(layer: StoredLayer, tmp_path: Path):
    whole = explain_layer(tmp_path / "whole", layer, METHOD)
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as disk:
        filler, run = disk / "filler", disk / "run"
        filler.write_bytes(b"x" * (2**21 - 300_000))
        with pytest.raises(OSError, match="No space") as full:
            explain_layer(run, layer, METHOD)
        assert full.value.errno == errno.ENOSPC
        counts = Run(run).counts
        assert 0 < counts.done < 30
        assert counts.failed == 0
        with pytest.raises(OSError, match="No space"):
            fill(disk)
        with pytest.raises(OSError, match="No space"):
            write_json(Run(run), disk / "out.json")
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "more", "run"]
        assert cli.main(["explain", "--run", str(run), "-q"]) == 1
        (disk / "more").unlink()
        filler.unlink()
        assert cli.main(["explain", "--run", str(run), "-q"]) == 0
        assert same(Run(run), whole)


def fill(disk: Path) -> None:
    with (disk / "more").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_errors_of_sqlite_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def failing(code: int) -> Exception:
        error = sqlite3.OperationalError("as SQLite says it")
        error.sqlite_errorcode = code
        with (
            pytest.raises(Exception, match=r"as SQLite says it|No space") as told,
            database_module.in_our_words(tmp_path),
        ):
            raise error
        return told.value

    assert isinstance(failing(sqlite3.SQLITE_FULL), OSError)
    assert isinstance(failing(sqlite3.SQLITE_BUSY), TimeoutError)
    assert isinstance(failing(sqlite3.SQLITE_READONLY_DBMOVED), PermissionError)
    assert isinstance(failing(sqlite3.SQLITE_IOERR_WRITE), OSError)
    assert isinstance(failing(sqlite3.SQLITE_CORRUPT_INDEX), ox.runs.RunStoreError)


def test_a_failed_commit_leaves_no_transaction_open(tmp_path: Path):
    run = explain_layer(tmp_path / "run", memory_layer(1), ox.NetDissect())
    store = RunStore.open(run.path)
    with pytest.raises(ZeroDivisionError), store._transaction():
        raise ZeroDivisionError
    assert not store._connection.in_transaction
    store.begin_session()
    assert len(store.sessions()) == 2
    store.close()


def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the folder could not be written; to root, permissions mean nothing."""
    monkeypatch.setattr(database_module, "access", lambda path, _: folder not in Path(path).parents)


@pytest.fixture
def run(layer: StoredLayer, tmp_path: Path) -> Run:
    return explain_layer(tmp_path / "run", layer, METHOD, units=range(3))


def leave_a_log(run: Run, copy: Path) -> None:
    """A copy of a run as a killed process leaves it: the last transactions are in the log."""
    store = RunStore.open(run.path)
    store.begin_session()
    copy.mkdir()
    for name in (FILE, f"{FILE}-wal"):
        shutil.copyfile(run.path / name, copy / name)
    store.close()
    assert (copy / f"{FILE}-wal").stat().st_size


@pytest.mark.parametrize("with_log", [False, True], ids=["plain", "log"])
@pytest.mark.parametrize("mounts", [False, True], ids=["said", "mounted"])
def test_a_run_that_may_not_be_written_can_be_read_and_verified(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    with_log: bool,
    mounts: bool,
):
    folder = run.path
    if with_log:
        leave_a_log(run, tmp_path / "copy")
        folder = tmp_path / "copy"
    wanted = json.dumps(as_json(run))
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())

    def check(seen: Path) -> None:
        assert json.dumps(as_json(Run(seen))) == wanted
        assert all(check.good for check in verify_run(Run(seen)))
        assert cli.main(["results", str(seen)]) == 0
        assert cli.main(["verify", str(seen), "--units", "0"]) == 0
        capsys.readouterr()
        if mounts:
            assert cli.main(["explain", "--run", str(seen)]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert "cannot be written" in line
        assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before

    if mounts:
        with mounted(tmp_path / "there", "--bind", "-o", "ro", str(folder)) as there:
            check(there)
    else:
        read_only(folder, monkeypatch)
        check(folder)


def test_exports_are_whole_or_not_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "out.csv"
    target.write_text("before")
    monkeypatch.setattr(os, "fsync", _fail)
    with pytest.raises(OSError, match="full"):
        write_csv(run, target)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == ["out.csv"]
    monkeypatch.undo()
    write_csv(run, target)
    assert target.read_text().startswith("unit,formula")


def _fail(*_: object) -> None:
    raise OSError(errno.ENOSPC, "full")


class Greedy(ox.NetDissect):
    """A method that needs more memory than there is."""

    def run(self, table: ox.ConceptTable, neuron: ox.NeuronCounts) -> ox.Explanation:
        np.empty(2**60, np.uint8)
        return super().run(table, neuron)


def test_a_unit_without_memory_says_so(tmp_path: Path):
    run = explain_layer(tmp_path / "run", memory_layer(2), Greedy())
    assert [result.explanation for result in run.results] == [None, None]
    assert all("Unable to allocate" in (result.error or "") for result in run.results)


@pytest.mark.parametrize(
    "options",
    [
        ["--units", "0-999999999999"],
        ["--units", "0-" + "9" * 5000],
        ["--top-k", "1" + "0" * 12],
        ["--within", "0.1", "--max-within", "1" + "0" * 12],
        ["--length", "1000000"],
        ["--method", "beam", "--length", "1000000"],
        ["--method", "beam", "--size", "1000000000"],
        ["--batch-size", "1" + "0" * 15],
        ["--null", "1000000000"],
        ["--null", "2", "--null-seed", "-1"],
        ["--workers", "10000"],
        ["--random", "1000000000000"],
        ["--mask-size", "1000000000"],
        ["--time-limit", "nan"],
        ["--gap", "nan"],
        ["--within", "nan"],
        ["--length", "9" * 5000],
    ],
    ids=lambda options: " ".join(options)[:40],
)
def test_absurd_options_are_one_line_at_once(
    layer: StoredLayer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
):
    start = time.perf_counter()
    arguments = ["--table", layer.table, "--activations", layer.activations]
    run = ["--range", layer.range, "--run", str(tmp_path / "run")]
    assert cli.main(["explain", *arguments, *run, *options]) in (1, 2)
    assert time.perf_counter() - start < 20
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_ranges_of_units_are_not_listed_before_they_are_checked(run: Run):
    for choose in (
        lambda: parse_units("0-999999999"),
        lambda: UnitChoice(units="0-999999999").choose(512),
        lambda: UnitChoice(units="3,0-999999999999").choose(512),
    ):
        check_refused(choose)
    assert cli.main(["verify", str(run.path), "--units", "0-999999999"]) == 1
    assert cli.main(["verify", str(run.path), "--time-limit", "nan"]) == 2
    with pytest.raises(ValueError, match="too many"):
        LocalWorkers(10_000)


def check_refused(call: Callable[[], object]) -> None:
    start = time.perf_counter()
    with pytest.raises(ValueError, match="unit"):
        call()
    assert time.perf_counter() - start < 1


@pytest.mark.slow
@pytest.mark.chaos("memory limits told in a line")
@pytest.mark.parametrize("megabytes", [300, 900, 1500])
def test_a_process_that_may_take_little_memory(megabytes: int, tmp_path: Path):
    """Too little to load JAX, to load torch, to start threads."""
    most = megabytes * 10**6
    limited = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))\n"
        "import sys\n"
        "from optexp_jax.cli.__main__ import main\n"
        "sys.argv = ['optexp', 'demo']\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "out of memory" in line
