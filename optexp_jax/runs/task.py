"""What a worker does: open the source once, then explain the units it is given."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import explain
from optexp_jax.internal.kernel_choice import Kernels, chosen_kernels, kernels
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.runs.null import NullModel, compare_with_null
from optexp_jax.runs.other_images import (
    OtherImages,
    choose_unit_lengths,
    explain_on_other_images,
    method_of_length,
)
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.sources import AbstractOpener, HasRanges, SourceIdentity, UnitSource
from optexp_jax.runs.together import ExplainedTogether
from optexp_jax.search.stopping import Progress
from optexp_jax.stores.store import DataFileError
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.length import ChosenLength

SOURCE_ERRORS = (DataFileError, OSError)
"""What tells of the data and not of a unit. It stops the run, and its units wait for the mend."""

REPORT_EVERY = 0.2
"""Seconds between reports on one search."""


@dataclass(frozen=True)
class UnitStarted:
    """A worker begins with a unit."""

    unit: int


@dataclass(frozen=True)
class UnitProgress:
    """Where the search for a unit stands."""

    unit: int
    formula: str | None
    iou: float
    upper_bound: float
    gap: float


@dataclass(frozen=True)
class UnitFinished:
    """A unit is done."""

    result: UnitResult


Message = UnitStarted | UnitProgress | UnitFinished
Tell = Callable[[Message], None]


@dataclass(frozen=True)
class Task:
    """Some units to explain with one method."""

    opener: AbstractOpener
    method: AbstractMethod
    units: tuple[int, ...]
    null: NullModel | None = None
    other_images: OtherImages | None = None
    groups: tuple[str, ...] | None = None
    """Which samples belong together, one label a sample."""
    identity: SourceIdentity | None = None
    """Of the source that the run began with."""
    kernels: Kernels = field(default_factory=chosen_kernels)
    """What was chosen where the task was made; the worker has no part in that scope."""


_listener: ContextVar[Tell | None] = ContextVar("listener", default=None)
"""Whom this thread tells about its work; None where nobody can listen."""


def listen(tell: Tell | None) -> None:
    """From now on, tell about every step of this thread's tasks."""
    _listener.set(tell)


def run_task(task: Task) -> list[UnitResult]:
    """Explain the units of a task, telling of each; what fails is a result too.

    With a null model or other images all units are done when the last draw or resample is, else
    one after another. An error of the data is raised: no unit is to blame for it.
    """
    try:
        with kernels(task.kernels):
            return _run_task(task)
    except SOURCE_ERRORS:
        forget_sources()
        raise


def _run_task(task: Task) -> list[UnitResult]:
    source = open_source(task.opener)
    if task.identity is not None:
        task.identity.check(source)
    start = time.perf_counter()
    counts = _count_all(source, task.units)
    counting = (time.perf_counter() - start) / len(task.units)
    groups = Groups.of(task.groups, source.table.n_samples)
    together = task.null is not None or task.other_images is not None
    chosen = _choose_lengths(task, source, groups, counts)
    results: list[UnitResult] = []
    reports = _Reports()
    firing = [
        counted
        for unit, counted in zip(task.units, counts, strict=True)
        if counted is not None and counted.size and unit not in chosen
    ]
    grouped = ExplainedTogether(source.table, reports.of(task.method), firing)
    for unit, counted in zip(task.units, counts, strict=True):
        _tell(UnitStarted(unit))
        reports.begin(unit)
        if counted is None or not counted.size or unit in chosen:
            method = reports.of(method_of_length(task.method, chosen.get(unit)))
            results.append(_run_alone(method, source, unit, counted))
        else:
            results.append(_run_next(grouped, unit, counting))
        if not together:
            _tell(UnitFinished(results[-1]))
    if not together:
        return results
    if task.other_images is not None:
        results = _with_other_images(task, source, groups, chosen, results)
    if task.null is not None:
        results = _with_null(task.null, source, task.method, groups, results)
    for result in results:
        _tell(UnitFinished(result))
    return results


def _choose_lengths(
    task: Task, source: UnitSource, groups: Groups, counts: Sequence[NeuronCounts | None]
) -> Mapping[int, ChosenLength]:
    """Of units that can be counted and are active; the others fail on their own."""
    asked = task.other_images
    if asked is None or asked.length is None:
        return {}
    counted = dict(zip(task.units, counts, strict=True))
    active = {unit: each for unit, each in counted.items() if each is not None and each.size}
    return choose_unit_lengths(asked, groups, source.table, active, task.method)


def _with_other_images(
    task: Task,
    source: UnitSource,
    groups: Groups,
    chosen: Mapping[int, ChosenLength],
    results: list[UnitResult],
) -> list[UnitResult]:
    """The results with what folds and resamples of the images say of them, if they can."""
    assert task.other_images is not None
    found = {each.unit: each.explanation for each in results if each.explanation is not None}
    start = time.perf_counter()
    try:
        counts = dict(zip(found, source.counts(list(found)), strict=True)) if found else {}
        told = explain_on_other_images(
            task.other_images, groups, source.table, counts, found, task.method, chosen
        )
    except SOURCE_ERRORS:
        raise
    except Exception as error:
        return _all_failed(results, error)
    return _with_more(results, "other_images", told, time.perf_counter() - start)


def _with_more(
    results: Sequence[UnitResult], field: str, told: Mapping[int, object], seconds: float
) -> list[UnitResult]:
    """The results with one more field of those that are told of, which share the seconds."""
    share = seconds / max(len(told), 1)
    return [
        dataclasses.replace(each, seconds=each.seconds + share, **{field: told[each.unit]})
        if each.unit in told
        else each
        for each in results
    ]


def _all_failed(results: Sequence[UnitResult], error: Exception) -> list[UnitResult]:
    text = _text(error)
    return [
        UnitResult(each.unit, error=each.error or text, seconds=each.seconds) for each in results
    ]


_place: ContextVar[str] = ContextVar("place", default="")
"""Where this thread's arrays live, if it has a device of its own."""


def settle(place: str) -> None:
    """From now on this thread opens sources for itself: its arrays live elsewhere."""
    _place.set(place)


def open_source(opener: AbstractOpener) -> UnitSource:
    """The source, opened once a process, and once for each device that has a thread."""
    return _open_at(opener, _place.get())


def forget_sources() -> None:
    """Open sources anew when they are next asked for: their files may be mended by then."""
    _open_at.cache_clear()


@functools.lru_cache(maxsize=16)
def _open_at(opener: AbstractOpener, place: str) -> UnitSource:
    return opener.open()


def _count_all(source: UnitSource, units: tuple[int, ...]) -> list[NeuronCounts | None]:
    """Counts of all units in one pass; where that fails, each will be counted alone."""
    try:
        return list(source.counts(units))
    except SOURCE_ERRORS:
        raise
    except Exception:
        return [None] * len(units)


def _run_next(together: ExplainedTogether, unit: int, counting: float) -> UnitResult:
    """Explain a unit with others of its task."""
    start = time.perf_counter() - counting
    try:
        explained = together.next()
    except SOURCE_ERRORS:
        raise
    except Exception as error:  # whatever it is, the other units of the layer can be done
        return UnitResult(unit, error=_text(error), seconds=time.perf_counter() - start)
    found = dataclasses.replace(explained.found, state=None)
    return UnitResult(unit, found, seconds=counting + explained.seconds)


def _run_alone(
    method: AbstractMethod, source: UnitSource, unit: int, counts: NeuronCounts | None
) -> UnitResult:
    """Explain a unit that could not be counted with others, or say why there is nothing to."""
    start = time.perf_counter()
    try:
        if counts is None:
            (counts,) = source.counts([unit])
        if counts.size == 0 and isinstance(source, HasRanges):
            reason = source.range_of(unit).skipped
            if reason is not None:
                raise ValueError(f"The unit is never active: {reason}")
        found = explain(source.table, counts, method)
    except SOURCE_ERRORS:
        raise
    except Exception as error:  # whatever it is, the other units of the layer can be done
        return UnitResult(unit, error=_text(error), seconds=time.perf_counter() - start)
    found = dataclasses.replace(found, state=None)
    return UnitResult(unit, found, seconds=time.perf_counter() - start)


def _with_null(
    null: NullModel,
    source: UnitSource,
    method: AbstractMethod,
    groups: Groups,
    results: list[UnitResult],
) -> list[UnitResult]:
    """The results with what the null model says of them, if it can."""
    found = {each.unit: each.explanation for each in results if each.explanation is not None}
    start = time.perf_counter()
    try:
        compared = compare_with_null(null, source, found, method, groups) if found else {}
    except SOURCE_ERRORS:
        raise
    except Exception as error:
        return _all_failed(results, error)
    return _with_more(results, "null", compared, time.perf_counter() - start)


def _text(error: Exception) -> str:
    text = str(error) or ("out of memory" if isinstance(error, MemoryError) else "no reason given")
    return f"{type(error).__name__}: {text}"


class _Reports:
    """Tells of the search for one unit after another, as it goes."""

    def __init__(self) -> None:
        self._unit, self._last = -1, 0.0

    def begin(self, unit: int) -> None:
        """From now on it is this unit's search."""
        self._unit, self._last = unit, time.perf_counter()

    def of(self, method: AbstractMethod) -> AbstractMethod:
        """The method, telling of its searches where somebody listens."""
        return method if _listener.get() is None else method.with_callback(self._tell)

    def _tell(self, progress: Progress) -> None:
        if time.perf_counter() - self._last < REPORT_EVERY:
            return
        self._last = time.perf_counter()
        best = progress.incumbent
        _tell(
            UnitProgress(
                self._unit,
                None if best is None else str(best.formula),
                progress.value,
                progress.upper_bound,
                float(progress.gap),
            )
        )


def _tell(message: Message) -> None:
    tell = _listener.get()
    if tell is not None:
        tell(message)
