"""The run store: claims, leases, takeovers, transactions, and what it refuses."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import optexp_jax as ox
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import RunnerUp, SearchStats, Seconds
from optexp_jax.runs import NullModel, NullResult, Run, RunStoreError, UnitResult, database
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.owner import Owner
from optexp_jax.runs.store import FILE, LEASE, RunStore

CONFIGURATION = Configuration(ox.Optimal(length=2), tuple(range(20)), "table", "source")
FOUND = ox.Explanation(
    formula=ox.Formula.parse("a OR b AND NOT c"),
    intersection=2**40 + 1,
    union=2**41,
    upper_bound=0.6,
    status=ox.Status.FEASIBLE,
    stats=SearchStats(
        visited=3,
        bounds_on="cpu",
        float64_fault="float64 on tpu:0: sums are off",
        stopped_by=ox.StoppedBy.GAP,
        seconds=Seconds(total=1.5),
    ),
    equivalents=(ox.Formula.parse("b OR a AND NOT c"),),
    runners_up=(RunnerUp(ox.Formula.parse("a"), 5, 9, (ox.Formula.parse("b"),)),),
    within_truncated=True,
)


def null(found: Score) -> NullResult:
    """Two of nine draws reach the score."""
    return NullResult.of([Score(1, 1)] * 2 + [Score(0, 1)] * 7, found)


def result(unit: int) -> UnitResult:
    return UnitResult(unit, replace(FOUND, intersection=unit), null(Score(unit, 2**41)), None, 1.0)


@pytest.fixture
def store(tmp_path: Path):
    store = RunStore.create(tmp_path / "run", CONFIGURATION, None)
    yield store
    store.close()


def as_process(store: RunStore, owner: Owner) -> RunStore:
    """Another hold on the run, as if another process had it."""
    other = RunStore.open(store.folder)
    other.owner = str(owner)
    return other


def test_results_come_back_as_they_were(store: RunStore):
    kept = [result(3), UnitResult(5, error="ValueError: never fires", seconds=0.1)]
    store.claim(20)
    for each in kept:
        assert store.commit(each)
    assert list(store.results()) == kept
    (stored, failed) = store.results()
    assert stored.explanation is not None
    assert stored.explanation.intersection == 3
    assert stored.explanation.runners_up == FOUND.runners_up
    assert failed.error == "ValueError: never fires"
    assert store.counts().done == store.counts().failed == 1
    assert store.counts().finished == 2


def test_columns_can_be_read_without_this_package(store: RunStore):
    store.claim(1)
    store.commit(UnitResult(0, FOUND, null(FOUND.score)))
    with contextlib.closing(sqlite3.connect(store.folder / FILE)) as connection:
        row = connection.execute(
            'SELECT formula, intersection, "union", status, p_value FROM units WHERE unit = 0'
        ).fetchone()
    assert row == (str(FOUND.formula), 2**40 + 1, 2**41, "feasible", 0.3)


def test_units_are_claimed_once(store: RunStore):
    other = as_process(store, Owner("elsewhere", 1, "1"))
    first, second = store.claim(12), other.claim(12)
    assert first == list(range(12))
    assert second == list(range(12, 20))
    assert store.claim(1) == other.claim(1) == []
    other.release()
    assert store.claim(20) == list(range(12, 20))
    other.close()


def _claim_all(folder: str, barrier: threading.Barrier, claimed: list[int]) -> None:
    store = RunStore.open(folder)
    store.owner = str(Owner("elsewhere", threading.get_ident(), "1"))
    barrier.wait()
    while units := store.claim(1):
        claimed += units
        store.commit(result(units[0]))
    store.close()


def test_claims_of_several_at_once_do_not_overlap(store: RunStore):
    claimed: list[list[int]] = [[] for _ in range(4)]
    barrier = threading.Barrier(4)
    threads = [
        threading.Thread(target=_claim_all, args=(str(store.folder), barrier, mine))
        for mine in claimed
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(unit for mine in claimed for unit in mine) == list(range(20))
    assert store.counts().done == 20


def test_claims_of_a_dead_process_are_free_at_once(store: RunStore):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = Owner.here()
    ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    started = int(ticks) / os.sysconf("SC_CLK_TCK")
    owner = Owner(here.host, child.pid, f"{started:.2f}")
    other = as_process(store, owner)
    other.claim(20)
    assert not owner.is_gone
    assert store.claim(1) == []
    child.kill()
    assert child.stdin is not None
    time.sleep(0.05)
    assert owner.is_gone, "a zombie does no work"
    child.wait()
    child.stdin.close()
    assert owner.is_gone
    assert store.claim(20) == list(range(20))
    other.close()


def test_a_new_process_with_an_old_id_is_another(store: RunStore):
    here = Owner.here()
    assert not here.is_gone
    assert replace(here, started="17").is_gone
    assert Owner.parse(str(here)) == here
    assert not replace(here, host="elsewhere", pid=2**22 + 1).is_gone, "nothing is known of it"


def test_leases_of_other_machines_run_out(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    other = as_process(store, Owner("elsewhere", 1, "1"))
    other.claim(20)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LEASE * 0.9)
    assert store.claim(1) == []
    other.renew()
    monkeypatch.setattr(time, "time", lambda: now + LEASE * 1.5)
    assert store.claim(1) == []
    monkeypatch.setattr(time, "time", lambda: now + LEASE * 2)
    assert store.claim(1) == [0]
    # The one that was thought lost comes back: what is stored first stays.
    assert store.commit(result(0))
    assert not other.commit(UnitResult(0, error="late"))
    assert [each.error for each in store.results()] == [None]
    other.close()


def test_failed_units_wait_again_only_when_told(store: RunStore):
    store.claim(20)
    store.commit(UnitResult(4, error="out of luck"))
    store.release()
    assert 4 not in store.claim(20)
    store.release()
    assert store.retry_failed() == 1
    assert 4 in store.claim(20)
    assert list(store.results()) == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"method": ox.Optimal(length=3)}, "method.length was 2 and is now 3"),
        ({"method": ox.Optimal(2, bounds=ox.PaperBounds())}, "method.bounds was TightBounds"),
        ({"method": ox.NetDissect()}, "method was Optimal and is now NetDissect"),
        ({"units": (1, 2)}, "units was 20 of them, 0 to 19 and is now [1, 2]"),
        ({"table": "other"}, "table was 'table' and is now 'other'"),
        ({"null": NullModel(5)}, "null was None and is now NullModel"),
    ],
)
def test_another_configuration_is_refused(store: RunStore, changed: dict, named: str):
    with pytest.raises(RunStoreError) as refused:
        RunStore.create(store.folder, replace(CONFIGURATION, **changed), None)
    assert named in str(refused.value)
    again = RunStore.create(store.folder, CONFIGURATION, None)
    assert again.counts().waiting == 20
    again.close()


def test_what_is_no_run_is_refused(tmp_path: Path):
    with pytest.raises(RunStoreError, match="no run at"):
        Run(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunStoreError, match="something other than a run"):
        RunStore.create(tmp_path, CONFIGURATION, None)
    (tmp_path / FILE).write_text("not a database, but long enough to look like one" * 40)
    with pytest.raises(RunStoreError, match="not a run store"):
        Run(tmp_path)


def test_runs_of_a_later_format_are_refused(store: RunStore):
    with contextlib.closing(sqlite3.connect(store.folder / FILE, isolation_level=None)) as other:
        other.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(RunStoreError, match="format 99"):
        RunStore.open(store.folder)


def test_an_error_in_a_transaction_leaves_nothing(store: RunStore):
    def fail() -> None:
        with store._transaction() as connection:
            connection.execute("UPDATE units SET state = 'done'")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.counts().waiting == 20


def test_a_run_that_is_locked_says_so(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "BUSY", 0.05)
    other = RunStore.open(store.folder)
    with store._transaction(), pytest.raises(TimeoutError, match="cannot be written"):
        other.claim(1)
    assert other.claim(1) == [0]
    other.close()


def test_sessions_name_versions(store: RunStore):
    store.begin_session()
    (session,) = store.sessions()
    assert session["versions"]["optexp-jax"] == ox.__version__
    assert session["owner"] == str(Owner.here())


def test_the_configuration_is_complete_and_can_be_made_again(store: RunStore):
    stored = json.loads(json.dumps(store.configuration))
    again = Configuration.from_json(stored)
    assert again.method == CONFIGURATION.method
    assert again.to_json() == CONFIGURATION.to_json()
    assert stored["method"]["time_limit"] is None, "defaults are kept too"
