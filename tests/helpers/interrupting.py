"""Exceptions in the middle of the package's code, as Ctrl-C and a lack of memory bring them."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import jax

import optexp_jax

PACKAGE = str(Path(optexp_jax.__file__).parent)


class Lines:
    """Counts the lines of the package that are run, and may raise at one of them."""

    def __init__(self, stop_at: int | None = None, error: BaseException | None = None):
        self.count = 0
        self._stop_at = stop_at
        self._error = KeyboardInterrupt() if error is None else error

    @contextmanager
    def watch(self) -> Generator["Lines"]:
        before = sys.gettrace()
        # A trace function can raise between the body of a `with` and its exit, where no signal is
        # handled: the 64-bit setting of the package's own code would stay. It is put back here.
        with jax.enable_x64(jax.config.read("jax_enable_x64")):
            sys.settrace(self._called)
            try:
                yield self
            finally:
                sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.count += 1
            if self.count == self._stop_at:
                raise self._error
        return self._line
