"""A second proof of the highest cosine or phi: every formula is tried, where that is affordable."""

from fractions import Fraction

import numpy as np

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Margins
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation, Status
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.methods.exhaustive import OVERHEAD
from optexp_jax.methods.oracle import best_by, count_formulas
from optexp_jax.runs.reproof import ALL_TRIED, Reproof

ORACLE_WORK = 3 * 10**8
"""Formulas times signatures that the oracle gets through in a few seconds."""


def reprove_objective(
    table: ConceptTable, neuron: NeuronCounts, space: FormulaSpace, found: Explanation
) -> Reproof:
    """Try to show that no formula has a higher value of its objective than an explanation says."""
    n_formulas = count_formulas(table.n_concepts, space.length, len(space.operators))
    if n_formulas * max(len(table.signatures), OVERHEAD) > ORACLE_WORK:
        return Reproof("too many formulas to try all of them", proved=False)
    margins, objective = Margins(neuron.size, table.n_locations), space.objective

    def key(intersection: int, extras: int) -> Fraction:
        return margins.key(objective, extras, intersection)

    best = best_by(
        np.stack([table.signatures.membership(k) for k in range(table.n_concepts)]),
        neuron.inside,
        neuron.outside,
        table.names,
        space.length,
        space.operators,
        key,
    )
    highest = max(key(best.intersection, best.extras), Fraction(0))
    score = Score(best.intersection, neuron.size + best.extras)
    if found.status is not Status.OPTIMAL:
        above = margins.value(objective, highest) > found.upper_bound
        return Reproof(ALL_TRIED, proved=not above, better=score if above else None)
    claimed = max(key(found.intersection, found.union - neuron.size), Fraction(0))
    if highest != claimed:
        return Reproof(ALL_TRIED, proved=False, better=score)
    return Reproof(ALL_TRIED, proved=True, first=best.formula if highest > 0 else None)
