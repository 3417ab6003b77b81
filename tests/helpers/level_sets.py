"""Every set of locations that a formula can hold, by plain enumeration: what several formulas are
checked against."""

from dataclasses import dataclass
from fractions import Fraction

import optexp_jax as ox
from helpers.search_cases import Bucket
from helpers.tie_order import tie_key
from optexp_jax.methods.oracle import enumerate_formulas
from optexp_jax.testing import Case


@dataclass(frozen=True)
class Kept:
    """A set of locations: its shortest formulas, in the order of those that are level."""

    ratio: Fraction
    formulas: tuple[ox.Formula, ...]


def every_set(case: Case, bucket: Bucket) -> list[Kept]:
    """All sets of locations that overlap the neuron, best first, by plain enumeration."""
    inside, outside = case.inside.reshape(-1), case.outside.reshape(-1)
    size = int(inside.sum())
    found: dict[bytes, tuple[Fraction, set[ox.Formula]]] = {}
    # Columns without locations do not tell sets apart.
    there = inside + outside > 0
    locations = [
        dict(zip(case.names, column.tolist(), strict=True)) for column in case.columns.T[there]
    ]

    def order(formula: ox.Formula) -> tuple:
        return tie_key(formula, locations)

    for scored in enumerate_formulas(
        case.columns, inside, outside, bucket.length, bucket.operators
    ):
        for row in range(len(scored.intersections)):
            if scored.intersections[row]:
                formula = scored.formula(row, case.names, bucket.operators)
                ratio = Fraction(int(scored.intersections[row]), size + int(scored.extras[row]))
                key = scored.masks[row][there].tobytes()
                found.setdefault(key, (ratio, set()))[1].add(formula)
    kept: list[Kept] = []
    for ratio, formulas in found.values():
        shortest = min(map(len, formulas))
        level = (formula for formula in formulas if len(formula) == shortest)
        kept.append(Kept(ratio, tuple(sorted(level, key=order))))
    return sorted(kept, key=lambda each: (-each.ratio, order(each.formulas[0])))


def told(found: ox.Explanation) -> list[Kept]:
    """What an explanation lists, in the same form."""
    if found.formula is None:
        return []
    best = Kept(found.score.ratio, (found.formula, *found.equivalents))
    others = (
        Kept(Fraction(r.intersection, r.union), (r.formula, *r.equivalents))
        for r in found.runners_up
    )
    return [best, *others]


def first_equivalents(sets: list[Kept]) -> list[Kept]:
    return [Kept(each.ratio, each.formulas[:21]) for each in sets]


def sets_within(share: float, sets: list[Kept]) -> list[Kept]:
    """Those that lack at most a share of the first one's IoU, the share as it is written."""
    return [each for each in sets if each.ratio >= sets[0].ratio * (1 - Fraction(str(share)))]
