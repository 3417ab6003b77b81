"""Progress of work that tells how far it is: a bar on a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from optexp_jax.cli.terminal import make_console

Told = Callable[[int, int | None], None]
"""Told how much is done, and of how much if that is known."""


LINE_EVERY = 5.0
"""Seconds between lines where stderr is no terminal, and before the first."""


FORESEEN = 0.05
"""The share from which on what is done tells how long the rest takes."""


class ProgressLines:
    """A line on stderr every few seconds, for logs and pipes."""

    def __init__(
        self, what: str, in_bytes: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._in_bytes, self._now = what, in_bytes, now
        self._started = self._last = now()

    def __call__(self, done: int, total: int | None) -> None:
        now = self._now()
        if now - self._last < LINE_EVERY:
            return
        self._last = now
        passed, of = now - self._started, ""
        seconds = f"{passed:.0f} s"
        if total is not None:
            of = f" of {self._shown(total)} ({done / max(total, 1):.0%})"
        if total is not None and total * FORESEEN <= done < total:
            seconds += f", about {passed * (total - done) / done:.0f} s left"
        print(f"{self._what}: {self._shown(done)}{of}, {seconds}", file=sys.stderr, flush=True)

    def _shown(self, amount: int) -> str:
        return f"{amount / 1e6:.1f} MB" if self._in_bytes else str(amount)


@contextmanager
def bar(what: str, *, in_bytes: bool = False, quiet: bool = False) -> Generator[Told]:
    """A function to tell the progress to: on stderr a bar, or lines if that is no terminal."""
    console = make_console(stderr=True)
    if quiet:
        yield lambda done, total: None
        return
    if not console.is_terminal:
        yield ProgressLines(what, in_bytes)
        return
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    columns += [DownloadColumn(), TransferSpeedColumn()] if in_bytes else [MofNCompleteColumn()]
    columns.append(TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(what, total=None)

    def tell(done: int, total: int | None) -> None:
        progress.update(task, completed=done, total=total)

    with progress:
        yield tell
