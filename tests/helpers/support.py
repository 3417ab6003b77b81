"""Helpers that several test files share."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self

import jax
import jaxtyping
from beartype import BeartypeConf, FrozenDict, beartype
from hypothesis import settings

# The run-time type checker of the package's functions. jaxtyping applies it to methods one by one,
# and beartype understands Self only when it decorates whole classes, so Self goes unchecked.
typecheck = beartype(conf=BeartypeConf(hint_overrides=FrozenDict({Self: Any})))

# How many times more examples the thorough profile draws than the quick one.
THOROUGH_FACTOR = 50


def thorough() -> bool:
    """Whether this run was started with `pytest --thorough`."""
    # conftest.py loads the profile in pytest_configure, before any test module is imported.
    return settings.get_current_profile_name() == "thorough"


def examples(
    n: int, *, in_thorough: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Draw `n` examples in a quick run, and 50 times as many, or `in_thorough`, in a thorough one.

    Use it in place of `@settings(max_examples=n)`, which would fix the number for both.
    """
    many = n * THOROUGH_FACTOR if in_thorough is None else in_thorough
    return settings(max_examples=many if thorough() else n)


@contextmanager
def as_users_run_it() -> Generator[None]:
    """Without the type checks that tests put around every function, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@contextmanager
def x64_setting(on: bool) -> Generator[None]:
    """JAX's process-wide setting, on or off, as users may have it."""
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", on)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
