"""The p-values of a run's units, corrected for how many units were looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optexp_jax.runs.results import UnitResult
from optexp_jax.validation.families import family_p_values, holm


@dataclass(frozen=True)
class CorrectedPValue:
    """One unit among the others of its run."""

    family_wise: float
    """If units with at most 0.05 are called above chance, any is so wrongly in 5 % of layers."""
    false_discovery: float
    """If units with at most 0.05 are called above chance, about 5 % of them are so wrongly."""


@dataclass(frozen=True)
class RunFamily:
    """The units of a run that were compared with chance, corrected together."""

    how: str
    """The correction of the family-wise p-values, and why that one."""
    units: Mapping[int, CorrectedPValue]

    @classmethod
    def of(cls, results: Sequence[UnitResult]) -> "RunFamily | None":
        """The family of some results; None if none of them was compared with chance."""
        from scipy.stats import false_discovery_control  # slow to import

        compared = [
            (each.unit, each.null, each.explanation.iou)
            for each in results
            if each.null is not None and each.explanation is not None
        ]
        if not compared:
            return None
        units, nulls, ious = zip(*compared, strict=True)
        if all(null.stop is None for null in nulls) and len({null.n for null in nulls}) == 1:
            draws = np.array([null.values for null in nulls]).T
            found = family_p_values(np.array(ious), draws)
            how, family_wise, rates = "max-T", found.family_wise, found.false_discovery
        else:
            plain = np.array([null.p_value for null in nulls])
            how, family_wise, rates = "Holm", holm(plain), false_discovery_control(plain)
        corrected = {
            unit: CorrectedPValue(float(p), float(q))
            for unit, p, q in zip(units, family_wise, rates, strict=True)
        }
        return cls(how, corrected)

    def above_chance(self, level: float = 0.05) -> int:
        """Units that stay significant when all of them are looked at together."""
        return sum(each.family_wise <= level for each in self.units.values())

    def discoveries(self, level: float = 0.05) -> int:
        """Units whose false discovery rate is at most the level."""
        return sum(each.false_discovery <= level for each in self.units.values())


def family_rows(results: Sequence[UnitResult]) -> dict[int, dict[str, float]]:
    """The columns that depend on all units of a run, by unit."""
    family = RunFamily.of(results)
    if family is None:
        return {}
    return {
        unit: {"p_family": each.family_wise, "q_value": each.false_discovery}
        for unit, each in family.units.items()
    }
