"""Exact scores of what beam members can become, from what they share with every concept."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.overlaps import FormulaOverlaps, overlaps_with_concepts
from optexp_jax.counts.scores import BatchScores
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.methods.beam.candidates import Candidates


@dataclass(frozen=True, eq=False)
class BeamChildren:
    """The scores of all candidates that join a member to a concept, made when asked for."""

    members: BatchScores
    concepts: BatchScores
    shared: FormulaOverlaps
    bits: Int64[np.ndarray, "3 operators"]
    """o(1,0), o(0,1), o(1,1) as 0 or 1."""

    def scores(self, candidates: Candidates) -> BatchScores:
        """The exact scores of some of them."""
        m, c = candidates.member, candidates.concept
        p, q, r = self.bits[:, candidates.operator]
        weight = r - p - q
        left, right, shared = self.members, self.concepts, self.shared
        inside = p * left.intersections[m] + q * right.intersections[c]
        outside = p * left.extras[m] + q * right.extras[c]
        return BatchScores(
            inside + weight * shared.shared_inside[m, c],
            outside + weight * shared.shared_outside[m, c],
            right.neuron_size,
        )


def children_of(
    table: ConceptTable,
    neuron: NeuronCounts,
    members: FormulaBatch,
    scores: BatchScores,
    concepts: BatchScores,
    on_host: bool | None = None,
) -> BeamChildren:
    """Everything that scores need; `members` may have more rows than there are `scores`."""
    if prefers_host_kernels() if on_host is None else on_host:
        shared = overlaps_with_concepts(table, neuron, members.part(0, len(scores)), on_host=True)
    else:  # Programs are compiled for the rows that there are.
        shared = overlaps_with_concepts(table, neuron, members, on_host=False).first(len(scores))
    bits = operator_bits(members.operator_set).T.astype(np.int64)
    return BeamChildren(scores, concepts, shared, bits)
