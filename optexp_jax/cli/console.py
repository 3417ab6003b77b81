"""Where results and progress go."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import rich.progress
from rich.console import Console

from optexp_jax.cli.bars import ProgressLines
from optexp_jax.cli.terminal import make_console

_T = TypeVar("_T")

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or another program, where nothing should be wrapped."""


def with_progress(items: Iterable[_T], total: int, what: str) -> Iterable[_T]:
    """The items, with a bar on stderr while they come, or lines if stderr is no terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        return _with_lines(items, total, what)
    return rich.progress.track(items, what, total, console=console, transient=True)


def _with_lines(items: Iterable[_T], total: int, what: str) -> Iterator[_T]:
    tell = ProgressLines(what, in_bytes=False)
    for done, item in enumerate(items, 1):
        yield item
        tell(done, total)


def results_console() -> Console:
    """Where results go: the terminal as it is, or plain wide lines."""
    console = make_console()
    return console if console.is_terminal else make_console(width=PIPE_WIDTH, no_color=True)
