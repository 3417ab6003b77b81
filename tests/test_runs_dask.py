"""Runs on a Dask cluster of worker processes on loopback."""

import os
import signal
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from run_cases import stored_layer
from test_runs_run import METHOD, Told, same

from optexp_jax import cli
from optexp_jax.runs import Counts, Run, UnitResult, explain_layer
from optexp_jax.runs.cluster import dask_executor

distributed = pytest.importorskip("distributed")

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
