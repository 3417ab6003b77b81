"""A run: a folder with the results of many units, which grows until all are done."""

from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.runs.columns import data_frame
from optexp_jax.runs.configuration import Configuration, check_units
from optexp_jax.runs.family import family_rows
from optexp_jax.runs.inline import Inline
from optexp_jax.runs.null import NullModel
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.opening import make_opener
from optexp_jax.runs.other_images import OtherImages
from optexp_jax.runs.record import Counts
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.runner import Runner
from optexp_jax.runs.settings import classes_in, describe, rebuild
from optexp_jax.runs.sources import AbstractOpener, UnitSource
from optexp_jax.runs.store import RunStore
from optexp_jax.runs.task import open_source
from optexp_jax.runs.workers import LocalWorkers
from optexp_jax.validation.groups import Groups

if TYPE_CHECKING:
    import pandas

CHUNK = 16
"""Units that a worker counts at once, in one pass over the table's map."""


def explain_layer(
    path: str | Path,
    source: UnitSource | AbstractOpener,
    method: AbstractMethod | None = None,
    *,
    units: Iterable[int] | None = None,
    null: NullModel | None = None,
    other_images: OtherImages | None = None,
    groups: "Sequence[Hashable] | Groups | None" = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    retry_failed: bool = False,
    observer: Observer | None = None,
) -> "Run":
    """Explain units of a layer into the run at `path`; each is stored as soon as it is done.

    A run that was stopped, however it ended, goes on where it was; one that was begun with another
    configuration is refused. `executor` is any `concurrent.futures.Executor`, such as
    `LocalWorkers(2)`; without one, units are done here, one after another. `in_flight` tasks are
    given to it at a time. Units that failed are kept as they are unless `retry_failed`. `groups`
    has one label a sample, of videos or patients say: folds, resamples and the null model keep
    samples of one group together.
    """
    method = Optimal() if method is None else method
    if null is not None and getattr(method, "objective", "iou") in ("cosine", "phi"):
        raise ValueError(
            "The null model compares IoUs. Leave it out, or use objective='iou' or 'f1'."
        )
    opened = open_source(source) if isinstance(source, AbstractOpener) else source
    grouped = Groups.of(groups, opened.table.n_samples)
    if groups is not None:
        grouped = Groups.of(grouped.labels, grouped.n_samples)  # as they are read again: as text
    if other_images is not None:
        other_images.check(method, grouped)
    configuration = Configuration(
        method=method,
        units=check_units(range(opened.n_units) if units is None else list(units), opened.n_units),
        table=opened.table.fingerprint,
        source=opened.fingerprint,
        null=null,
        other_images=other_images,
        groups=None if groups is None else grouped.labels,
    )
    # Units in memory: nothing could open them again.
    inputs = describe(source) if isinstance(source, AbstractOpener) else None
    origin = source.origin() if isinstance(source, AbstractOpener) else None
    store = RunStore.create(path, configuration, inputs, origin)
    try:
        here = executor is None or isinstance(executor, Inline)
        opener = make_opener(source, store.folder / "shared", in_memory=here)
        if retry_failed:
            store.retry_failed()
        Runner(
            store,
            opener,
            configuration,
            executor=Inline() if executor is None else executor,
            in_flight=_capacity(executor) if in_flight is None else in_flight,
            chunk=CHUNK if null or other_images or _tells_at_once(executor) else 1,
            observer=observer,
        ).run()
    finally:
        store.close()
    own = [method, source] if isinstance(source, AbstractOpener) else [method]
    return Run(path, allow=classes_in(own))


def _tells_at_once(executor: Executor | None) -> bool:
    """Whether each unit of a task is stored when it is done, not with the last of the task."""
    return executor is None or isinstance(executor, Inline | LocalWorkers)


def _capacity(executor: Executor | None) -> int:
    """Tasks that keep an executor busy: one more than it has workers, where that is known."""
    if executor is None or isinstance(executor, Inline):
        return 1
    if isinstance(executor, LocalWorkers):
        return executor.n + 1
    return int(getattr(executor, "_max_workers", 3)) + 1


class Run:
    """The results of a run, as far as it is. Reading never disturbs processes that work on it."""

    def __init__(self, path: str | Path, *, allow: Iterable[type[Any]] = ()):
        """`allow` names classes of yours that the run may make again: bounds, guides, openers."""
        self.path = Path(path)
        self.allow = tuple(allow)
        RunStore.open(self.path).close()

    @property
    def configuration(self) -> dict[str, Any]:
        """What the run was asked to do, as JSON: method, units, checksums, null model."""
        return self._read(lambda store: store.configuration)

    @property
    def inputs(self) -> Any:
        """How the source was opened, as JSON; None for units that were only in memory."""
        return self._read(lambda store: store.inputs)

    @property
    def origin(self) -> Any:
        """Where the units come from, as JSON: model, checksum of its weights, layer, dataset."""
        return self._read(lambda store: store.origin)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The processes that worked on the run, with the versions of what they used."""
        return self._read(lambda store: store.sessions())

    @property
    def counts(self) -> Counts:
        """How many units wait, are worked on, are done and have failed."""
        return self._read(lambda store: store.checked_counts())

    @property
    def method(self) -> AbstractMethod:
        """The method, made again."""
        return self.asked.method

    @property
    def asked(self) -> Configuration:
        """The configuration, made again."""
        return Configuration.from_json(self.configuration, self.allow)

    @property
    def results(self) -> list[UnitResult]:
        """Units that are done or have failed, in ascending order."""
        return self._read(lambda store: list(store.results()))

    def open_source(self, *, anew: bool = False) -> UnitSource:
        """The units of the run, opened again from where they were; refused if they changed.

        Within a process they are opened once, unless they are wanted `anew`, with nothing that was
        read before.
        """
        return self.check_source(self.opener.open() if anew else open_source(self.opener))

    @property
    def opener(self) -> AbstractOpener:
        """How the source was opened, made again."""
        inputs = self.inputs
        if inputs is None:
            raise ValueError(
                f"{self.path} was made of units in memory, which cannot be opened again. Pass the "
                "source yourself, in Python."
            )
        opener = rebuild(inputs, self.allow)
        if not isinstance(opener, AbstractOpener):
            raise ValueError(f"{self.path} does not say how to open its units.")
        return opener

    def check_source(self, source: UnitSource) -> UnitSource:
        """The source, if its checksums are those of the run."""
        for what, found in (("table", source.table.fingerprint), ("source", source.fingerprint)):
            if self.configuration[what] != found:
                raise ValueError(
                    f"The {what} is not the one that {self.path} was made with: its checksum is "
                    f"{found}, that of the run is {self.configuration[what]}."
                )
        return source

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a finished unit."""
        results = self.results
        family = family_rows(results)
        return [result.row() | family.get(result.unit, {}) for result in results]

    def to_pandas(self, *, times: bool = True) -> "pandas.DataFrame":
        """The results as a data frame, one row a finished unit.

        Without `times`, it has only columns in which equal runs are equal.
        """
        return data_frame(self.rows(), times)

    def __repr__(self) -> str:
        n = self.counts
        return f"Run({str(self.path)!r}: {n.done} done, {n.failed} failed, of {n.total})"

    def _read(self, ask: Any) -> Any:
        store = RunStore.open(self.path)
        try:
            return ask(store)
        finally:
            store.close()
