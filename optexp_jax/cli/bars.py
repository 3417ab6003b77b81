"""Progress bars for work that tells how far it is."""

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


@contextmanager
def bar(what: str, *, in_bytes: bool = False) -> Generator[Told]:
    """A function to tell the progress to, shown as a bar on stderr if that is a terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
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
