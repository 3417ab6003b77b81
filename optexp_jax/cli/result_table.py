"""The results of a run on the screen: what was explained, a row a unit, and a few figures."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.failures import plural
from optexp_jax.cli.progress import status_word
from optexp_jax.runs.family import RunFamily
from optexp_jax.runs.record import Counts
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run
from optexp_jax.runs.summary import LEVEL, RunSummary

LOWEST_FIRST = ("unit", "formula", "p_value")
HIGHEST_FIRST = (
    *("iou", "single_iou", "active", "precision", "recall", "f1", "cosine", "phi"),
    *("held_out_iou", "recurrence", "seconds"),
)
SORTS = (*LOWEST_FIRST, *HIGHEST_FIRST)
"""Columns that units can be sorted by, and which end comes first."""
WIDE = 115
"""Columns of a terminal on which everything has its place."""
BROKEN = {
    "one concept": "one\nconcept",
    "precision": "preci-\nsion",
    "held out": "held\nout",
    "within noise": "within\nnoise",
    "p of all": "p of\nall",
}
DISPENSABLE = ("seconds", "chance", "within noise")
LEAST_FORMULA = 20
"""Columns that formulas should have left."""


def sort_results(results: Sequence[UnitResult], column: str) -> list[UnitResult]:
    """The units in the order of a column; those that have nothing there come last."""
    rows = {result.unit: result.row() for result in results}

    def key(result: UnitResult) -> Any:
        value = rows[result.unit].get(column)
        if value is None:
            return (True, 0, result.unit)
        return (False, -value if column in HIGHEST_FIRST else value, result.unit)

    return sorted(results, key=key)


def header(run: Run) -> list[str]:
    """Where the units come from and how they were explained, as far as the run says."""
    origin, inputs, asked = _fields(run.origin), _fields(run.inputs), run.configuration
    key = _fields(origin.get("key"))
    method, null = _fields(asked["method"]), _fields(asked["null"])
    said = [
        f"{what} {_near(told[name])}"
        for what, told, name in (
            ("model", key, "model"),
            ("layer", key, "layer"),
            ("table", inputs, "table"),
            ("range", inputs, "range"),
        )
        if isinstance(told.get(name), str) and told[name]
    ]
    how = [str(method.get("class")).rpartition(":")[2]]
    if "length" in method:
        how.append(f"at most {plural(method['length'], 'concept')}")
    if null:
        how.append(f"{plural(null.get('n', 0), 'draw')} of the null model")
    others = _fields(asked["other_images"])
    for name, what in (("folds", "fold"), ("bootstrap", "resample")):
        if others.get(name):
            how.append(plural(others[name], what))
    if asked["groups"]:
        how.append(plural(len(set(asked["groups"])), "group"))
    return [", ".join(said), ", ".join(how)] if said else [", ".join(how)]


def _near(path: str) -> str:
    """A path as one would type it here; other text as it is."""
    here = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(here)


def _fields(told: object) -> Mapping[str, Any]:
    """An object of stored JSON; nothing where the run does not have one."""
    return cast(Mapping[str, Any], told) if isinstance(told, Mapping) else {}


def make_table(
    console: Console,
    results: Sequence[UnitResult],
    times: bool,
    family: RunFamily | None = None,
) -> Table:
    """One row a unit. On a narrow terminal headings are broken, and times and chance left out."""
    columns = _columns(results, times, family)
    cells = {name: [cell(result) for result in results] for name, cell in columns.items()}
    narrow = console.is_terminal and console.width < WIDE
    if narrow:
        cells = {BROKEN.get(name, name): column for name, column in cells.items()}
        for name in DISPENSABLE:
            if _left(console.width, cells) < LEAST_FORMULA:
                cells.pop(name, None)
    plain = narrow or not console.is_terminal
    table = Table(box=None if plain else rich.box.SIMPLE_HEAD, pad_edge=False)
    if narrow:
        table.padding = (0, 1, 0, 0)
    for name in cells:
        if name == "formula":
            table.add_column(name)
        else:
            table.add_column(name, justify="left" if name == "status" else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*row)
    return table


def _left(width: int, cells: Mapping[str, Sequence[str | Text]]) -> int:
    """Columns of the terminal that are left for formulas."""
    used = 0
    for name, column in cells.items():
        if name != "formula":
            lines = [*name.split("\n"), *map(str, column)]
            used += max(map(len, lines)) + 1
    return width - used


Cell = Callable[[UnitResult], str | Text]


def _columns(
    results: Sequence[UnitResult], times: bool, family: RunFamily | None
) -> dict[str, Cell]:
    """What each column says of a unit."""
    columns: dict[str, Cell] = {
        "unit": lambda result: str(result.unit),
        "formula": _formula,
        "IoU": _figure("iou", ".4f"),
        "one concept": _figure("single_iou", ".4f"),
        "active": _figure("active_share", ".4f"),
        "precision": _figure("precision", ".3f"),
        "recall": _figure("recall", ".3f"),
        "status": status_word,
    }
    rows = [result.row() for result in results]
    for name, column, form in (
        ("held out", "held_out_iou", ".4f"),
        ("recurs", "recurrence", ".0%"),
        ("within noise", "confidence_size", "d"),
        ("chance", "null_mean", ".4f"),
        ("p", "p_value", ".3g"),
    ):
        if any(row.get(column) is not None for row in rows):
            columns[name] = _figure(column, form)
    if "within noise" in columns:
        columns["within noise"] = _confidence_size
    if family is not None:
        columns["p of all"] = _family_figure(family)
    if times:
        columns["seconds"] = lambda result: f"{result.seconds:.2f}" if result.explanation else ""
    return columns


def _formula(result: UnitResult) -> Text:
    found = result.explanation
    if found is None:
        return Text(result.error or "")
    return Text("none" if found.formula is None else str(found.formula))


def _confidence_size(result: UnitResult) -> str:
    near = None if result.other_images is None else result.other_images.confidence
    return "" if near is None else f"{len(near.members)}{'' if near.complete else '+'}"


def _family_figure(family: RunFamily) -> Cell:
    def cell(result: UnitResult) -> str:
        corrected = family.units.get(result.unit)
        return "" if corrected is None else format(corrected.family_wise, ".3g")

    return cell


def _figure(column: str, form: str) -> Cell:
    def cell(result: UnitResult) -> str:
        value = result.row().get(column)
        return "" if value is None else format(value, form)

    return cell


def summary_lines(summary: RunSummary, counts: Counts) -> list[str]:
    """All units of the run in a few lines."""
    left = counts.total - counts.finished
    lines = [
        f"{plural(counts.done, 'unit')} explained, {counts.failed} failed, {left} left; "
        f"{summary.proved} of {plural(summary.explained, 'formula')} proved to be the best"
    ]
    if summary.iou is not None:
        line = f"IoU: mean {summary.iou.mean:.4f}, median {summary.iou.median:.4f}"
        one = summary.single_iou
        if one is not None:
            line += f"; with one concept: mean {one.mean:.4f}, median {one.median:.4f}"
        lines.append(line)
    if summary.active_share is not None:
        share = summary.active_share
        lines.append(f"active: mean {share.mean:.4f}, median {share.median:.4f} of all locations")
    if summary.null_mean is not None:
        chance = summary.null_mean
        lines.append(
            f"by chance: mean IoU {chance.mean:.4f}, median {chance.median:.4f}, highest "
            f"{summary.null_highest:.4f}; "
            f"{plural(summary.above_draws or 0, 'unit is', 'units are')} above every draw"
        )
    if summary.family is not None:
        family = summary.family
        lines.append(
            f"of {plural(len(family.units), 'unit')} {summary.below_level} have p at most {LEVEL:g}"
            f" by themselves, {family.above_chance()} corrected for their number ({family.how}), "
            f"{family.discoveries()} by false discovery rate"
        )
    return lines


def holds_lines(summary: RunSummary) -> list[str]:
    """What other images say, in a sentence, and what to know about it."""
    if summary.holds is None:
        return []
    return [summary.holds, f"Note: {'; '.join(summary.notes)}."]
