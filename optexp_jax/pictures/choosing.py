"""Which samples to show of a unit."""

import enum

import numpy as np
from jaxtyping import Float, Int64

from optexp_jax.pictures.areas import SampleAreas


class SampleOrder(enum.StrEnum):
    """What the first samples have most of; compares equal to its string."""

    PEAK = "peak"
    """The highest activation in the unit's range."""
    ACTIVE = "active"
    """Active locations."""
    CAPTURED = "captured"
    """Active locations where the formula holds."""
    MISSED = "missed"
    """Active locations where the formula does not hold."""
    EXTRAS = "extras"
    """Locations where the formula holds without the unit being active."""
    RANDOM = "random"
    """Nothing: any of the samples where the unit is active or the formula holds."""


def choose_samples(
    areas: SampleAreas,
    order: SampleOrder | str,
    count: int,
    *,
    seed: int = 0,
    peaks: Float[np.ndarray, " samples"] | None = None,
) -> tuple[int, ...]:
    """At most `count` samples, best first; of equal ones the lower number comes first.

    Samples that have nothing of what is asked for are left out. `seed` is for a random choice;
    `peaks`, the highest activation of each sample, for that order (`LayerUnits.peaks`), in which
    only samples with an active location count.
    """
    order = SampleOrder(order)
    if count < 0:
        raise ValueError(f"count must not be negative; got {count}.")
    if order is SampleOrder.RANDOM:
        able = np.flatnonzero(areas.union)
        chosen = np.random.default_rng(seed).permutation(able)
    elif order is SampleOrder.PEAK:
        if peaks is None:
            raise ValueError("The order by peak needs `peaks`, such as LayerUnits.peaks(unit).")
        able = np.flatnonzero(areas.active)
        chosen = able[np.argsort(-peaks[able], kind="stable")]
    else:
        chosen = _most(_measure(areas, order))
    return tuple(chosen[:count].tolist())


def _measure(areas: SampleAreas, order: SampleOrder) -> Int64[np.ndarray, " samples"]:
    match order:
        case SampleOrder.ACTIVE:
            return areas.active
        case SampleOrder.CAPTURED:
            return areas.captured
        case SampleOrder.MISSED:
            return areas.missed
        case _:
            return areas.extras


def _most(measure: Int64[np.ndarray, " samples"]) -> Int64[np.ndarray, " chosen"]:
    order = np.argsort(-measure, kind="stable")
    return order[: np.count_nonzero(measure)]
