"""P-values of many units at once, corrected for their number."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64

from optexp_jax.concepts.inputs import to_numpy


@dataclass(frozen=True, eq=False)
class FamilyPValues:
    """P-values of a family of units, in their order."""

    plain: Float64[np.ndarray, " units"]
    """Each unit by itself."""
    family_wise: Float64[np.ndarray, " units"]
    """If those at most 0.05 are called above chance, any is so wrongly in 5 % of families."""
    false_discovery: Float64[np.ndarray, " units"]
    """If those at most 0.05 are called above chance, about 5 % of them are so wrongly."""

    def above_chance(self, level: float = 0.05) -> Bool[np.ndarray, " units"]:
        """Units that stay significant when all of them are looked at together."""
        return self.family_wise <= level


def family_p_values(observed: Any, draws: Any) -> FamilyPValues:
    """P-values of observed IoUs, one a unit, from draws `[draw, unit]` that all units share.

    Family-wise by step-down max-T (Westfall and Young), which keeps how units depend on each other.
    IoUs of units of different sizes are not comparable, so each unit is standardised over its n + 1
    values, the observed one among them: under the null hypothesis the observed row is one of n + 1
    that are alike, and stays so. False discovery rates are those of Benjamini and Hochberg.
    """
    from scipy.stats import false_discovery_control  # slow to import

    found = to_numpy(observed, "observed").astype(np.float64)
    drawn = to_numpy(draws, "draws").astype(np.float64)
    if drawn.ndim != 2 or drawn.shape[1:] != found.shape or not len(drawn):
        raise ValueError(
            f"draws must be [draw, unit] with {len(found)} units and at least one draw; got shape "
            f"{drawn.shape}. Only draws that all units have can be used."
        )
    values = np.concatenate([found[None], drawn])
    if not np.isfinite(values).all():
        raise ValueError("IoUs must be finite numbers; some of these are not.")
    n = len(drawn)
    plain = (1 + (drawn >= found).sum(0)) / (1 + n)
    return FamilyPValues(plain, _step_down(_standardised(values)), false_discovery_control(plain))


def holm(p_values: Float[np.ndarray, " units"]) -> Float64[np.ndarray, " units"]:
    """Family-wise p-values that need no shared draws: Holm's step-down of Bonferroni's."""
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    scaled = np.minimum(given[order] * np.arange(len(given), 0, -1), 1.0)
    adjusted = np.empty_like(scaled)
    adjusted[order] = np.maximum.accumulate(scaled)
    return adjusted


def sequential_p_value(exceedances: int, draws: int, enough: int) -> float:
    """Besag and Clifford: h / L if draws ended at the h-th that reaches the unit, the L-th one.

    Otherwise (1 + k) / (1 + n), for k of n draws. `enough` is h.
    """
    if not 0 <= exceedances <= min(draws, enough) or enough < 1:
        raise ValueError(
            f"{exceedances} of {draws} draws cannot be where draws end at {enough} that reach it."
        )
    return exceedances / draws if exceedances == enough else (1 + exceedances) / (1 + draws)


def _standardised(
    values: Float64[np.ndarray, "draws units"],
) -> Float64[np.ndarray, "draws units"]:
    """Each unit's values less their mean, over their standard deviation; 0 where they are alike."""
    spread = values.std(0)
    return (values - values.mean(0)) / np.where(spread > 0, spread, 1.0)


def _step_down(scores: Float64[np.ndarray, "draws units"]) -> Float64[np.ndarray, " units"]:
    """Adjusted p-values; the first row is what was observed."""
    found, drawn = scores[0], scores[1:]
    order = np.argsort(-found, kind="stable")
    # In each draw the highest score among the units of this rank and those after it.
    highest = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    p = (1 + (highest >= found[order]).sum(0)) / (1 + len(drawn))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted
