"""Where results and progress go."""

from collections.abc import Iterable
from typing import TypeVar

import rich.progress
from rich.console import Console

from optexp_jax.cli.terminal import make_console

_T = TypeVar("_T")

PIPE_WIDTH = 160
"""Columns of a table that goes to a file or another program, where nothing should be wrapped."""


def with_progress(items: Iterable[_T], total: int, what: str) -> Iterable[_T]:
    """The items, with a bar on stderr while they come, if stderr is a terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        return items
    return rich.progress.track(items, what, total, console=console, transient=True)


def results_console() -> Console:
    """Where results go: the terminal as it is, or plain wide lines."""
    console = make_console()
    return console if console.is_terminal else make_console(width=PIPE_WIDTH, no_color=True)
