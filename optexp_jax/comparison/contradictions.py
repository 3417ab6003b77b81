"""Results that cannot both be right."""

from collections.abc import Iterable

from optexp_jax.comparison.category import Category, category_of
from optexp_jax.comparison.comparison import named
from optexp_jax.comparison.loaded_run import LoadedRun
from optexp_jax.counts.metrics import Objective
from optexp_jax.explanation import Explanation, Status
from optexp_jax.methods.claim import FormulaSpace


class IncomparableError(ValueError):
    """Two runs are not about the same, or share no unit that both explain."""


class ContradictionError(ValueError):
    """Two runs cannot both be right: one of them has what the other says there is not."""


def check_contradictions(a: LoadedRun, b: LoadedRun, units: Iterable[int]) -> None:
    """Stop if results of two runs over the same data contradict each other."""
    faults: dict[int, str] = {}
    for unit in units:
        if category_of(a.found[unit], b.found[unit]) is Category.DATA:
            faults[unit] = (
                f"{a.found[unit].formula} has the IoU {_exact(a.found[unit])} in {a.path} and "
                f"{_exact(b.found[unit])} in {b.path}"
            )
        for one, other in ((a, b), (b, a)):
            found, claimed = one.found[unit], other.found[unit]
            if disproves(found, claimed, other.space):
                faults[unit] = (
                    f"{found.formula} has the IoU {_exact(found)} in {one.path}, above "
                    f"{_claim(claimed)}, which {other.path} claims to be the highest"
                )
    if faults:
        first, said = next(iter(faults.items()))
        raise ContradictionError(
            f"{a.path} and {b.path} contradict each other in unit{'' if len(faults) == 1 else 's'} "
            f"{named(list(faults))}, so one of them is wrong. Find out which with optexp verify. "
            f"Unit {first}: {said}."
        )


def disproves(found: Explanation, claimed: Explanation, space: FormulaSpace | None) -> bool:
    """Whether `found` is above what `claimed` says to be the highest IoU of a space's formulas."""
    if space is None or found.formula is None:
        return False
    if len(found.formula) > space.length or not set(found.formula.operators) <= {*space.operators}:
        return False  # the claim is not about such formulas
    if claimed.objective is not Objective.IOU:
        highest, reached = claimed.value, found.overlap
        if claimed.status is not Status.OPTIMAL:
            highest = claimed.upper_bound
        return reached is not None and reached.value(claimed.objective) > highest
    if claimed.status is Status.OPTIMAL:
        return found.score.ratio > claimed.score.ratio
    # Rounding is monotone: an IoU that is at most a float is not rounded to above it.
    return found.iou > claimed.upper_bound


def _exact(found: Explanation) -> str:
    return f"{found.intersection}/{found.union}"


def _claim(claimed: Explanation) -> str:
    optimal = claimed.status is Status.OPTIMAL
    return _exact(claimed) if optimal else str(claimed.upper_bound)
