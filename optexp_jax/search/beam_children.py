"""Exact scores of what beam members can become, from what they share with every concept.

With k the locations that P and c share, `P∘c` has `p(P − k) + q(c − k) + r·k` of them, inside the
neuron and outside. Two kernels count k and give the same integers: one touches only the signatures
that members hold, on the host; one streams over all of them on the device.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.neuron import NeuronCounts
from optexp_jax.operators import operator_bits
from optexp_jax.overlaps import Overlaps, overlaps_with_concepts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.scores import BatchScores, held_on_host
from optexp_jax.search.beam_candidates import Candidates

BLOCK = 2**19
"""About how many members times signatures are looked at at once, so that they stay in the cache."""


@dataclass(frozen=True, eq=False)
class Children:
    """The scores of all candidates that join a member to a concept, made when asked for."""

    members: BatchScores
    concepts: BatchScores
    shared: Overlaps
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
            inside + weight * shared.inside[m, c],
            outside + weight * shared.outside[m, c],
            right.neuron_size,
        )


def children_of(
    table: ConceptTable,
    neuron: NeuronCounts,
    members: FormulaBatch,
    scores: BatchScores,
    concepts: BatchScores,
    on_host: bool | None = None,
) -> Children:
    """Everything that scores need; `members` may have more rows than there are `scores`."""
    n = len(scores)
    if prefers_host_kernels() if on_host is None else on_host:
        shared = _share_on_host(table, neuron, members.part(0, n))
    else:
        found = overlaps_with_concepts(table, neuron, members)
        shared = Overlaps(found.inside[:n], found.outside[:n])
    bits = operator_bits(members.operator_set).T.astype(np.int64)
    return Children(scores, concepts, shared, bits)


def _share_on_host(table: ConceptTable, neuron: NeuronCounts, members: FormulaBatch) -> Overlaps:
    """What members share with every concept, a block of members after another."""
    step = max(1, BLOCK // len(table.signatures))
    blocks = [
        _share_block(table, neuron, held_on_host(table, members.part(start, start + step)))
        for start in range(0, len(members), step)
    ]
    inside, outside = np.concatenate(blocks, axis=1)
    return Overlaps(inside, outside)


def _share_block(
    table: ConceptTable, neuron: NeuronCounts, held: Bool[np.ndarray, "members signatures"]
) -> Int64[np.ndarray, "two members concepts"]:
    signatures = table.signatures
    # One dimension: numpy finds what is not zero in matrices several times slower.
    cell = np.flatnonzero(held.reshape(-1))
    member = np.repeat(np.arange(len(held)), held.sum(1))
    signature = cell - member * len(signatures)
    counts = signatures.lengths[signature]
    first = signatures.indptr[signature] - np.cumsum(counts) + counts
    entry = np.arange(counts.sum()) + np.repeat(first, counts)
    pair = np.repeat(member * table.n_concepts, counts) + signatures.indices[entry]
    shape = 2, len(held), table.n_concepts
    # Counts add up to less than 2**53, so that their sums as float64 are exact.
    weights = (part[signature].astype(np.float64) for part in (neuron.inside, neuron.outside))
    sums = [np.bincount(pair, np.repeat(part, counts), shape[1] * shape[2]) for part in weights]
    return np.stack(sums).astype(np.int64).reshape(shape)
