"""What a run over many units took: means and population standard deviations, as published."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from optexp_jax.explanation import Explanation
from optexp_jax.reproduction.rows import AlgorithmRow
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run


@dataclass(frozen=True)
class MeanAndStd:
    """A mean and the standard deviation of the population: of all n, not n - 1."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanAndStd":
        """Of at least one value."""
        return cls(statistics.fmean(values), statistics.pstdev(values))


@dataclass(frozen=True)
class MeasuredWork:
    """An algorithm's work a unit.

    Units that did not end within the budget count with what they did until then, so that means
    with `n_over` above 0 are too low.
    """

    row: AlgorithmRow
    run: str
    """The folder of the run."""
    n_units: int
    n_failed: int
    """Units without a result, such as ones that are never active."""
    n_over: int
    """Units that were stopped by their budget, or took longer."""
    visited: MeanAndStd
    expanded: MeanAndStd
    estimated: MeanAndStd
    seconds: MeanAndStd
    """Of the search and the quantities it needs; without units that JAX compiled programs for."""
    compilation: float | None
    """Seconds that these took longer in total than others, and the first unit than the second time.

    None if that one was stopped, or if no unit went without.
    """
    timed_with_compilation: bool
    """Whether every unit had something compiled, so that `seconds` holds that too."""
    iou: MeanAndStd


def measure_run(row: AlgorithmRow, run: Run, first: Run, budget: float) -> MeasuredWork:
    """The work of a run that is done; `first` is its first unit, before anything was compiled."""
    return measure_results(row, str(run.path), run.results, first.results, budget)


def measure_results(
    row: AlgorithmRow,
    run: str,
    results: Sequence[UnitResult],
    first: Sequence[UnitResult],
    budget: float,
) -> MeasuredWork:
    """The same from the results of the two runs."""
    found = [each.explanation for each in results if each.explanation is not None]
    if not found:
        raise ValueError(f"No unit of {run} could be explained. The first: {_first(results)}")
    over = [_is_over(each, budget) for each in found]
    # A search that was stopped tells that it takes longer than its budget, compiled or not.
    timed = [
        each.stats.seconds.total
        for each, late in zip(found, over, strict=True)
        if late or not each.stats.compilations
    ]
    compiling = [
        each.stats.seconds.total
        for each, late in zip(found, over, strict=True)
        if not late and each.stats.compilations
    ]
    seconds = MeanAndStd.of(timed or compiling)
    return MeasuredWork(
        row=row,
        run=run,
        n_units=len(results),
        n_failed=len(results) - len(found),
        n_over=sum(over),
        visited=MeanAndStd.of([float(each.stats.visited) for each in found]),
        expanded=MeanAndStd.of([float(each.stats.expanded) for each in found]),
        estimated=MeanAndStd.of([float(each.stats.estimated) for each in found]),
        seconds=seconds,
        compilation=_compilation(compiling, seconds.mean, first, results) if timed else None,
        timed_with_compilation=not timed,
        iou=MeanAndStd.of([each.iou for each in found]),
    )


def _compilation(
    compiling: Sequence[float],
    usual: float,
    first: Sequence[UnitResult],
    results: Sequence[UnitResult],
) -> float | None:
    """What units took longer because of compilation; None where that cannot be told."""
    longer = [max(0.0, each - usual) for each in compiling]
    again = {each.unit: each.explanation for each in results}
    for result in first:
        cold, warm = result.explanation, again.get(result.unit)
        if cold is None or warm is None:
            continue
        if cold.stats.stopped_by is not None or warm.stats.stopped_by is not None:
            return None
        longer.append(max(0.0, cold.stats.seconds.total - warm.stats.seconds.total))
    return math.fsum(longer)


def _is_over(found: Explanation, budget: float) -> bool:
    """Stopped by its budget, or longer than that for other reasons than compilation."""
    stats = found.stats
    return stats.stopped_by is not None or (stats.seconds.total > budget and not stats.compilations)


def _first(results: Sequence[UnitResult]) -> str:
    return next((each.error for each in results if each.error is not None), "there are no units")
