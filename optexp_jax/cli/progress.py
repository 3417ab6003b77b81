"""How a run is shown: live on a terminal, as plain lines elsewhere, or not at all."""

import sys
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from optexp_jax.cli.explain_options import OPTION_NAMES
from optexp_jax.cli.failures import in_option_spelling, plural
from optexp_jax.cli.terminal import make_console
from optexp_jax.counts.metrics import Objective
from optexp_jax.explanation import Status
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.record import Counts
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.task import UnitProgress

MOST_UNITS = 8
"""Units in progress that are shown at once."""


def make_display(quiet: bool) -> Observer:
    """The display that fits where stderr goes."""
    if quiet:
        return Observer()
    console = make_console(stderr=True)
    return LiveDisplay(console) if console.is_terminal else PlainLines()


class PlainLines(Observer):
    """One line a unit on stderr, for files and pipes."""

    def begin(self, counts: Counts) -> None:
        if counts.finished:
            _say(f"going on: {counts.finished} of {plural(counts.total, 'unit')} done already")

    def unit_finished(self, result: UnitResult, counts: Counts) -> None:
        _say(f"[{counts.finished}/{counts.total}] unit {result.unit}: {summary(result)}")

    def waiting(self, counts: Counts) -> None:
        _say(f"waiting for {plural(counts.claimed, 'unit')} that other processes work on")


def summary(result: UnitResult) -> str:
    """A unit's result in one line."""
    found = result.explanation
    if found is None:
        said = in_option_spelling(" ".join((result.error or "").split()), OPTION_NAMES)
        return f"failed: {said}"
    row = result.row()
    other = "" if row.get("held_out_iou") is None else f", held out {row['held_out_iou']:.4f}"
    if row.get("recurrence") is not None:
        other += f", recurs in {row['recurrence']:.0%}"
    chance = "" if result.null is None else f", p = {result.null.p_value:.3g}"
    return f"{found}{other}{chance}, {result.seconds:.2f} s"


class LiveDisplay(Observer):
    """A bar with the rate and the time left, and the searches that run now."""

    def __init__(self, console: Console):
        self._bar = Progress(
            TextColumn("units"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("units", total=None, rate="")
        self._running: dict[int, UnitProgress | None] = {}
        self._last = ""
        self._live = Live(console=console, refresh_per_second=5, transient=True)
        self._started = time.monotonic()
        self._before = 0

    def begin(self, counts: Counts) -> None:
        self._started, self._before = time.monotonic(), counts.finished
        self._bar.update(self._task, total=counts.total, completed=counts.finished)
        self._live.start()
        self._draw()

    def unit_started(self, unit: int) -> None:
        self._running[unit] = None
        self._draw()

    def unit_progress(self, progress: UnitProgress) -> None:
        self._running[progress.unit] = progress
        self._draw()

    def unit_finished(self, result: UnitResult, counts: Counts) -> None:
        self._running.pop(result.unit, None)
        self._last = f"unit {result.unit}: {summary(result)}"
        rate = (counts.finished - self._before) / max(time.monotonic() - self._started, 1e-9)
        shown = f"{rate:.2f} units/s" if rate >= 1 else f"{1 / max(rate, 1e-9):.1f} s a unit"
        self._bar.update(self._task, completed=counts.finished, rate=shown)
        self._draw()

    def waiting(self, counts: Counts) -> None:
        self._last = f"waiting for {plural(counts.claimed, 'unit')} that other processes work on"
        self._draw()

    def end(self, counts: Counts) -> None:
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        parts: list[RenderableType] = [
            self._bar,
            Text(self._last, overflow="ellipsis", no_wrap=True),
        ]
        if self._running:
            parts.append(self._searches())
        self._live.update(Group(*parts))

    def _searches(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("unit", justify="right", no_wrap=True)
        table.add_column("best so far", overflow="ellipsis", no_wrap=True, ratio=1)
        for name in ("IoU", "at most", "gap"):
            table.add_column(name, justify="right", no_wrap=True)
        for unit, progress in list(self._running.items())[:MOST_UNITS]:
            if progress is None:
                table.add_row(str(unit), Text("..."))
            else:
                table.add_row(
                    str(unit),
                    Text(progress.formula or "none"),
                    f"{progress.iou:.4f}",
                    f"{progress.upper_bound:.4f}",
                    f"{progress.gap:.1%}",
                )
        return table


def status_word(result: UnitResult) -> str:
    """A unit's status for tables."""
    if result.explanation is None:
        return "failed"
    found = result.explanation
    if found.status is Status.OPTIMAL:
        return "optimal"
    metric = "" if found.objective is Objective.IOU else f"{found.objective.label} "
    return f"at most {metric}{found.upper_bound:.3f}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
