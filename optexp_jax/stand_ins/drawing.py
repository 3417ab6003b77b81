"""Formulas drawn at random, for units to be planted on."""

from collections.abc import Sequence

import numpy as np

from optexp_jax.concepts import ConceptTable
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, AND_NOT, OR

OPERATORS, CHANCES = (OR, AND, AND_NOT), (0.5, 0.2, 0.3)
MOST_CONCEPTS = 4


def draw_formula(
    rng: np.random.Generator, table: ConceptTable, names: Sequence[str] | None = None
) -> Formula:
    """A formula of one to four concepts in which every step changes something.

    Concepts are drawn from `names`, or from all of the table.
    """
    candidates = table.names if names is None else names
    formula = Formula.concept(candidates[int(rng.integers(len(candidates)))])
    for _ in range(rng.integers(MOST_CONCEPTS)):
        operator = OPERATORS[rng.choice(len(OPERATORS), p=CHANCES)]
        name = candidates[int(rng.integers(len(candidates)))]
        if name in formula.concepts:
            continue
        grown = formula.then(operator, name)
        before, after = (int(table.sizes[table.holds(f)].sum()) for f in (formula, grown))
        if after not in (0, before):
            formula = grown
    return formula
