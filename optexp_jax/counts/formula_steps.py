"""What each step of a formula adds and removes, in the paper's quantities.

Inside the neuron lies the intersection of a formula, outside lie its extras. Each is split into
*unique* locations, which have exactly one concept, and *common* ones, which have several.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator


@dataclass(frozen=True)
class SplitCounts:
    """I^U, I^C, E^U and E^C of a formula, or how a step changes them, in exact locations."""

    unique_intersection: int
    common_intersection: int
    unique_extras: int
    common_extras: int

    @property
    def intersection(self) -> int:
        return self.unique_intersection + self.common_intersection

    @property
    def extras(self) -> int:
        return self.unique_extras + self.common_extras

    def minus(self, other: "SplitCounts") -> "SplitCounts":
        """How much more of each there is here."""
        return SplitCounts(
            self.unique_intersection - other.unique_intersection,
            self.common_intersection - other.common_intersection,
            self.unique_extras - other.unique_extras,
            self.common_extras - other.common_extras,
        )


@dataclass(frozen=True)
class FormulaStep:
    """One concept of a formula: how it is joined, and what that changes."""

    operator: Operator | None
    """None for the first concept."""
    concept: str
    after: SplitCounts
    """Of the formula up to here."""
    change: SplitCounts
    score: Score
    """Of the formula up to here."""


def formula_steps(
    table: ConceptTable, counts: NeuronCounts, formula: Formula
) -> tuple[FormulaStep, ...]:
    """The steps of the canonical chain, the one that is printed."""
    chain = formula.canonical
    lengths = table.signatures.lengths
    before = SplitCounts(0, 0, 0, 0)
    steps: list[FormulaStep] = []
    held: Bool[np.ndarray, " signatures"] = np.zeros(len(lengths), np.bool_)
    for place, concept in enumerate(chain.concepts):
        member = table.signatures.membership(table.concept_id(concept))
        operator = chain.operators[place - 1] if place else None
        held = member if operator is None else operator(held, member)
        after = split_counts(counts, held, lengths)
        score = Score(after.intersection, counts.size + after.extras)
        steps.append(FormulaStep(operator, concept, after, after.minus(before), score))
        before = after
    return tuple(steps)


def split_counts(
    counts: NeuronCounts,
    held: Bool[np.ndarray, " signatures"],
    lengths: Int64[np.ndarray, " signatures"],
) -> SplitCounts:
    """The quantities of the signatures where something holds."""
    unique, common = held & (lengths == 1), held & (lengths > 1)
    return SplitCounts(
        int(counts.inside[unique].sum()),
        int(counts.inside[common].sum()),
        int(counts.outside[unique].sum()),
        int(counts.outside[common].sum()),
    )
