"""From a request to a report: the layer, a run for each row, and the tables made of them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.comparison.comparing import compare_with_first
from optexp_jax.reproduction.category_table import category_records, iou_table, share_table
from optexp_jax.reproduction.figures import draw_differing
from optexp_jax.reproduction.layer import Say, TableLayer, prepare_layer
from optexp_jax.reproduction.machine_facts import MachineFacts
from optexp_jax.reproduction.measured import MeasuredWork, measure_run
from optexp_jax.reproduction.preset import BUDGET, TablePreset, find_preset
from optexp_jax.reproduction.published import (
    published_categories,
    published_clusters,
    published_work,
)
from optexp_jax.reproduction.report import TablesReport
from optexp_jax.reproduction.request import TableRequest
from optexp_jax.reproduction.rows import (
    AlgorithmRow,
    comparison_rows,
    hyperparameter_rows,
    runtime_rows,
)
from optexp_jax.reproduction.work_table import (
    minutes_records,
    minutes_table,
    work_records,
    work_table,
)
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.run import Run, explain_layer

FOLDER = Path("runs") / "tables"
COMPARING = ("categories", "clusters", "figures")
"""Presets that compare a beam with the optimum."""
PUBLISHED_ON = "one NVIDIA RTX 3090"
COMPILATION = 20.0
"""Seconds that the first unit may take above its budget, for programs to be compiled."""
Watch = Callable[[AlgorithmRow], Observer]
"""Who is told of the units of a row."""


@dataclass(frozen=True)
class TableRuns:
    """The runs that a table is made of, in the order of its rows."""

    preset: TablePreset
    layer: TableLayer
    home: Path
    """The folder of the runs."""
    budget: float
    rows: tuple[AlgorithmRow, ...]
    runs: tuple[Run, ...]
    first: tuple[Run, ...]
    """Of the first unit alone, which had everything compiled."""
    machine: MachineFacts

    def measured(self) -> tuple[MeasuredWork, ...]:
        """The work of each."""
        return tuple(
            measure_run(row, run, first, self.budget)
            for row, run, first in zip(self.rows, self.runs, self.first, strict=True)
        )


def make_tables(
    request: TableRequest,
    folder: str | Path = FOLDER,
    *,
    executor: Executor | None = None,
    in_flight: int | None = None,
    watch: Watch | None = None,
    say: Say | None = None,
) -> TablesReport:
    """The tables of a request. What was done before, in `folder`, is not done again."""
    made = run_rows(request, folder, executor=executor, in_flight=in_flight, watch=watch, say=say)
    # This raises an error where results contradict one another: no figure could be trusted.
    compared = compare_with_first(made.runs)
    preset, layer, works = made.preset, made.layer, made.measured()
    model, title = preset.model, f"{preset.table}. {preset.title}, {preset.model}"
    shown = layer.is_stand_in or layer.has_published_data
    figures: list[Path] = []
    if preset.name in COMPARING:
        if preset.name == "figures":
            figures = draw_differing(compared[0], made.runs[0], made.home / "figures")
        find = published_clusters if preset.name == "clusters" else published_categories
        told = find(model) if shown else None
        tables = (
            share_table(title, model, compared[0], told),
            iou_table(f"{title}: mean IoUs of units that differ", model, compared[0], told),
        )
        records = category_records(model, compared[0], told)
    elif preset.name == "hyperparameters":
        shown = shown and model == "resnet18"
        tables = (minutes_table(title, works, shown),)
        records = minutes_records(works, shown)
    else:
        paper = [
            published_work(preset.name, row.published, model) if shown else None
            for row in made.rows
        ]
        tables = (work_table(title, works, paper),)
        records = work_records(works, paper)
    return TablesReport(
        request,
        model,
        layer.description,
        layer.is_stand_in,
        tuple(_notes(made, works, shown)),
        tables,
        tuple(records),
        made.machine,
        tuple(figures),
    )


def run_rows(
    request: TableRequest,
    folder: str | Path = FOLDER,
    *,
    executor: Executor | None = None,
    in_flight: int | None = None,
    watch: Watch | None = None,
    say: Say | None = None,
) -> TableRuns:
    """The runs of a request, each as far as it was before and then to its end."""
    say = say or (lambda _: None)
    preset = find_preset(request)
    budget = request.budget or (
        BUDGET if request.data is not None else preset.stand_in(request.small).budget
    )
    layer = prepare_layer(preset, request, Path(folder), say)
    home = Path(folder) / _folder_name(preset, layer, budget)
    machine = MachineFacts.kept_in(home)

    def run(name: str, row: AlgorithmRow, units: tuple[int, ...], said: str) -> Run:
        say(said)
        return explain_layer(
            home / name,
            layer.source,
            row.method,
            units=units,
            executor=executor,
            in_flight=in_flight,
            observer=None if watch is None else watch(row),
        )

    rows = _rows(preset, budget)
    first: list[Run] = []
    runs: list[Run] = []
    patients = _rows(preset, budget + COMPILATION)
    for number, (row, patient) in enumerate(zip(rows, patients, strict=True), 1):
        where = f"row {number} of {len(rows)}, {row.title}"
        compiling = f"{where}: the first unit, to compile"
        first.append(run(f"{row.key}-first-unit", patient, layer.units[:1], compiling))
        n_units = f"{len(layer.units)} unit{'' if len(layer.units) == 1 else 's'}"
        runs.append(run(row.key, row, layer.units, f"{where}: {n_units}"))
    return TableRuns(preset, layer, home, budget, rows, tuple(runs), tuple(first), machine)


def _rows(preset: TablePreset, budget: float) -> tuple[AlgorithmRow, ...]:
    if preset.name in COMPARING:
        return comparison_rows(budget)
    return hyperparameter_rows() if preset.name == "hyperparameters" else runtime_rows(budget)


def _folder_name(preset: TablePreset, layer: TableLayer, budget: float) -> str:
    """Runs of other data, units or budgets are other runs."""
    data = Path(layer.source.table).parent.name
    return f"{preset.name}-{preset.model}-{data}-{len(layer.units)}-units-{budget:g}-s"


def _notes(made: TableRuns, works: Sequence[MeasuredWork], shown: bool) -> Iterator[str]:
    yield f"Published: {made.preset.dataset}; {PUBLISHED_ON}."
    if not shown:
        yield (
            "Published figures are left out: this dataset, model or number of units is not theirs."
        )
    yield (
        f"Range {made.preset.range}; budget {made.budget:g} s a unit, `>` where it was not enough; "
        "± is the standard deviation of the population."
    )
    if any(work.timed_with_compilation for work in works):
        yield "* every unit had programs compiled: its seconds hold that too."
    failed = sum(work.n_failed for work in works)
    if failed:
        yield f"{failed} results are missing: `optexp results` on the runs says why."
    yield f"Runs: {made.home}."
