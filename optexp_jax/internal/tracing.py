"""Counting how often JAX traces our functions, which is how often it compiles them."""

from collections import Counter

_traces: Counter[str] = Counter()


def note_trace(name: str) -> None:
    """Call it in the body of a jitted function: the body runs once for each compiled shape."""
    _traces[name] += 1


def count_traces() -> int:
    """Compilations so far in this process."""
    return _traces.total()
