"""`optexp explain`: a whole layer, unit by unit, into a run that can be stopped and go on."""

import argparse
import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_command import interrupts
from optexp_jax.cli.inputs import LayerInputs, open_inputs
from optexp_jax.cli.logs import LogLines
from optexp_jax.cli.methods import MethodName, make_method, method_options
from optexp_jax.cli.options import Option, given_options, options_of, read_file
from optexp_jax.cli.parsing import Commands, parse_classes
from optexp_jax.cli.progress import make_display
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.runs.cluster import dask_executor
from optexp_jax.runs.devices import DeviceThreads
from optexp_jax.runs.export import as_json
from optexp_jax.runs.null import NullModel
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.run import Run, explain_layer
from optexp_jax.runs.selection import UnitChoice
from optexp_jax.runs.sources import Opener
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
    """Classes of yours that --run alone may use again, module:Class, with commas between."""


@dataclass(frozen=True)
class NamedMethod:
    """Which method, by its short name."""

    method: MethodName = "optimal"
    """How to explain; beam, mmesh and vanilla are beam searches with three guides."""


NULL_NAMES = {"n": "null", "shift": "null_shift", "seed": "null_seed"}
GROUPS: Mapping[str, list[Option]] = {
    "the layer": options_of(LayerInputs),
    "the units": options_of(UnitChoice),
    "the method": [*options_of(NamedMethod), *method_options()],
    "is it above chance?": options_of(NullModel, rename=NULL_NAMES),
    "doing the work": options_of(Execution),
}


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="explain the units of a layer",
        description="Explain units of a layer, each stored in the run's folder as soon as it is "
        "done. A run that was stopped goes on with the same command.",
        epilog="example: optexp explain --table ade.zarr --activations layer4.zarr --random 50",
    )
    for title, options in GROUPS.items():
        group = parser.add_argument_group(title)
        for option in options:
            option.add_to(group)
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--config", type=Path, metavar="FILE", help="TOML file with these options")
    shown.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    shown.add_argument("--log-json", action="store_true", help="log to stderr, one JSON a line")
    shown.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run)


@dataclass(frozen=True)
class Plan:
    """What a command line asks for."""

    source: Opener
    method: AbstractMethod
    units: tuple[int, ...]
    null: NullModel | None
    folder: Path


def _run(options: argparse.Namespace) -> None:
    given = _given(options)
    execution = Execution(**_part(given, "doing the work"))
    quiet = options.quiet or options.log_json
    with LogLines(options.log_json), _executor(execution) as workers:
        plan = _plan(given, execution)
        run = _explain(plan, execution, workers, make_display(quiet))
    counts = run.counts
    if options.json:
        print(json.dumps(as_json(run), indent=2))
    elif not options.log_json:
        failed = f", {counts.failed} failed" if counts.failed else ""
        print(f"{counts.done} units explained{failed}. Show them: optexp results {plan.folder}")
    if not counts.done:
        raise ValueError(f"No unit could be explained. The first: {run.results[0].error}")


def _explain(plan: Plan, execution: Execution, workers: "Workers", observer: Observer) -> Run:
    try:
        return explain_layer(
            plan.folder,
            plan.source,
            plan.method,
            units=plan.units,
            null=plan.null,
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
        f"stopped; {counts.finished} of {counts.total} units are stored. Go on with the same "
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


def _plan(given: Mapping[str, Any], execution: Execution) -> Plan:
    asked = {name for name in given if name not in {o.name for o in GROUPS["doing the work"]}}
    if execution.run is not None and not asked and (execution.run / FILE).exists():
        return _stored_plan(execution.run, parse_classes(execution.allow))
    named = _part(given, "the method")
    name = named.pop("method", "optimal")
    method = make_method(name, named)
    null = _null_model(_part(given, "is it above chance?"))
    choice = UnitChoice(**_part(given, "the units"))
    inputs = LayerInputs(**_part(given, "the layer"))
    folder = RUNS / f"{inputs.name}-{name}" if execution.run is None else execution.run
    source = open_inputs(inputs, folder)
    return Plan(source, method, choice.choose(open_source(source).n_units), null, folder)


def _stored_plan(folder: Path, allow: Sequence[type[Any]]) -> Plan:
    """The plan that a run began with."""
    run = Run(folder, allow=allow)
    stored = run.asked
    return Plan(run.opener, stored.method, stored.units, stored.null, folder)


def _null_model(given: dict[str, Any]) -> NullModel | None:
    if "null" not in given:
        if given:
            raise ValueError("--null-shift and --null-seed go with --null N.")
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
def _executor(execution: Execution) -> Generator[Workers]:
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
