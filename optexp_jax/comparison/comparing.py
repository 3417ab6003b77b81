"""Compares the results of two runs over the same units."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.comparison.category import category_of
from optexp_jax.comparison.comparison import ComparedRun, ComparedUnit, Comparison
from optexp_jax.comparison.contradictions import IncomparableError, check_contradictions
from optexp_jax.comparison.loaded_run import (
    LoadedRun,
    different_data,
    different_questions,
    different_units,
)
from optexp_jax.comparison.locations import Locations
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation, Status
from optexp_jax.runs.run import Run


def compare(
    a: Run | str | Path,
    b: Run | str | Path,
    *,
    common: bool = False,
    table: ConceptTable | None = None,
) -> Comparison:
    """Compare two runs unit by unit: where, and by how much, `b` differs from `a`.

    Both must be over the same table, activations, range and units; with `common`, the units that
    they share are compared whatever else differs. Formulas of the same IoU are looked up in the
    table, which is opened from where the runs had it; pass `table` if it was only in memory.
    IncomparableError if the runs are not about the same.
    ContradictionError if one run has a higher IoU than the other claims to be possible.
    """
    (made,) = compare_with_first([a, b], common=common, table=table)
    return made


def compare_with_first(
    runs: Sequence[Run | str | Path], *, common: bool = False, table: ConceptTable | None = None
) -> tuple[Comparison, ...]:
    """Compare the first run, as `a`, with each of the others.

    The others are only checked for results that contradict one another.
    """
    first, *others = [LoadedRun.read(run) for run in runs]
    made = tuple(_compare(first, other, common, table) for other in others)
    for one, other in itertools.combinations(others, 2):
        if not different_data(one, other):
            check_contradictions(one, other, _explained_in_both(one, other))
    return made


def _compare(a: LoadedRun, b: LoadedRun, common: bool, table: ConceptTable | None) -> Comparison:
    data, units = different_data(a, b), different_units(a, b)
    if (data or units) and not common:
        raise IncomparableError(
            f"{a.path} and {b.path} are not about the same: {'; '.join([*data, *units])}. "
            "To compare the units that both have nevertheless, pass --common, or common=True in "
            "Python."
        )
    shared = [unit for unit in a.units if unit in {*b.units}]
    both = _explained_in_both(a, b)
    if not both:
        raise IncomparableError(
            f"No unit is explained in both {a.path} and {b.path}, which share {len(shared)}. Go on "
            "with them first, or compare other runs."
        )
    if not data:
        check_contradictions(a, b, both)
    same_table = a.table == b.table
    unclear = {
        unit for unit in both if _may_coincide(a.found[unit], b.found[unit], same_table, not data)
    }
    locations = Locations(why_not="the tables differ")
    if unclear and same_table:
        locations = Locations.open((a, b), table)
    notes = [*different_questions(a, b), *data, *units]
    if unclear and locations.why_not is not None:
        why = locations.why_not
        notes.append(f"whether formulas hold at the same locations is not known: {why}")
    return Comparison(
        _side(a, shared, both),
        _side(b, shared, both),
        tuple(
            _compare_unit(unit, a.found[unit], b.found[unit], unit in unclear, locations)
            for unit in both
        ),
        tuple(notes),
    )


def _explained_in_both(a: LoadedRun, b: LoadedRun) -> list[int]:
    return [unit for unit in a.units if unit in a.found and unit in b.found]


def _may_coincide(a: Explanation, b: Explanation, same_table: bool, same_data: bool) -> bool:
    """Whether only the table can tell if both formulas hold at the same locations."""
    if a.formula is None or b.formula is None:
        return False
    if a.formula == b.formula:
        return not same_table
    return not same_data or a.score == b.score  # sets with other counts are other sets


def _compare_unit(
    unit: int, a: Explanation, b: Explanation, unclear: bool, locations: Locations
) -> ComparedUnit:
    same: bool | None = a.formula == b.formula
    if unclear and a.formula is not None and b.formula is not None:
        same = locations.same(a.formula, b.formula)
    return ComparedUnit(unit, a, b, category_of(a, b), same)


def _side(run: LoadedRun, shared: Sequence[int], compared: Sequence[int]) -> ComparedRun:
    return ComparedRun(
        str(run.path),
        run.method,
        sum(run.found[unit].status is Status.OPTIMAL for unit in compared),
        tuple(unit for unit in shared if unit in run.failed),
        tuple(unit for unit in shared if unit not in run.found and unit not in run.failed),
    )
