"""An executor on other machines that are lost: tasks fail in time, and claims are given up."""

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

import pytest
from helpers.run_cases import METHOD, memory_layer, same

from optexp_jax.runs import Run, explain_layer
from optexp_jax.runs.watched import ClusterLostError, Watched


class Remote(Executor):
    """A cluster that does a number of tasks, and then is gone, in one of several ways."""

    def __init__(self, n_tasks: int, end: Callable[["Remote"], Future[Any]]):
        self.n_left = n_tasks
        self.n_workers = 1
        self.n_asked = 0
        self.alive = True
        self._end = end
        self.held: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.n_left == 0:
            return self._end(self)
        self.n_left -= 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future

    def count_workers(self) -> int:
        self.n_asked += 1
        if not self.alive:
            raise TimeoutError
        return self.n_workers

    def hold(self) -> Future[Any]:
        self.held.append(Future())
        return self.held[-1]


def dies(remote: Remote) -> Future[Any]:
    remote.alive = False
    return remote.hold()


def loses_its_workers(remote: Remote) -> Future[Any]:
    remote.n_workers = 0
    return remote.hold()


def refuses(remote: Remote) -> Future[Any]:
    remote.alive = False
    raise RuntimeError("Client is closed. Can't send update-graph message.")


def is_cut_off(remote: Remote) -> Future[Any]:
    """Dask cancels its futures when a connection breaks; here it comes back."""
    remote.n_left = 100
    future: Future[Any] = Future()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def watch(remote: Remote) -> Watched:
    return Watched(
        remote,
        remote.count_workers,
        name="The cluster",
        every=0.01,
        patience=0.1,
        without_workers=0.1,
    )


@pytest.mark.parametrize(
    ("end", "said"),
    [(dies, "not answered"), (refuses, "not answered"), (loses_its_workers, "no workers")],
)
def test_a_lost_cluster_leaves_no_claims(tmp_path: Path, end, said):
    layer = memory_layer(6)
    started = time.monotonic()
    with (
        watch(Remote(2, end)) as executor,
        pytest.raises(ClusterLostError, match=f"The cluster .*{said}.*the same command"),
    ):
        explain_layer(tmp_path / "run", layer, METHOD, executor=executor, in_flight=3)
    assert time.monotonic() - started < 20
    counts = Run(tmp_path / "run").counts
    assert (counts.done, counts.claimed, counts.failed) == (2, 0, 0)
    with pytest.raises(ClusterLostError):
        executor.submit(print).result()
    again = explain_layer(tmp_path / "run", layer, METHOD)
    assert same(again, explain_layer(tmp_path / "whole", layer, METHOD))


def test_a_connection_that_comes_back_costs_nothing(tmp_path: Path):
    layer = memory_layer(6)
    with watch(Remote(2, is_cut_off)) as executor:
        run = explain_layer(tmp_path / "run", layer, METHOD, executor=executor, in_flight=3)
    assert same(run, explain_layer(tmp_path / "whole", layer, METHOD))


def test_errors_of_a_task_are_its_own():
    remote = Remote(9, dies)

    def refuse(*_: Any) -> Future[Any]:
        raise TypeError("cannot be pickled")

    with watch(remote) as executor:
        assert executor.submit(abs, -3).result() == 3
        remote.submit = refuse  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(TypeError, match="pickled"):
            executor.submit(abs, -3).result()


def test_answers_after_the_end_are_ignored():
    remote = Remote(0, dies)
    with watch(remote) as executor:
        future = executor.submit(abs, -3)
        with pytest.raises(ClusterLostError):
            future.result(timeout=20)
    remote.held[0].set_result(3)
    assert isinstance(future.exception(), ClusterLostError)


def test_stopping_at_once():
    remote = Remote(0, Remote.hold)
    executor = watch(remote)
    waiting = executor.submit(abs, -3)
    executor.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting.result(timeout=20)
    asked = remote.n_asked
    time.sleep(0.05)
    assert remote.n_asked == asked, "nobody asks any more"
