"""Steps that no data can verify: filters that remove nothing of a part of what they filter.

In `((ball_pit OR flower) AND NOT dining)` the filter says something about `ball_pit` that the data
cannot show wrong if the two never meet: `((flower AND NOT dining) OR ball_pit)` holds at the same
locations and claims less. Among formulas that are level, the one with fewer such pairs of a filter
and a part comes first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, Operator


@dataclass(frozen=True)
class UnverifiedStep:
    """A filter and a part that it removes nothing of."""

    operator: Operator
    concept: str
    part: tuple[str, ...]
    """The concept of the part, or all that the core of the formula joins by AND."""

    def __str__(self) -> str:
        return f"{self.operator} {self.concept} removes nothing of {' AND '.join(self.part)}"


@dataclass(frozen=True, eq=False)
class _Part:
    concepts: tuple[str, ...]
    held: Bool[np.ndarray, " signatures"]


def unverified_steps(table: ConceptTable, formula: Formula) -> tuple[UnverifiedStep, ...]:
    """Every filter with every part that it removes nothing of, over all locations of the table.

    The parts of a chain are its core, the first concept with all that AND joins to it before the
    first OR, and each concept that OR joins. What stands before the first OR filters the core
    alone: if it removed nothing, a shorter formula would do. An operator of the user's own makes
    its concept a part if o(0, 1) is 1; it removes where the concept holds if o(1, 1) is 0, and
    where it does not if o(1, 0) is 0.
    """
    chain = formula.canonical  # Equal formulas have equal steps.
    there = table.sizes > 0

    def held(concept: str) -> Bool[np.ndarray, " signatures"]:
        return table.signatures.membership(table.concept_id(concept)) & there

    core, *others = chain.concepts
    parts = [_Part((core,), held(core))]
    found: list[UnverifiedStep] = []
    for operator, concept in zip(chain.operators, others, strict=True):
        mask = held(concept)
        if operator == AND and len(parts) == 1:
            parts = [_Part((*parts[0].concepts, concept), parts[0].held & mask)]
            continue
        filters = not (operator.p and operator.r)
        if filters and (operator.q or len(parts) > 1):
            for part in parts:
                kept = (operator.p & part.held & ~mask) | (operator.r & part.held & mask)
                if (kept == part.held).all():
                    found.append(UnverifiedStep(operator, concept, part.concepts))
        if operator.q:
            parts.append(_Part((concept,), mask))
    return tuple(found)


def formula_order(table: ConceptTable) -> Callable[[Formula], Any]:
    """The key by which formulas of equal IoU are sorted; it remembers what it was asked."""
    known: dict[Formula, tuple[int, int, Formula]] = {}

    def key(formula: Formula) -> tuple[int, int, Formula]:
        if formula not in known:
            known[formula] = len(formula), len(unverified_steps(table, formula)), formula
        return known[formula]

    return key
