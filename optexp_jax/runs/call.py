"""A call that an executor has been given."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Call:
    """A function and its arguments, and what somebody waits for."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    future: Future[Any] = field(default_factory=Future[Any])
