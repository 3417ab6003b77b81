"""Worker processes: deaths, errors, one thread each, and one copy of the table."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.run_cases import Told, memory_layer, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax.concepts import ConceptTable
from optexp_jax.runs import Counts, LocalWorkers, UnitResult, WorkerDiedError, explain_layer
from optexp_jax.runs import task as tasks
from optexp_jax.runs.opening import make_opener
from optexp_jax.runs.shared import open_shared_table, share_table


def own_pid() -> int:
    return os.getpid()


def end_badly() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CannotTravelError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, one: int, two: int):
        super().__init__(f"{one} and {two}")


def fail(kind: str) -> None:
    if kind == "plain":
        raise ValueError("as told")
    raise CannotTravelError(1, 2)


def threads_of_xla() -> tuple[int, str | None]:
    import jax.numpy as jnp

    jnp.ones(3).block_until_ready()
    names = [
        Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")
    ]
    return sum("XLAEigen" in name for name in names), os.environ.get("OMP_NUM_THREADS")


def heavy_modules() -> list[str]:

    return [name for name in ("torch", "pandas", "dask", "distributed") if name in sys.modules]


def tell_and_wait(seconds: float) -> None:
    tasks._tell(tasks.UnitStarted(5))
    time.sleep(seconds)


def test_workers_outlive_deaths_and_errors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with LocalWorkers(1, threads=1) as workers:
        heard: list[object] = []
        workers.listener = heard.append
        first = {workers.submit(own_pid).result() for _ in range(2)}
        assert os.getpid() not in first
        assert set(workers.pids) == first
        with pytest.raises(WorkerDiedError, match="SIGKILL"):
            workers.submit(end_badly).result()
        with pytest.raises(ValueError, match="as told"):
            workers.submit(fail, "plain").result()
        with pytest.raises(TypeError, match="two"):
            workers.submit(fail, "odd").result()
        with pytest.raises((AttributeError, TypeError), match=r"pickle|local"):
            workers.submit(lambda: 1).result()
        workers.submit(tell_and_wait, 0.0).result()
        assert heard == [tasks.UnitStarted(5)]
        assert workers.pids
        assert not set(workers.pids) & first, "the one that died was replaced"
        assert workers.submit(heavy_modules).result() == []
        # One thread, whatever the machine has; with several workers that is the default.
        assert workers.submit(threads_of_xla).result() == (1, "1")
        assert "OMP_NUM_THREADS" not in os.environ, "that is for the workers alone"
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(own_pid)
    assert not [pid for pid in first if Path(f"/proc/{pid}").exists()]


def test_workers_can_be_stopped_at_once():
    workers = LocalWorkers(1)
    started = threading.Event()
    workers.listener = lambda _: started.set()
    running, waiting = workers.submit(tell_and_wait, 60.0), workers.submit(own_pid)
    assert started.wait(30)
    begin = time.perf_counter()
    workers.shutdown(cancel_futures=True)
    assert time.perf_counter() - begin < 5
    with pytest.raises(WorkerDiedError):
        running.result()
    with pytest.raises(CancelledError):
        waiting.result()


@pytest.mark.slow
def test_a_script_that_workers_cannot_import_is_told(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from optexp_jax.runs import LocalWorkers\n"
        "with LocalWorkers(1) as workers:\n"
        "    try:\n"
        "        workers.submit(len, 'abc').result()\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "if __name__" in done.stdout


def test_the_number_of_workers_is_checked():
    with pytest.raises(ValueError, match="at least one"):
        LocalWorkers(0)
    with pytest.raises(ValueError, match="threads is 1"):
        LocalWorkers(1, threads=4)


def test_workers_find_what_one_process_finds_though_one_is_killed(tmp_path: Path):
    layer, method = stored_layer(tmp_path, 8), ox.NetDissect()
    whole = explain_layer(tmp_path / "whole", layer, method)

    class Kill(Told):
        """Kills a worker when the third unit is done."""

        def unit_finished(self, result: UnitResult, counts: Counts) -> None:
            super().unit_finished(result, counts)
            if len(self.finished) == 3:
                os.kill(workers.pids[0], signal.SIGKILL)

    told = Kill()
    with LocalWorkers(2) as workers:
        run = explain_layer(tmp_path / "run", layer, method, executor=workers, observer=told)
    assert sorted(told.finished) == list(range(8))
    assert len(told.started) >= 8
    assert same(run, whole)


def test_shared_tables_are_mapped_not_copied(tmp_path: Path):
    table = small_table()
    shared = open_shared_table(share_table(table, tmp_path))
    assert shared.fingerprint == table.fingerprint
    for array in (
        shared.signatures.indptr,
        shared.signatures.indices,
        shared.patches.signature,
        shared.patches.size,
        shared.sizes,
    ):
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable
    for derived in (shared.signatures.incidence, shared.signatures.holders):
        for array in (derived.data, derived.indices, derived.indptr):
            assert not array.flags.writeable
            assert not array.flags.owndata
    np.testing.assert_array_equal(
        shared.signatures.incidence.toarray(), table.signatures.incidence.toarray()
    )
    np.testing.assert_array_equal(shared.signatures.membership(2), table.signatures.membership(2))
    np.testing.assert_array_equal(shared.mask("boat"), table.mask("boat"))
    assert share_table(table, tmp_path) == share_table(table, tmp_path), "written once"


def test_the_map_of_a_stored_table_stays_where_it_is(tmp_path: Path):
    small_table().save(tmp_path / "table.zarr")
    table = ConceptTable.load(tmp_path / "table.zarr")
    folder = share_table(table, tmp_path / "shared", tmp_path / "table.zarr")
    assert not (folder / "ranks.npy").exists()
    shared = open_shared_table(folder)
    assert shared.fingerprint == table.fingerprint
    np.testing.assert_array_equal(shared.mask("sea"), table.mask("sea"))


@pytest.mark.parametrize("empty", ["no concept anywhere", "made of counts"])
def test_odd_tables_are_shared_too(tmp_path: Path, empty: str):
    if empty == "made of counts":
        table = ConceptTable.from_signatures([[0], [0, 1], [0]], [3, 4, 5], ["a", "b"])
    else:
        table = ConceptTable.from_masks(np.zeros((2, 3, 2), bool), ["a", "b"])
    assert open_shared_table(share_table(table, tmp_path)).fingerprint == table.fingerprint


def test_units_in_memory_are_shared_with_workers(tmp_path: Path):
    layer = memory_layer(3)
    opener = make_opener(layer, tmp_path, in_memory=False)
    assert pickle.loads(pickle.dumps(opener)) == opener
    opened = opener.open()
    assert opened.fingerprint == layer.fingerprint
    assert opened.table.fingerprint == layer.table.fingerprint
    with ThreadPoolExecutor(1) as executor:
        run = explain_layer(tmp_path / "run", layer, ox.NetDissect(), executor=executor)
    assert (tmp_path / "run" / "shared").exists()
    assert same(run, explain_layer(tmp_path / "whole", layer, ox.NetDissect()))
