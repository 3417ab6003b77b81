"""A run in a few figures: how well its units are explained, and how well by chance."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optexp_jax.explanation import Status
from optexp_jax.runs.results import UnitResult


@dataclass(frozen=True)
class Averages:
    """The middle of a few numbers."""

    mean: float
    median: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Averages | None":
        """None if there are no values."""
        found = list(values)
        return cls(statistics.fmean(found), statistics.median(found)) if found else None


@dataclass(frozen=True)
class RunSummary:
    """What the units of a run have in common. None stands where no unit tells."""

    explained: int
    failed: int
    proved: int
    """Explained units whose formula is proved to be the best."""
    iou: Averages | None
    single_iou: Averages | None
    """With the best single concept of each unit."""
    active_share: Averages | None
    """The share of all locations that is active."""
    null_mean: Averages | None
    """The chance level: of each unit, the mean of its draws of the null model."""
    null_highest: float | None
    """The highest IoU of all draws."""
    above_draws: int | None
    """Units whose IoU no draw of theirs reaches."""

    @classmethod
    def of(cls, results: Sequence[UnitResult]) -> "RunSummary":
        """The summary of some results of a run."""
        found = [each.explanation for each in results if each.explanation is not None]
        neurons = [each.neuron for each in found if each.neuron is not None]
        nulls = [each.null for each in results if each.null is not None]
        return cls(
            explained=len(found),
            failed=len(results) - len(found),
            proved=sum(each.status is Status.OPTIMAL for each in found),
            iou=Averages.of(each.iou for each in found),
            single_iou=Averages.of(neuron.single.iou for neuron in neurons),
            active_share=Averages.of(neuron.active_share for neuron in neurons),
            null_mean=Averages.of(null.mean for null in nulls),
            null_highest=max((null.highest for null in nulls), default=None),
            above_draws=sum(null.at_least == 0 for null in nulls) if nulls else None,
        )
