"""A layer in figures and in plain language."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from optexp_jax.counts.metrics import Objective
from optexp_jax.report.unit_facts import UnitFacts
from optexp_jax.runs.family import RunFamily
from optexp_jax.runs.summary import RunSummary

ABOVE_CHANCE = 0.05
"""The highest p-value of a unit that counts as above chance."""
GOOD_IOU = 0.1
"""A round figure that few units of a trained network reach with the usual range."""
USUAL = 0.04
"""The threshold of IoU that is usual in the field."""
NO_CATEGORY = "no category"


@dataclass(frozen=True)
class LayerSummary:
    """The units of a layer, and what they have in common."""

    units: tuple[UnitFacts, ...]
    """Done or failed, in ascending order."""
    total: int
    """Units that were asked for."""
    categories: Mapping[str, str | None]
    """Of concepts, by name."""

    @cached_property
    def explained(self) -> tuple[UnitFacts, ...]:
        return tuple(unit for unit in self.units if unit.found is not None)

    @property
    def failed(self) -> int:
        return len(self.units) - len(self.explained)

    @property
    def proved(self) -> int:
        return sum(unit.proved for unit in self.units)

    @cached_property
    def ious(self) -> list[float]:
        return [unit.found.iou for unit in self.units if unit.found is not None]

    @cached_property
    def concepts(self) -> Counter[str]:
        """How many formulas use each concept."""
        return Counter(
            name
            for unit in self.units
            if unit.formula is not None
            for name in unit.formula.concepts
        )

    @property
    def categories_known(self) -> bool:
        return any(self.categories.get(name) for name in self.concepts)

    def category(self, concept: str) -> str:
        return self.categories.get(concept) or NO_CATEGORY

    @property
    def above_chance(self) -> int | None:
        """Units with a p-value of at most 0.05; None where too few draws were made to tell."""
        known = [unit.p_value for unit in self.units if unit.p_value is not None]
        draws = [unit.result.null.n for unit in self.units if unit.result.null is not None]
        if not draws or 1 / (1 + min(draws)) > ABOVE_CHANCE:
            return None
        return sum(p <= ABOVE_CHANCE for p in known)

    @cached_property
    def family(self) -> RunFamily | None:
        """P-values corrected for the number of units."""
        return RunFamily.of([unit.result for unit in self.units])

    @cached_property
    def holds(self) -> str | None:
        """What other images say of the formulas, in a sentence."""
        return RunSummary.of([unit.result for unit in self.units]).holds

    def corrected(self, unit: int) -> float | None:
        """The p-value of a unit, corrected for the number of units."""
        found = None if self.family is None else self.family.units.get(unit)
        return None if found is None else found.family_wise

    @property
    def singles(self) -> list[float]:
        """IoUs with one concept, of explained units."""
        return [unit.neuron.single.iou for unit in self.explained if unit.neuron is not None]

    @property
    def recalls(self) -> list[float]:
        return [unit.recall for unit in self.units if unit.recall is not None]

    @property
    def precisions(self) -> list[float]:
        return [unit.precision for unit in self.units if unit.precision is not None]

    @property
    def active_shares(self) -> list[float]:
        return [unit.neuron.active_share for unit in self.units if unit.neuron is not None]

    @property
    def median_iou(self) -> float | None:
        return middle(self.ious)

    @property
    def median_single(self) -> float | None:
        return middle(self.singles)

    @property
    def null_ious(self) -> list[float]:
        """The mean IoU by chance of each unit."""
        return [unit.result.null.mean for unit in self.units if unit.result.null is not None]


def reading(summary: LayerSummary, threshold: float) -> list[str]:
    """The layer in a few plain sentences."""
    n = len(summary.explained)
    if not n:
        return [f"No unit is explained yet; {summary.total} were asked for."]
    said: list[str] = []
    good = sum(iou >= GOOD_IOU for iou in summary.ious)
    low = sum(iou < threshold for iou in summary.ious)
    above = summary.above_chance
    chance = "" if above is None else f"{above} are above chance (p at most {ABOVE_CHANCE:g}), "
    said.append(
        f"Of {_units(n)} {chance}{good} reach IoU {GOOD_IOU:g}, and {low} stay below "
        f"{threshold:g}{', the usual threshold of the field' if threshold == USUAL else ''}."
    )
    if above is not None and summary.family is not None:
        stay = summary.family.above_chance()
        said.append(f"Corrected for the number of units, {stay} stay above chance.")
    if summary.holds is not None:
        said.append(summary.holds)
    if summary.recalls and summary.precisions:
        said.append(
            f"The median formula covers {percent(statistics.median(summary.recalls))} of where "
            "its unit is active, and the unit is active on "
            f"{percent(statistics.median(summary.precisions))} of where the formula holds."
        )
    if summary.singles:
        said.append(
            f"The median IoU is {statistics.median(summary.ious):.3f}, against "
            f"{statistics.median(summary.singles):.3f} with one concept."
        )
    else:
        said.append(f"The median IoU is {statistics.median(summary.ious):.3f}.")
    if summary.proved == n:
        said.append("Every formula is proved to be the best that the method may use.")
    elif summary.proved:
        said.append(
            f"{summary.proved} formulas are proved to be the best that the method may use; of the "
            "others a better one may exist."
        )
    else:
        said.append("No formula is proved to be the best one: better ones may exist.")
    left = summary.total - len(summary.units)
    if summary.failed or left:
        said.append(f"{_units(summary.failed)} failed and {left} are not done yet.")
    return said


def unit_reading(unit: UnitFacts, longest: int | None, threshold: float) -> list[str]:
    """A unit in a few plain sentences."""
    found = unit.found
    if found is None:
        return ["This unit could not be explained."]
    if found.formula is None:
        if found.objective is Objective.PHI:
            return ["No formula has a phi above 0 with this unit."]
        return ["No concept overlaps this unit: every formula has IoU 0."]
    said: list[str] = []
    length = "" if longest is None else f" of at most {longest} concepts"
    if unit.proved:
        by = "" if found.objective is Objective.IOU else f" by {found.objective.label}"
        said.append(f"Proved: no formula{length} overlaps this unit better{by}.")
    elif found.upper_bound < 1:
        said.append(
            f"Not proved: a formula{length} may reach "
            f"{found.objective.label} {found.upper_bound:.4f}."
        )
    else:
        said.append("Not proved: the method tells nothing of what a better formula could reach.")
    if unit.recall is not None and unit.precision is not None:
        said.append(
            f"The formula covers {percent(unit.recall)} of where the unit is active; the unit is "
            f"active on {percent(unit.precision)} of where the formula holds."
        )
    if unit.result.null is not None:
        null = unit.result.null
        reached = "none" if not null.at_least else str(null.at_least)
        said.append(
            f"With its activation maps on other samples, {reached} of {null.n} draws reach this "
            f"IoU; they have {null.mean:.3f} on average."
        )
    if unit.held_out is not None:
        said.append(
            f"On images that it was not found on, the best formula scores {unit.held_out.iou:.4f}, "
            f"against {unit.held_out.found.iou:.4f} where it was found."
        )
    if found.iou < threshold:
        said.append(f"Its IoU is below {threshold:g}: the concepts hardly describe this unit.")
    return said


def middle(values: Sequence[float]) -> float | None:
    """The median, where there are values."""
    return statistics.median(values) if values else None


def _units(n: int) -> str:
    return "1 unit" if n == 1 else f"{n} units"


def percent(share: float) -> str:
    """A share in whole percent, or in tenths where it is small."""
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"
