"""A run in a few figures: how well its units are explained, and how well by chance."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optexp_jax.explanation import Status
from optexp_jax.runs.family import RunFamily
from optexp_jax.runs.results import UnitResult
from optexp_jax.validation.held_out import HeldOut
from optexp_jax.validation.resamples import Scheme
from optexp_jax.validation.stability import Stability

LEVEL = 0.05
"""The highest p-value that counts as above chance."""


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
    family: RunFamily | None
    """P-values corrected for the number of units."""
    below_level: int | None
    """Units with a p-value of at most 0.05, before any correction."""
    held_out: Averages | None
    """IoUs on folds that formulas were not found on."""
    in_sample: Averages | None
    """IoUs of the same formulas where they were found."""
    recurrence: Averages | None
    """Shares of resamples whose optimum is the unit's formula."""
    notes: tuple[str, ...]
    """What to know about folds and resamples."""

    @classmethod
    def of(cls, results: Sequence[UnitResult]) -> "RunSummary":
        """The summary of some results of a run."""
        found = [each.explanation for each in results if each.explanation is not None]
        neurons = [each.neuron for each in found if each.neuron is not None]
        nulls = [each.null for each in results if each.null is not None]
        others = [each.other_images for each in results if each.other_images is not None]
        held_out = [each.held_out for each in others if each.held_out is not None]
        stable = [each.stability for each in others if each.stability is not None]
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
            family=RunFamily.of(results),
            below_level=sum(null.p_value <= LEVEL for null in nulls) if nulls else None,
            held_out=Averages.of(each.iou for each in held_out),
            in_sample=Averages.of(each.found.iou for each in held_out),
            recurrence=Averages.of(each.recurrence for each in stable),
            notes=_notes(held_out, stable),
        )

    @property
    def holds(self) -> str | None:
        """One sentence on other images: what is left of the IoU, and how often formulas recur."""
        parts: list[str] = []
        if self.held_out is not None and self.in_sample is not None:
            before, after = self.in_sample.mean, self.held_out.mean
            kept = f", {after / before:.0%} of it," if before else ""
            parts.append(
                f"on images that they were not found on, formulas have a mean IoU of {after:.4f}"
                f"{kept} against {before:.4f} where they were found"
            )
        if self.recurrence is not None:
            parts.append(f"{self.recurrence.mean:.0%} of resamples lead to the same formula")
        if not parts:
            return None
        said = "; ".join(parts)
        return f"{said[0].upper()}{said[1:]}."


def _notes(held_out: Sequence[HeldOut], stable: Sequence[Stability]) -> tuple[str, ...]:
    notes = {each.note: None for each in held_out if each.note is not None}
    for each in stable:
        if each.scheme is Scheme.LEAVE_ONE_OUT:
            n = len(each.resamples)
            notes[f"there are {n} groups, so each is left out once, in place of bootstraps"] = None
    if held_out or stable:
        notes["what counts as active was decided on all images"] = None
    return tuple(notes)
