"""Timing in turns: seconds on a shared machine say little, ratios within one turn say more.

Every piece of work is called once a turn, next to the others, so that slow spells of the machine
hit all of them alike. A ratio is taken within each turn; what is told is the median of the turns'
ratios and their quartiles.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")

Tell = Callable[[str], None]
"""Told in a few words what is being done now."""

SHORTEST = 0.02
"""Seconds that a turn of one piece of work should take at least; quicker work is repeated."""
MOST_REPEATS = 2000
MOST_FIRST_CALLS = 12
"""How often work is begun again that spent its budget on compilation."""


class OverBudgetError(Exception):
    """That a piece of work did not end within its budget, or would not have."""


class StillCompilingError(OverBudgetError):
    """That compilation took a part of the budget: the next call may end within it."""


@dataclass(frozen=True)
class Spread:
    """The median of some measurements and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Quartiles as `statistics.quantiles(method="inclusive")` has them; of one value, that."""
        if not values:
            raise ValueError("There is no spread of nothing: pass at least one measurement.")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


@dataclass(frozen=True)
class Turns(Generic[_T]):
    """One piece of work, turn by turn."""

    first: float
    """Seconds of the first call, which compiles what is not compiled yet."""
    seconds: tuple[float, ...]
    """Seconds of one call, in each turn that it took part in."""
    result: _T | None
    """What its last call returned; None if it did not end within its budget."""
    over_budget: str | None = None
    """Why it has no seconds: what it would have taken, or that it was stopped."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def compiling(self) -> float:
        """What the first call took longer than the others."""
        return max(0.0, self.first - self.median) if self.seconds else 0.0


def ratios(work: Turns[_T], reference: Turns[_T]) -> list[float]:
    """The work's seconds over the reference's, in the turns that both took part in."""
    return [mine / other for mine, other in zip(work.seconds, reference.seconds, strict=False)]


def stopwatch(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call."""
    start = clock()
    work()
    return clock() - start


@dataclass
class _Lane(Generic[_T]):
    """A piece of work on its way through the turns."""

    work: Callable[[], _T]
    first: float
    result: _T | None
    seconds: list[float]
    spent: float = 0.0
    repeats: int = 1
    stopped: str | None = None
    done: bool = False


def interleave(
    works: Mapping[str, Callable[[], _T]],
    turns: int,
    *,
    budget: float = float("inf"),
    shortest: float = SHORTEST,
    tell: Tell = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Turns[_T]]:
    """Time several pieces of work in turns, one after another in each.

    A call must be finished when it returns: block on device results inside it. The first call of
    each is timed apart. Each turn begins with another piece of work, so that none always follows
    the same one. Work of a few microseconds is repeated within a turn and divided. What would
    exceed `budget` seconds in all its turns takes part in fewer, but in one at least; what raises
    `OverBudgetError` takes part in none.
    """
    lanes: dict[str, _Lane[_T]] = {}
    for name, work in works.items():
        tell(f"{name}, first call")
        lanes[name] = _first_call(work, clock)
    names = list(lanes)
    for turn in range(turns):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            lane = lanes[name]
            last = lane.seconds[-1] * lane.repeats if lane.seconds else 0.0
            if not lane.done and lane.spent + last <= budget:
                tell(f"{name}, turn {turn + 1} of {turns}")
                _take_turn(lane, shortest, clock)
    return {
        name: Turns(lane.first, tuple(lane.seconds), lane.result, lane.stopped)
        for name, lane in lanes.items()
    }


def compiled(work: Callable[[], _T]) -> _T:
    """What the work returns, begun again as long as compilation takes its budget."""
    for _ in range(MOST_FIRST_CALLS - 1):
        try:
            return work()
        except StillCompilingError:
            continue
    return work()


def _first_call(work: Callable[[], _T], clock: Callable[[], float]) -> _Lane[_T]:
    start = clock()
    try:
        result = compiled(work)
    except OverBudgetError as error:
        return _Lane(work, clock() - start, None, [], stopped=str(error), done=True)
    return _Lane(work, clock() - start, result, [])


def _take_turn(lane: _Lane[_T], shortest: float, clock: Callable[[], float]) -> None:
    try:
        if not lane.seconds:
            # How often it has to be called is decided once, by a call that compiles nothing.
            once = stopwatch(lane.work, clock)
            lane.repeats = min(MOST_REPEATS, max(1, round(shortest / max(once, 1e-9))))
            if lane.repeats == 1:
                lane.seconds.append(once)
                lane.spent += once
                return
        start = clock()
        for _ in range(lane.repeats):
            lane.result = lane.work()
        taken = clock() - start
    except OverBudgetError as error:
        # A first call that just made it: without seconds of its own it counts as one that did not.
        if not lane.seconds:
            lane.result, lane.stopped = None, str(error)
        lane.done = True  # It takes part in the first turns or in none.
        return
    lane.seconds.append(taken / lane.repeats)
    lane.spent += taken
