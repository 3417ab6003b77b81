"""Where the time of a search goes."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from optexp_jax.explanation import Seconds

Phase = Literal["device", "heap", "exact"]


class Clock:
    """A stopwatch for the phases of one search."""

    def __init__(self) -> None:
        self._start: float | None = time.perf_counter()
        """When time began to run; None while it is stopped."""
        self._before = 0.0
        self._phases: dict[Phase, float] = {"device": 0.0, "heap": 0.0, "exact": 0.0}
        self.time_limit: float | None = None

    @contextmanager
    def phase(self, name: Phase) -> Generator[None]:
        """Add the time that passes inside to a phase. Results must be awaited inside, too."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._phases[name] += time.perf_counter() - start

    @property
    def elapsed(self) -> float:
        running = 0.0 if self._start is None else time.perf_counter() - self._start
        return self._before + running

    def pause(self) -> None:
        """Stop the time until `go_on`."""
        self._before = self.elapsed
        self._start = None

    def go_on(self, time_limit: float | None) -> None:
        """Let time run, for so many seconds more."""
        self._start = time.perf_counter()
        self.time_limit = None if time_limit is None else self._before + time_limit

    def take_over(self, other: "Clock") -> None:
        """Count on from what another, paused one has counted."""
        self.pause()
        self._before += other.elapsed
        for phase, seconds in other._phases.items():
            self._phases[phase] += seconds

    @property
    def expired(self) -> bool:
        """Whether the time limit has passed, for work that is long enough to ask in between."""
        return self.time_limit is not None and self.elapsed >= self.time_limit

    @property
    def left(self) -> float | None:
        """Seconds until the time limit, if there is one."""
        return None if self.time_limit is None else max(self.time_limit - self.elapsed, 0.0)

    def seconds(self) -> Seconds:
        return Seconds(total=self.elapsed, **self._phases)
