"""The one place that chooses between a host kernel and a device kernel.

Sparse work has two kernels: one in numpy and scipy, which skips zeros, and one in compiled
programs, for accelerators. Both of a pair compute the same integers; tests run each against the
other.
"""

import enum
import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

VARIABLE = "OPTEXP_KERNELS"
"""The environment variable that chooses where no scope does."""


class Kernels(enum.StrEnum):
    """Where sparse work is done; compares equal to its string."""

    AUTO = "auto"
    """On the host where JAX runs on a CPU, else on the device."""
    HOST = "host"
    DEVICE = "device"


_scoped: ContextVar[Kernels | None] = ContextVar("kernels", default=None)
"""What the innermost `with kernels(...)` says."""


@contextmanager
def kernels(choice: str) -> Generator[None]:
    """Within this scope, use the kernels of the `host`, of the `device`, or leave it to `auto`.

    Results do not depend on it. Workers of `explain_many` and of runs do what the scope says that
    they are given their work in; a thread that you start yourself does not know of the scope.
    """
    before = _scoped.set(_checked(choice, "kernels(...)"))
    try:
        yield
    finally:
        _scoped.reset(before)


def chosen_kernels() -> Kernels:
    """What the scope says; else the environment variable OPTEXP_KERNELS; else `auto`."""
    scoped = _scoped.get()
    if scoped is not None:
        return scoped
    return _checked(os.environ.get(VARIABLE) or Kernels.AUTO, VARIABLE)


def used_kernels() -> Kernels:
    """The host's or the device's.

    On a CPU the "device" is the same cores, and skipping zeros beats streaming over them.
    """
    choice = chosen_kernels()
    if choice is Kernels.AUTO:
        return Kernels.HOST if device_in_use().platform == "cpu" else Kernels.DEVICE
    return choice


def device_in_use() -> Any:
    """The device that JAX computes on here: the default one of this thread or scope."""
    chosen: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if chosen is None:
        return jax.local_devices()[0]
    return jax.local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen


def prefers_host_kernels() -> bool:
    """Whether sparse work is to be done in numpy and scipy."""
    return used_kernels() is Kernels.HOST


def _checked(choice: str, where: str) -> Kernels:
    try:
        return Kernels(choice)
    except ValueError:
        known = ", ".join(Kernels)
        raise ValueError(f"{where} must be one of {known}; got {choice!r}.") from None
