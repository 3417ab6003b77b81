"""An executor on other machines, watched: when they are gone, its tasks fail and do not wait.

A client of a cluster knows of its scheduler only what comes down a connection. A scheduler that was
killed, cut off or stopped says nothing, and a task that it held would be waited for as long as this
process lives. So it is asked again and again whether it is there.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

from optexp_jax.runs.call import Call

EVERY = 2.0
"""Seconds between questions."""
ANSWER = 5.0
"""Seconds for which one answer is waited for."""
PATIENCE = 20.0
"""Seconds without an answer after which nobody is there any more."""
WITHOUT_WORKERS = 60.0
"""Seconds without any worker, in which others may be started."""


class ClusterLostError(OSError):
    """The scheduler or all workers are gone, and with them all tasks that they held."""


class Watched(Executor):
    """An executor whose tasks fail with `ClusterLostError` once nobody answers for it.

    `count_workers` asks how many workers there are, and raises if there is no answer, or a
    `ClusterLostError` if there will be none. Tasks that are cancelled on the way, because a
    connection broke, are handed over again when there is one.
    """

    def __init__(
        self,
        executor: Executor,
        count_workers: Callable[[], int],
        *,
        name: str,
        every: float = EVERY,
        patience: float = PATIENCE,
        without_workers: float = WITHOUT_WORKERS,
    ):
        self._executor = executor
        self._count_workers = count_workers
        self._name = name
        self._every, self._patience = every, patience
        self._without_workers = without_workers
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        """Those that are not done."""
        self._dropped: list[Call] = []
        """Those of them that the executor has cancelled."""
        self._lost: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker call the function."""
        call = Call(fn, args, kwargs)
        call.future.set_running_or_notify_cancel()  # it is out of our hands
        with self._lock:
            lost = self._lost
            if lost is None:
                self._calls.add(call)
        if lost is None:
            self._hand_over(call)
        else:  # not raised: what was done before may wait to be stored
            call.future.set_exception(ClusterLostError(lost))
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop watching; with `wait` after what was handed over is done."""
        if wait and not cancel_futures:
            for call in self._unfinished():
                with contextlib.suppress(Exception):
                    call.future.exception()
        self._stop.set()
        self._thread.join()
        for call in self._unfinished():
            if self._end(call):
                call.future.set_exception(CancelledError())
        if self._lost is None:
            with contextlib.suppress(Exception):  # its connection may have been closed before
                self._executor.shutdown(wait=False)

    def _unfinished(self) -> list[Call]:
        with self._lock:
            return list(self._calls)

    def _hand_over(self, call: Call) -> None:
        """Give a call to the executor; if that cannot be, the watch will see why."""
        try:
            future = self._executor.submit(call.function, *call.arguments, **call.options)
        except Exception as error:
            if self._answers():  # then it is the call that is wrong
                self._end(call)
                call.future.set_exception(error)
            else:
                self._drop(call)
            return
        future.add_done_callback(lambda done: self._pass_on(call, done))

    def _pass_on(self, call: Call, done: Future[Any]) -> None:
        """What a call has come to, unless that was said before."""
        if done.cancelled():
            self._drop(call)
            return
        if not self._end(call):
            return
        error = done.exception()
        if error is None:
            call.future.set_result(done.result())
        else:
            call.future.set_exception(error)

    def _drop(self, call: Call) -> None:
        with self._lock:
            if call in self._calls:
                self._dropped.append(call)

    def _end(self, call: Call) -> bool:
        """Whether the call was still waited for; from now on it is not."""
        with self._lock:
            waited = call in self._calls
            self._calls.discard(call)
        return waited

    def _answers(self) -> bool:
        try:
            self._count_workers()
        except Exception:
            return False
        return True

    def _watch(self) -> None:
        answered = worked = time.monotonic()
        while not self._stop.wait(self._every):
            try:
                n_workers = self._count_workers()
            except ClusterLostError as error:
                self._give_up(str(error))
                return
            except Exception:  # of many kinds; they all say that there was no answer
                if time.monotonic() - answered > self._patience:
                    self._give_up(f"has not answered for {self._patience:.0f} seconds")
                    return
                continue
            answered = time.monotonic()
            if n_workers:
                worked = answered
            elif answered - worked > self._without_workers:
                self._give_up(f"has had no workers for {self._without_workers:.0f} seconds")
                return
            with self._lock:
                again, self._dropped = self._dropped, []
            for call in again:
                self._hand_over(call)

    def _give_up(self, why: str) -> None:
        text = (
            f"{self._name} {why}. What was stored is kept, and no unit is held any more; go on "
            "with the same command when there is a cluster again, or without one."
        )
        with self._lock:
            self._lost = text
            calls, self._calls = self._calls, set()
        for call in calls:
            call.future.set_exception(ClusterLostError(text))
