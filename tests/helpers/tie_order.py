"""The order of formulas that are level, one location at a time and with no code of the package."""

from collections.abc import Sequence
from typing import Any

from helpers.strategies import BUT, XOR
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, AND_NOT, OR

REMOVES = {
    # Whether a step takes away a location that its concept does not hold, and one that it holds.
    OR: (False, False),
    AND: (True, False),
    AND_NOT: (False, True),
    XOR: (False, True),
    BUT: (True, True),
}
ADDS = {OR, XOR, BUT}


def plain_unverified(formula: Formula, locations: Sequence[dict[str, bool]]) -> int:
    """Pairs of a filter and a part that it removes nothing of."""
    chain = formula.canonical
    parts = [[chain.concepts[0]]]
    pairs = 0
    for operator, name in zip(chain.operators, chain.concepts[1:], strict=True):
        if operator == AND and len(parts) == 1:
            parts[0].append(name)
            continue
        if REMOVES[operator] != (False, False) and (operator in ADDS or len(parts) > 1):
            for part in parts:
                removed = [
                    here
                    for here in locations
                    if all(here[concept] for concept in part) and REMOVES[operator][here[name]]
                ]
                pairs += not removed
        if operator in ADDS:
            parts.append([name])
    return pairs


def tie_key(formula: Formula, locations: Sequence[dict[str, bool]]) -> tuple[Any, ...]:
    """The shortest, then the one with fewest unverified pairs, then by names and operators."""
    canonical = formula.canonical
    rank = [OR, AND, AND_NOT, BUT, XOR]
    return (
        len(formula),
        plain_unverified(formula, locations),
        canonical.concepts,
        [rank.index(operator) for operator in canonical.operators],
    )
