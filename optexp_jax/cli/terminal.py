"""What reaches a terminal: names come out of files, and a terminal obeys what is written to it.

Everything that commands print passes through here, and characters that would not print are shown
as escapes, as formulas show them. Tables keep names as they are.
"""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.console import Console
from rich.segment import Segment

_LAYOUT = "\n\t"


def shown(text: str) -> str:
    """The text with everything that does not print, apart from line ends and tabs, escaped."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    from optexp_jax.formulas.text import escape_unprintable  # with NumPy, which help does not need

    return "".join(c if c in _LAYOUT else escape_unprintable(c) for c in text)


class EscapingStream:
    """A stream of text that shows what is written to it; all else it leaves to the stream."""

    def __init__(self, raw: Any):
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class SafeConsole(Console):
    """A console whose own control codes pass, and no others."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            part if part.control else Segment(shown(part.text), part.style) for part in buffer
        )


def make_console(*, stderr: bool = False, **settings: Any) -> Console:
    """A console on stdout or stderr, which writes its colours to the stream itself."""
    stream: Any = sys.stderr if stderr else sys.stdout
    raw = stream.raw if isinstance(stream, EscapingStream) else stream
    return SafeConsole(file=raw, **settings)


@contextmanager
def escaping_streams() -> Generator[None]:
    """While it is entered, what is printed is shown rather than obeyed."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, EscapingStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
