"""What moves between host and device: the tight search moves nothing but through here.

On an accelerator a transfer costs more than what is done with it. To see how much a piece of code
moves, run it within `counted_transfers()`.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Shaped

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass
class Transfers:
    """Bytes that were moved."""

    up: int = 0
    """From the host to the device."""
    down: int = 0
    """From the device to the host."""


_counter: ContextVar[Transfers | None] = ContextVar("transfers", default=None)


@contextmanager
def counted_transfers() -> Generator[Transfers]:
    """Count what this thread moves within the scope."""
    counter = Transfers()
    before = _counter.set(counter)
    try:
        yield counter
    finally:
        _counter.reset(before)


def fetch(values: Shaped[Array | np.ndarray, "..."]) -> np.ndarray:
    """An array on the host."""
    return fetch_all(values)[0]


def fetch_all(*values: Shaped[Array | np.ndarray, "..."]) -> tuple[np.ndarray, ...]:
    """Several arrays on the host; all are on their way before the first is waited for."""
    counter = _counter.get()
    if counter is not None:
        counter.down += sum(part.nbytes for part in values if isinstance(part, jax.Array))
    return jax.device_get(values)


def run(
    program: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Call a compiled program; what of its arguments is on the host goes up with the call."""
    counter = _counter.get()
    if counter is None:
        return program(*args, **options)
    counter.up += sum(_bytes_on_host(leaf) for leaf in jax.tree.leaves((args, options)))
    with jax.transfer_guard_host_to_device("allow"):
        return program(*args, **options)


def put(*arrays: Shaped[Array | np.ndarray | np.generic, "..."]) -> tuple[Any, ...]:
    """Host arrays on the device. For small ones a compiled call is faster than `device_put`."""
    return run(_move, *arrays)


@jax.jit
def _move(
    *arrays: Shaped[Array | np.ndarray | np.generic, "..."],
) -> tuple[Shaped[Array, "..."], ...]:
    return tuple(jax.numpy.asarray(array) for array in arrays)


def _bytes_on_host(leaf: object) -> int:
    return leaf.nbytes if isinstance(leaf, np.ndarray | np.generic) else 0
