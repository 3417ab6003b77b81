"""The runner: claims units, hands them to an executor, stores each as it comes back."""

import logging
import queue
import threading
import time
from collections import Counter
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any

from optexp_jax.runs import task as tasks
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.inline import Inline
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.sources import AbstractOpener, SourceIdentity
from optexp_jax.runs.store import LEASE, RunStore
from optexp_jax.runs.task import Task, run_task
from optexp_jax.runs.workers import LocalWorkers

log = logging.getLogger(__name__)

MOST_DEATHS = 3
"""A unit that is in the hands of so many workers when they die is taken to be the cause."""
POLL = 0.5
"""Seconds between looks at what other processes left behind."""


class Runner:
    """One process's part in a run. `run` returns when every unit of the run is stored."""

    def __init__(
        self,
        store: RunStore,
        opener: AbstractOpener,
        asked: Configuration,
        *,
        executor: Executor,
        in_flight: int = 1,
        chunk: int = 1,
        observer: Observer | None = None,
    ):
        self._store = store
        self._opener = opener
        self._asked = asked
        self._executor = executor
        self._in_flight = in_flight
        self._chunk = chunk
        self._observer = Observer() if observer is None else observer
        self._tasks: dict[Future[Any], set[int]] = {}
        """Units of each task that are not stored yet."""
        self._events: queue.SimpleQueue[Future[Any] | tasks.Message] = queue.SimpleQueue()
        self._deaths: Counter[int] = Counter()

    def run(self) -> None:
        """Work until nothing is left; however it ends, no claim is left behind."""
        self._store.begin_session()
        self._observer.begin(self._store.counts())
        heartbeat = Heartbeat(self._store)
        heartbeat.start()
        try:
            if isinstance(self._executor, Inline):
                tasks.listen(self._hear)  # in this thread, while it works
            elif isinstance(self._executor, LocalWorkers):
                self._executor.listener = self._events.put
            self._loop()
        finally:
            tasks.listen(None)
            heartbeat.stop()
            self._store.release()
            self._observer.end(self._store.counts())

    def _loop(self) -> None:
        told = False
        while True:
            self._fill()
            if self._tasks:
                told = False
                self._next_event()
                continue
            counts = self._store.counts()
            if counts.finished == counts.total:
                return
            if not told:
                told = True
                log.info("waiting for units of other processes", extra={"claimed": counts.claimed})
                self._observer.waiting(counts)
            time.sleep(POLL)

    def _fill(self) -> None:
        """Keep the executor busy, but claim no more than it needs: others may want to help."""
        while len(self._tasks) < self._in_flight:
            # Fewer at a time towards the end, so that all workers end together.
            left = self._store.counts().waiting // (2 * self._in_flight)
            units = self._store.claim(max(1, min(self._chunk, left)))
            if not units:
                return
            self._submit(tuple(units))
            if isinstance(self._executor, Inline):
                return

    def _submit(self, units: tuple[int, ...]) -> None:
        asked = self._asked
        task = Task(
            self._opener,
            asked.method,
            units,
            asked.null,
            asked.other_images,
            asked.groups,
            SourceIdentity(asked.table, asked.source),
        )
        try:
            future = self._executor.submit(run_task, task)
        except BrokenExecutor as error:
            raise RuntimeError(
                "The executor lost a worker and starts no other. What was done is stored; go on "
                "with a new executor."
            ) from error
        self._tasks[future] = set(units)
        future.add_done_callback(self._events.put)

    def _next_event(self) -> None:
        event = self._events.get()
        if isinstance(event, Future):
            self._finish(event)
        else:
            self._hear(event)

    def _hear(self, message: tasks.Message) -> None:
        match message:
            case tasks.UnitStarted(unit):
                self._observer.unit_started(unit)
            case tasks.UnitProgress():
                self._observer.unit_progress(message)
            case tasks.UnitFinished(result):
                self._commit(result)

    def _finish(self, future: Future[Any]) -> None:
        """A task has ended: store what it brings, or have its units done again."""
        left = self._tasks.pop(future)
        try:
            results: list[UnitResult] = future.result()
        except Exception as error:
            if not _is_death(error):
                tasks.forget_sources()  # those of this process may be as stale as the workers'
                raise
            self._again(left, error)
            return
        for result in results:
            if result.unit in left:
                self._commit(result)

    def _again(self, units: set[int], error: BaseException) -> None:
        """Units whose worker died, one by one: so the one that kills its worker is found."""
        for unit in sorted(units):
            self._deaths[unit] += 1
            if self._deaths[unit] < MOST_DEATHS:
                log.warning("a worker died", extra={"unit": unit, "error": str(error)})
                self._submit((unit,))
            else:
                text = f"{error} That happened {MOST_DEATHS} times with this unit."
                self._commit(UnitResult(unit, error=f"{type(error).__name__}: {text}"))

    def _commit(self, result: UnitResult) -> None:
        for units in self._tasks.values():
            units.discard(result.unit)
        if not self._store.commit(result):
            return  # it was told of before, or another process was first
        if result.error is not None:
            log.warning("unit failed", extra={"unit": result.unit, "error": result.error})
        log.info("unit done", extra={"unit": result.unit, "seconds": result.seconds})
        self._observer.unit_finished(result, self._store.counts())


def _is_death(error: BaseException) -> bool:
    """Whether a worker died, in any executor's words; Dask's come without importing it."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    by_name = bool(kinds & {"KilledWorker", "CommClosedError"})
    return by_name or isinstance(error, BrokenExecutor | CancelledError)


class Heartbeat:
    """Renews the claims of this process from a thread of its own."""

    def __init__(self, store: RunStore):
        self._folder = store.folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        store = RunStore.open(self._folder)  # SQLite connections belong to one thread
        try:
            while not self._stop.wait(LEASE / 4):
                try:
                    store.renew()
                except TimeoutError as error:  # the next time, perhaps
                    log.warning("claims could not be renewed", extra={"error": str(error)})
        finally:
            store.close()
