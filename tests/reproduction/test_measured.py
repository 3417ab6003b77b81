"""Means of a run: population deviations, compilation apart, what was stopped never dropped."""

import pytest

from optexp_jax import Explanation, SearchStats, Seconds, Status, StoppedBy
from optexp_jax.reproduction.measured import MeanAndStd, MeasuredWork, measure_results
from optexp_jax.reproduction.published import PublishedWork
from optexp_jax.reproduction.rows import beam_row, optimal_row
from optexp_jax.reproduction.work_table import work_records, work_table
from optexp_jax.runs import UnitResult

ROW = beam_row("quantities")
PAPER = PublishedWork(2.0, 10.0, 100.0, 4.0)


def result(
    unit: int, seconds: float, *, visited: int = 0, compilations: int = 0, stopped: bool = False
) -> UnitResult:
    stats = SearchStats(
        visited=visited,
        compilations=compilations,
        stopped_by=StoppedBy.TIME_LIMIT if stopped else None,
        seconds=Seconds(total=seconds),
    )
    found = Explanation(None, 0, 1, 1.0, Status.FEASIBLE, stats)
    return UnitResult(unit, found, seconds=seconds + 1)


def measure(results: list[UnitResult], first: float = 9.0) -> MeasuredWork:
    return measure_results(ROW, "run", results, [result(0, first, compilations=3)], 10.0)


def test_population_deviation():
    assert MeanAndStd.of([1.0, 3.0]) == MeanAndStd(2.0, 1.0)


def test_compilation_is_apart():
    work = measure([result(0, 1.0), result(1, 8.0, compilations=1), result(2, 3.0)])
    assert work.seconds == MeanAndStd(2.0, 1.0)
    assert work.compilation == pytest.approx((8 - 2) + (9 - 1))
    assert not work.timed_with_compilation
    assert work.n_over == 0


def test_compilation_of_a_unit_that_was_stopped_is_not_known():
    assert measure([result(0, 10.0, stopped=True), result(1, 1.0)]).compilation is None


def test_where_everything_compiled_that_is_said():
    work = measure([result(0, 1.0, compilations=1), result(1, 3.0, compilations=2)])
    assert work.seconds == MeanAndStd(2.0, 1.0)
    assert work.timed_with_compilation
    assert work.compilation is None
    (row, *_) = work_table("t", [work], [None]).rows
    assert row[5] == "2 ± 1*"


def test_what_was_stopped_counts_as_more():
    stopped = [result(0, 1.0, visited=2), result(1, 10.0, visited=4, stopped=True, compilations=1)]
    work = measure(stopped)
    assert work.n_over == 1
    assert work.seconds == MeanAndStd(5.5, 4.5)
    assert work.visited == MeanAndStd(3.0, 1.0)
    ours, published, ratio = work_table("t", [work], [PAPER]).rows
    assert ours[2] == "> 3 ± 1"
    assert ours[5] == "> 5.5 ± 4.5"
    assert ours[-1] == "1 of 2"
    assert published[2:6] == ("2", "10", "100", "4")
    assert ratio[2] == "> 1.5"
    (record,) = work_records([work], [PAPER])
    assert record["over_budget"] == 1
    assert record["seconds_ratio"] == pytest.approx(5.5 / 4)


def test_a_beam_cannot_be_stopped_but_is_over_budget():
    assert measure([result(0, 11.0), result(1, 1.0)]).n_over == 1
    assert measure([result(0, 11.0, compilations=1), result(1, 1.0)]).n_over == 0


def test_failed_units_are_counted():
    failed = UnitResult(3, error="ValueError: The unit is never active: it is dead")
    assert measure([result(0, 1.0), failed]).n_failed == 1
    with pytest.raises(ValueError, match="never active"):
        measure([failed])


def test_counters_of_another_meaning_have_no_ratio():
    work = measure_results(optimal_row(10.0), "run", [result(0, 2.0, visited=7)], [], 10.0)
    _, _, ratio = work_table("t", [work], [PAPER]).rows
    assert ratio[2:6] == ("-", "-", "-", "0.5")
