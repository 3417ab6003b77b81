"""The work of `optexp explain`: from options to a run, and who does it."""

import argparse
import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.cli.allowed import parse_allowed
from optexp_jax.cli.explain_options import (
    AUTO,
    CHANCE,
    FOLDS,
    GROUPS,
    LAYER,
    LONGEST,
    NOISE,
    NULL_NAMES,
    OPTION_NAMES,
    OTHERS,
    RESAMPLES,
    THE_BOUNDS,
    THE_METHOD,
    UNITS,
    WORK,
)
from optexp_jax.cli.failures import in_option_spelling, plural
from optexp_jax.cli.group_labels import read_groups
from optexp_jax.cli.inputs import LayerInputs, open_inputs
from optexp_jax.cli.interrupts import interrupts
from optexp_jax.cli.logs import LogLines
from optexp_jax.cli.methods import make_method
from optexp_jax.cli.options import given_options, read_file
from optexp_jax.cli.progress import make_display
from optexp_jax.cli.run_folder import open_run
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.runs.cluster import dask_executor
from optexp_jax.runs.devices import DeviceThreads
from optexp_jax.runs.export import as_json
from optexp_jax.runs.null import NullModel
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.other_images import OtherImages
from optexp_jax.runs.run import Run, explain_layer
from optexp_jax.runs.selection import UnitChoice
from optexp_jax.runs.sources import AbstractOpener
from optexp_jax.runs.store import FILE
from optexp_jax.runs.task import open_source
from optexp_jax.runs.workers import LocalWorkers

RUNS = Path("runs")


@dataclass(frozen=True)
class Execution:
    """How the work is done. None of it changes the results."""

    run: Path | None = None
    """Folder of the run. The same command goes on with it; so does --run alone."""
    workers: int | None = None
    """Worker processes on this machine, with one thread each if there are several."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers do the work, such as tcp://10.0.0.1:8786."""
    devices: bool = False
    """Spread the units over all devices of this machine, one thread each."""
    retry_failed: bool = False
    """Do units again that failed before."""
    allow: str | None = None
    """What of yours --run alone may use again: module:Class, with commas between."""


@dataclass(frozen=True)
class Plan:
    """What a command line asks for."""

    source: AbstractOpener
    method: AbstractMethod
    units: tuple[int, ...]
    null: NullModel | None
    other_images: OtherImages | None
    groups: tuple[str, ...] | None
    folder: Path


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    given = _given(options)
    execution = Execution(**_part(given, WORK))
    quiet = options.quiet or options.log_json
    with LogLines(options.log_json), open_workers(execution) as workers:
        plan = _plan(given, execution, quiet)
        done = _explain(plan, execution, workers, make_display(quiet))
    counts = done.counts
    if options.json:
        print(json.dumps(as_json(done), indent=2))
    elif not options.log_json:
        failed = f", {counts.failed} failed" if counts.failed else ""
        print(
            f"{plural(counts.done, 'unit')} explained{failed}. "
            f"Show them: optexp results {plan.folder}"
        )
    if not counts.done:
        first = in_option_spelling(done.results[0].error or "", OPTION_NAMES)
        raise ValueError(f"No unit could be explained. The first: {first}")


def _explain(plan: Plan, execution: Execution, workers: "Workers", observer: Observer) -> Run:
    try:
        return explain_layer(
            plan.folder,
            plan.source,
            plan.method,
            units=plan.units,
            null=plan.null,
            other_images=plan.other_images,
            groups=plan.groups,
            executor=workers.executor,
            in_flight=workers.in_flight,
            retry_failed=execution.retry_failed,
            observer=observer,
        )
    except KeyboardInterrupt:
        # The rest of the way out may take a moment.
        interrupts.hear()
        workers.stop()
        raise KeyboardInterrupt(_how_to_go_on(plan.folder)) from None


def _how_to_go_on(folder: Path) -> str:
    if not (folder / FILE).exists():
        return "stopped before anything was stored"
    counts = Run(folder).counts
    return (
        f"stopped; {counts.finished} of {plural(counts.total, 'unit')} stored. Go on with the same "
        f"command, or: optexp explain --run {folder}"
    )


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the file, and over them those of the command line."""
    every = [option for group in GROUPS.values() for option in group]
    given = {} if options.config is None else read_file(options.config, every)
    return given | given_options(options)


def _part(given: Mapping[str, Any], group: str) -> dict[str, Any]:
    names = [option.name for option in GROUPS[group]]
    return {name: given[name] for name in names if name in given}


def _plan(given: Mapping[str, Any], execution: Execution, quiet: bool) -> Plan:
    asked = {name for name in given if name not in {option.name for option in GROUPS[WORK]}}
    if execution.run is not None and not asked:
        return _stored_plan(execution.run, parse_allowed(execution.allow))
    try:
        return _new_plan(given, execution, quiet)
    except ValueError as error:
        spelled = in_option_spelling(str(error), OPTION_NAMES)
        raise ValueError(spelled).with_traceback(error.__traceback__) from None


def _new_plan(given: Mapping[str, Any], execution: Execution, quiet: bool) -> Plan:
    named = _part(given, THE_METHOD) | _part(given, THE_BOUNDS)
    name = named.pop("method", "optimal")
    other_images, asked_groups = _other_images(_part(given, OTHERS), named)
    method = make_method(name, named)
    null = _null_model(_part(given, CHANCE))
    if asked_groups is not None and other_images is None and null is None:
        raise ValueError("--groups goes with --folds, --bootstrap or --null.")
    choice = UnitChoice(**_part(given, UNITS))
    inputs = LayerInputs(**_part(given, LAYER))
    folder = RUNS / f"{inputs.name}-{name}" if execution.run is None else execution.run
    source = open_inputs(inputs, folder, quiet)
    groups = None if asked_groups is None else read_groups(asked_groups, Path(source.table))
    units = choice.choose(open_source(source).n_units)
    return Plan(source, method, units, null, other_images, groups, folder)


def _other_images(
    given: dict[str, Any], method: dict[str, Any]
) -> tuple[OtherImages | None, str | None]:
    """What is asked of other images, and by which groups; words of the method's options go here."""
    groups = given.pop("groups", None)
    longest = given.pop("max_length", None)
    if "resample_seed" in given:
        given["seed"] = given.pop("resample_seed")
    if method.get("length") == AUTO:
        method["length"] = LONGEST if longest is None else longest
        given = {"folds": FOLDS, **given, "length": AUTO}
    elif longest is not None:
        raise ValueError("--max-length goes with --length auto; else --length says how many.")
    if method.get("within") == NOISE:
        del method["within"]
        given = {"bootstrap": RESAMPLES, **given, "within": NOISE}
    if given.keys() == {"seed"}:
        raise ValueError("--resample-seed goes with --folds or --bootstrap.")
    return (OtherImages(**given) if given else None), groups


def _stored_plan(folder: Path, allow: Sequence[type[Any]]) -> Plan:
    """The plan that a run began with."""
    run = open_run(folder, allow)
    stored = run.asked
    return Plan(
        run.opener,
        stored.method,
        stored.units,
        stored.null,
        stored.other_images,
        stored.groups,
        folder,
    )


def _null_model(given: dict[str, Any]) -> NullModel | None:
    if "null" not in given:
        if given:
            raise ValueError("--null-shift, --null-stop and --null-seed go with --null N.")
        return None
    fields = {option: field for field, option in NULL_NAMES.items()}
    return NullModel(**{fields[option]: value for option, value in given.items()})


@dataclass(frozen=True)
class Workers:
    """Who does the work, and how to stop them at once."""

    executor: Executor | None
    in_flight: int | None = None

    def stop(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def open_workers(execution: Execution) -> Generator[Workers]:
    """Those that an execution asks for, until the block ends."""
    ways = (execution.workers is not None, execution.scheduler is not None, execution.devices)
    if sum(ways) > 1:
        raise ValueError("Choose one of --workers, --scheduler and --devices, not several.")
    if execution.scheduler is not None:
        with dask_executor(execution.scheduler) as cluster:
            yield Workers(cluster.executor, cluster.in_flight)
    elif execution.workers is not None:
        workers = LocalWorkers(execution.workers)
        try:
            yield Workers(workers)
        finally:
            workers.shutdown(cancel_futures=True)
    elif execution.devices:
        with DeviceThreads() as threads:
            yield Workers(threads)
    else:
        yield Workers(None)
