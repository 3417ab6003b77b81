"""Counting how often JAX traces our functions, which is how often it compiles them."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_traces: Counter[str] = Counter()


class CompilationDeferredError(Exception):
    """A program was about to be compiled when there was no time left for it."""


_may_compile: ContextVar[Callable[[], bool] | None] = ContextVar("may_compile", default=None)
"""Whether there is time to compile, by the innermost search of this thread."""


@contextmanager
def compiling_while(has_time: Callable[[], bool]) -> Generator[None]:
    """Within this scope, programs are compiled while there is time, and refused afterwards.

    XLA cannot be stopped once it compiles. What is refused is traced again when it is next called.
    """
    before = _may_compile.set(has_time)
    try:
        yield
    finally:
        _may_compile.reset(before)


def note_trace(name: str) -> None:
    """Call it in the body of a jitted function: the body runs once for each compiled shape."""
    has_time = _may_compile.get()
    if has_time is not None and not has_time():
        raise CompilationDeferredError(name)
    _traces[name] += 1


def count_traces() -> int:
    """Compilations so far in this process."""
    return _traces.total()
