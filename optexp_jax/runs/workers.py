"""Worker processes on this machine: an executor in which one death costs one task.

`concurrent.futures.ProcessPoolExecutor` gives up all its workers when one dies. Here each worker
has a pipe and a thread of its own; a task whose worker dies fails with `WorkerDiedError`, the
worker is started anew, and the others go on. Workers also tell of their work while they do it.
"""

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from optexp_jax.internal.child_process import live_under_parent
from optexp_jax.runs import task as tasks
from optexp_jax.runs.call import Call

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # How many threads XLA's CPU client makes; the first name is read by newer releases. The Eigen
    # flag alone leaves the pool at one thread a core.
    "PJRT_NPROC": "1",
    "NPROC": "1",
}
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

STARTS = 3
"""Attempts to start a worker before it is clear that none will."""

_READY, _DONE, _ERROR, _TOLD = "ready", "done", "error", "told"


class WorkerDiedError(BrokenExecutor):
    """A worker process ended before its task was done. The executor itself is fine."""


class LocalWorkers(Executor):
    """`n` worker processes, started when first needed, with one thread each if there are several.

    Functions and arguments go to the workers by pickle. `listener` is called, in a thread of this
    process, with whatever the running tasks tell.
    """

    def __init__(self, n: int, *, threads: int | None = None):
        if n < 1:
            raise ValueError(f"There must be at least one worker; got {n}.")
        most = max(64, 4 * (os.cpu_count() or 1))
        if n > most:
            raise ValueError(f"{n} workers are too many for this machine; at most {most}.")
        if threads not in (None, 1):
            raise ValueError(f"threads is 1, or None for as many as XLA likes; got {threads}.")
        self.n = n
        self.listener: tasks.Tell | None = None
        self._one_thread = n > 1 or threads == 1
        self._items: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._killed = False
        self._processes: dict[int, BaseProcess] = {}
        self._threads: list[threading.Thread] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker call the function."""
        with self._lock:
            if self._closed:
                raise RuntimeError("These workers were shut down.")
            if len(self._threads) < self.n:
                thread = threading.Thread(
                    target=self._serve, args=(len(self._threads),), daemon=True
                )
                self._threads.append(thread)
                thread.start()
            item = Call(fn, args, kwargs)
            self._items.put(item)
        return item.future

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return [process.pid for process in list(self._processes.values()) if process.pid]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers: after what waits is done, or at once with `cancel_futures`."""
        with self._lock:
            self._closed = True
        if cancel_futures:
            self._killed = True
            with contextlib.suppress(queue.Empty):
                while True:
                    item = self._items.get_nowait()
                    if item is not None:
                        item.future.cancel()
            for process in list(self._processes.values()):
                process.kill()
        for _ in self._threads:
            self._items.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _serve(self, slot: int) -> None:
        """Feed one worker, and start it again when it has died."""
        pipe: Connection | None = None
        while (item := self._items.get()) is not None:
            if not item.future.set_running_or_notify_cancel():
                continue
            process = self._processes.get(slot)
            if pipe is None or process is None or not process.is_alive():
                try:
                    pipe = self._start(slot)
                except Exception as error:
                    item.future.set_exception(error)
                    continue
            try:
                self._exchange(pipe, item)
            except (EOFError, OSError):
                process = self._processes.pop(slot)
                process.join()
                pipe = None
                item.future.set_exception(
                    WorkerDiedError(f"A worker process died ({_cause(process.exitcode)}).")
                )
        process = self._processes.pop(slot, None)
        if pipe is not None:
            pipe.close()  # the worker reads the end of its pipe, and ends
        if process is not None:
            process.join()

    def _exchange(self, pipe: Connection, item: Call) -> None:
        """Send one call, and receive until its answer comes."""
        try:
            pipe.send((item.function, item.arguments, item.options))
        except (EOFError, OSError):
            raise
        except Exception as error:  # it cannot be pickled; nothing was sent
            item.future.set_exception(error)
            return
        while True:
            try:
                kind, content = pipe.recv()
            except (EOFError, OSError):
                raise
            except Exception as error:  # what came cannot be made again here
                item.future.set_exception(error)
                return
            if kind == _TOLD:
                if self.listener is not None:
                    self.listener(content)
            elif kind == _DONE:
                item.future.set_result(content)
                return
            else:
                item.future.set_exception(content)
                return

    def _start(self, slot: int) -> Connection:
        """A new worker that is ready to work; some are killed while they start."""
        for _ in range(STARTS):
            pipe = self._spawn(slot)
            try:
                pipe.recv()
            except (EOFError, OSError):
                pipe.close()
                self._processes.pop(slot).join()
                continue
            return pipe
        raise RuntimeError(
            "Worker processes end before they begin; what they said is on stderr. A script that "
            'uses workers must do so under `if __name__ == "__main__":`, because each worker '
            "imports it."
        )

    def _spawn(self, slot: int) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _environment(self._one_thread), self._lock:
            if self._killed:
                raise RuntimeError("These workers were shut down.")
            process.start()
            self._processes[slot] = process
        theirs.close()  # so that the end of the worker is the end of the pipe
        return ours


_environment_lock = threading.Lock()


@contextlib.contextmanager
def _environment(one_thread: bool) -> Generator[None]:
    """Settings that a process must have before it starts: libraries read them when they load."""
    if not one_thread:
        yield
        return
    flags = f"{os.environ.get('XLA_FLAGS', '')} {XLA_ONE_THREAD}".strip()
    wanted = {**ONE_THREAD, "XLA_FLAGS": flags}
    with _environment_lock:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _work(pipe: Connection) -> None:
    """The life of a worker: call what comes down the pipe, until its end."""
    live_under_parent()
    tasks.listen(lambda message: pipe.send((_TOLD, message)))
    with contextlib.suppress(EOFError, OSError):
        pipe.send(_READY)
        while True:
            call = pipe.recv_bytes()
            try:
                function, arguments, options = pickle.loads(call)
                answer = (_DONE, function(*arguments, **options))
            except Exception as error:
                answer = (_ERROR, error)
            try:
                pipe.send(answer)
            except (EOFError, OSError):
                raise
            except Exception as error:  # the answer cannot be pickled
                pipe.send((_ERROR, RuntimeError(f"{type(error).__name__}: {error}")))


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}; out of memory, perhaps, if nobody sent it"
    return f"exit code {code}"
