"""Timing in turns, with a clock that tests move by hand."""

import statistics
from collections.abc import Callable

import pytest

from optexp_jax.bench.turns import (
    OverBudgetError,
    Spread,
    StillCompilingError,
    Turns,
    compiled,
    interleave,
    ratios,
)


class Clock:
    """A clock that goes on only when work is done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.called: list[str] = []

    def __call__(self) -> float:
        return self.now

    def work(self, name: str, *seconds: float) -> Callable[[], str]:
        """Work that takes so long at its calls; the last of them at all further ones."""
        left = list(seconds)

        def run() -> str:
            self.called.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return name

        return run


def test_works_take_turns_and_each_begins_one():
    clock = Clock()
    works = {name: clock.work(name, 1.0) for name in "abc"}
    found = interleave(works, 3, clock=clock)
    assert "".join(clock.called) == "abc" + "abc" + "bca" + "cab"
    assert all(each.seconds == (1.0, 1.0, 1.0) for each in found.values())
    assert found["a"].result == "a"


def test_the_first_call_is_told_apart():
    clock = Clock()
    (found,) = interleave({"a": clock.work("a", 7.0, 2.0)}, 3, clock=clock).values()
    assert found.first == 7.0
    assert found.seconds == (2.0, 2.0, 2.0)
    assert found.compiling == 5.0


def test_ratios_are_taken_within_a_turn():
    # A machine that gets ten times as slow in the second turn: the ratio stays 3.
    clock = Clock()
    works = {
        "slow": clock.work("slow", 1.0, 3.0, 30.0, 3.0),
        "fast": clock.work("fast", 1.0, 1.0, 10.0, 1.0),
    }
    found = interleave(works, 3, clock=clock)
    assert ratios(found["slow"], found["fast"]) == [3.0, 3.0, 3.0]


def test_short_work_is_repeated_within_a_turn():
    clock = Clock()
    works = {"short": clock.work("short", 0.25), "long": clock.work("long", 5.0)}
    found = interleave(works, 2, shortest=1.0, clock=clock)
    # The first call, one to find out how often, and four a turn.
    assert clock.called.count("short") == 1 + 1 + 4 + 4
    assert clock.called.count("long") == 1 + 2
    assert found["short"].seconds == (0.25, 0.25)


def test_work_that_takes_its_budget_takes_part_in_fewer_turns():
    clock = Clock()
    works = {"dear": clock.work("dear", 4.0), "cheap": clock.work("cheap", 1.0)}
    found = interleave(works, 5, budget=10.0, clock=clock)
    assert len(found["dear"].seconds) == 2
    assert len(found["cheap"].seconds) == 5
    assert ratios(found["dear"], found["cheap"]) == [4.0, 4.0]


def test_work_over_its_budget_takes_part_in_one_turn_at_least():
    clock = Clock()
    (found,) = interleave({"a": clock.work("a", 100.0)}, 5, budget=1.0, clock=clock).values()
    assert found.seconds == (100.0,)


def test_work_that_does_not_end_has_no_seconds_and_does_not_stop_the_others():
    clock = Clock()

    def endless() -> str:
        raise OverBudgetError("stopped after 10 s")

    found = interleave({"endless": endless, "a": clock.work("a", 1.0)}, 2, clock=clock)
    assert found["endless"].over_budget == "stopped after 10 s"
    assert found["endless"].seconds == ()
    assert found["endless"].result is None
    assert found["a"].seconds == (1.0, 1.0)


def test_work_that_fails_for_another_reason_is_not_hidden():
    def broken() -> str:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        interleave({"a": broken}, 1)


def test_compilation_is_not_the_methods_fault():
    tries: list[int] = []

    def work() -> str:
        tries.append(len(tries))
        if len(tries) < 3:
            raise StillCompilingError("stopped")
        return "done"

    assert compiled(work) == "done"
    assert len(tries) == 3


def test_compilation_that_never_ends_is_over_budget():
    def work() -> str:
        raise StillCompilingError("stopped")

    (found,) = interleave({"a": work}, 1).values()
    assert found.over_budget == "stopped"


def test_work_that_exceeds_its_budget_in_a_later_turn_keeps_the_turns_before():
    clock = Clock()
    calls: list[int] = []

    def tires() -> str:
        calls.append(1)
        if len(calls) > 2:
            raise OverBudgetError("stopped")
        clock.now += 1.0
        return "a"

    found = interleave({"tires": tires, "b": clock.work("b", 1.0)}, 4, clock=clock)
    assert found["tires"].seconds == (1.0,)
    assert len(calls) == 3


def test_what_is_told():
    clock = Clock()
    said: list[str] = []
    interleave({"a": clock.work("a", 1.0)}, 2, tell=said.append, clock=clock)
    assert said == ["a, first call", "a, turn 1 of 2", "a, turn 2 of 2"]


def test_spread_is_the_median_and_the_quartiles():
    assert Spread.of([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0)
    values = [0.3, 8.0, 2.0, 5.5]
    assert Spread.of(values).median == statistics.median(values)
    with pytest.raises(ValueError, match="at least one"):
        Spread.of([])


def test_what_did_not_end_has_no_compilation_to_tell():
    assert Turns(9.0, (), None, "stopped").compiling == 0.0
