"""Runs on a Dask cluster of worker processes on loopback."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.run_cases import METHOD, Told, finished, same, start_explaining, stored_layer, wait_for

from optexp_jax import cli
from optexp_jax.runs import Counts, Run, UnitResult, explain_layer
from optexp_jax.runs.cluster import dask_executor

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

# Dask leaves sockets and loops to the garbage collector when a cluster is closed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextmanager
def cluster(**settings: Any) -> Generator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            host="127.0.0.1", dashboard_address=None, threads_per_worker=1, **settings
        ) as local:
            yield local


def test_the_command_line_takes_a_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    layer = stored_layer(tmp_path, 4)
    with cluster(n_workers=1, processes=False, protocol="tcp://") as local:
        arguments = [
            *("explain", "--table", layer.table, "--activations", layer.activations),
            *("--range", layer.range, "--length", "2", "--top-k", "2"),
            *("--scheduler", local.scheduler_address, "--run", str(tmp_path / "run")),
        ]
        assert cli.main(arguments) == 0, capsys.readouterr().err
    assert same(Run(tmp_path / "run"), explain_layer(tmp_path / "whole", layer, METHOD))


def test_a_scheduler_that_is_not_there(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["explain", "--scheduler", "not-an-address:x"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no Dask scheduler" in line


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_encryption_that_is_not_set_up_is_told(address, capsys: pytest.CaptureFixture[str]):
    with dask.config.set({"distributed.comm.require-encryption": True}):
        assert cli.main(["explain", "--scheduler", address]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be talked to as Dask is set up" in line


@pytest.mark.slow
def test_a_worker_process_that_is_killed_loses_nothing(tmp_path: Path):
    layer = stored_layer(tmp_path, 30)
    whole = explain_layer(tmp_path / "whole", layer, METHOD)
    killed: list[int] = []

    class Kill(Told):
        def unit_finished(self, result: UnitResult, counts: Counts) -> None:
            super().unit_finished(result, counts)
            if counts.done == 5:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    told = Kill()
    with (
        cluster(n_workers=3, processes=True) as local,
        dask_executor(local.scheduler_address) as found,
        distributed.Client(local.scheduler_address) as client,
    ):
        workers: list[int] = list(client.run(os.getpid).values())
        assert os.getpid() not in workers
        run = explain_layer(
            tmp_path / "run",
            layer,
            METHOD,
            executor=found.executor,
            in_flight=found.in_flight,
            observer=told,
        )
    assert killed
    assert sorted(told.finished) == list(range(30))
    assert same(run, whole)


CLUSTER = """
import sys, time
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://",
        host="127.0.0.1", dashboard_address=None,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_is_lost_is_noticed(tmp_path: Path, how: signal.Signals):
    """One that is killed closes its connections; one that is stopped only says nothing more."""
    layer = stored_layer(tmp_path, 200)
    run = tmp_path / "run"
    options = ("--bounds", "helpers.run_cases:SlowBounds", "--length", "2", "--top-k", "2")
    scheduler = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},  # for SlowBounds
    )
    assert scheduler.stdout is not None
    address = scheduler.stdout.readline().strip()
    explaining = start_explaining(layer, run, *options, "--scheduler", address, "-q")
    try:
        wait_for(explaining, lambda: finished(run) >= 3)
        scheduler.send_signal(how)
        lost = time.monotonic()
        said, errors = explaining.communicate(timeout=60)
        took = time.monotonic() - lost
    finally:
        for process in (scheduler, explaining):
            process.kill()
            process.communicate()
    assert explaining.returncode == 1, errors
    print(f"{how.name}: noticed, and ended, after {took:.1f} seconds")
    assert took < 35, "30 seconds to notice it, and some to end the process"
    assert len(errors.splitlines()) == 1, errors
    assert "scheduler" in errors
    assert "the same command" in errors
    assert said == ""
    counts = Run(run).counts
    assert counts.claimed == 0
    assert counts.failed == 0
    assert 3 <= counts.done < 200
    again = start_explaining(layer, run, *options, "-q")
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert Run(run).counts.done == 200
