"""Labels: inner formulas of a subproblem, many at a time, and what they share with every concept.

Most labels are pairs. On the host, what two concepts share is looked up in the pair index, and the
rest of a pair's counts follows from the Gram matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64, Shaped

from optexp_jax.bounds.tight.counts.device_labels import (
    LabelCounts,
    PairLabels,
    count_chain_labels,
    count_pair_labels,
)
from optexp_jax.bounds.tight.counts.device_lists import membership
from optexp_jax.bounds.tight.counts.pair_index import RowLists, pair_index
from optexp_jax.bounds.tight.operator_set import OPERATORS, joined
from optexp_jax.bounds.tight.search.subproblem import Subproblem
from optexp_jax.bounds.tight.tuning import SIGNATURES_AT_ONCE
from optexp_jax.concepts.signatures import ranges
from optexp_jax.counts.overlaps import overlaps_with_concepts
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.internal.transfers import run


@dataclass(frozen=True, eq=False)
class Labels:
    """Formulas of one length, one a row: `(inner[0] ops[0] inner[1]) ops[1] inner[2]`."""

    inner: Int32[np.ndarray, "labels length"]
    ops: Int32[np.ndarray, "labels steps"]

    def __len__(self) -> int:
        return len(self.inner)

    @property
    def length(self) -> int:
        """Concepts in each label."""
        return self.inner.shape[1]

    @classmethod
    def pairs(
        cls,
        op: Int32[np.ndarray, " labels"],
        a: Int32[np.ndarray, " labels"],
        b: Int32[np.ndarray, " labels"],
    ) -> "Labels":
        """Labels `a∘b`."""
        return cls(np.stack([a, b], axis=1), op[:, None])

    @classmethod
    def concatenate(cls, parts: Sequence["Labels"]) -> "Labels":
        """Labels of one length, one after another."""
        inner = np.concatenate([part.inner for part in parts])
        return cls(inner, np.concatenate([part.ops for part in parts]))

    def take(self, rows: np.ndarray | slice) -> "Labels":
        """Some of the labels."""
        return Labels(self.inner[rows], self.ops[rows])

    def joined(
        self, op: Int32[np.ndarray, " labels"], concept: Int32[np.ndarray, " labels"]
    ) -> "Labels":
        """Each label with one more step."""
        return Labels(np.column_stack([self.inner, concept]), np.column_stack([self.ops, op]))


def count_labels(sub: Subproblem, labels: Labels) -> LabelCounts:
    """Counts of labels over what is residual at a subproblem, on the host."""
    if labels.length == 2:
        return _pairs_on_host(sub, labels)
    formulas = FormulaBatch(labels.inner, _operators(labels), OPERATORS)
    found = overlaps_with_concepts(sub.table, sub.neuron, formulas, sub.residual, True)
    shared = (sub.concepts.pick(part) for part in (found.shared_inside, found.shared_outside))
    return LabelCounts(found.inside, found.outside, *shared)


def count_labels_on_device(sub: Subproblem, labels: Labels, first: int, size: int) -> LabelCounts:
    """The same, left on the device, for the labels from the `first` row of `size` rows on."""

    def filled(part: Shaped[np.ndarray, "labels ..."]) -> Shaped[np.ndarray, "size ..."]:
        rows = np.zeros((size, *part.shape[1:]), part.dtype)
        rows[first : first + len(part)] = part
        return rows

    if labels.length == 2:
        lists = pair_index(sub.table).lists_of(*labels.inner.T)
        columns = (labels.ops[:, 0], *sub.concepts.number[labels.inner].T)
        pairs = PairLabels(*(filled(part) for part in (lists.start, lists.count, *columns)))
        return run(count_pair_labels, sub.on_device, pairs)
    chains = filled(labels.inner), filled(_operators(labels)), operator_bits(OPERATORS)
    real = filled(np.ones(len(labels), bool))
    held = membership(sub.table, sub.overlaps.sizes)
    return run(count_chain_labels, sub.on_device, held, *chains, real)


def _operators(labels: Labels) -> Int32[np.ndarray, "labels length"]:
    return np.column_stack([np.full(len(labels), PADDING, np.int32), labels.ops])


def _pairs_on_host(sub: Subproblem, labels: Labels) -> LabelCounts:
    """Only what both concepts share has to be looked up; their own rows are known."""
    a, b = labels.inner.T
    both = pair_index(sub.table).signatures_of(a, b)
    if sub.steps:
        both = both.within(sub.residual)
    weights = np.stack([sub.neuron.inside, sub.neuron.outside])
    common = _by_concept(both, weights, sub)
    numbers = sub.concepts.number[labels.inner]
    inside, shared_inside = _complete(numbers, labels, sub.counts.inside, common[0])
    outside, shared_outside = _complete(numbers, labels, sub.counts.outside, common[1])
    return LabelCounts(inside, outside, shared_inside, shared_outside)


def _complete(
    numbers: Int32[np.ndarray, "labels two"],
    labels: Labels,
    pairs: Int64[np.ndarray, "n n"],
    common: Int64[np.ndarray, "labels n"],
) -> tuple[Int64[np.ndarray, " labels"], Int64[np.ndarray, "labels n"]]:
    """Counts of pairs `a∘b`, and of what they share, from what `a AND b` shares."""
    a, b = numbers.T
    op, own = labels.ops[:, 0], pairs.diagonal()
    held = joined(op, own[a], own[b], pairs[a, b], np)
    return held, joined(op[:, None], pairs[a], pairs[b], common, np)


def _by_concept(
    lists: RowLists, weights: Int64[np.ndarray, "sets signatures"], sub: Subproblem
) -> Int64[np.ndarray, "sets lists concepts"]:
    """Weights summed over what each list shares with every concept of a subproblem."""
    signatures, concepts = sub.table.signatures, sub.concepts
    # Concepts that are left out get a column of their own.
    n = concepts.size if concepts.is_everything else concepts.size + 1
    sums = np.zeros((len(weights), len(lists) * n))
    cells = np.repeat(np.arange(len(lists)) * n, np.diff(lists.indptr))
    for start in range(0, len(lists.rows), SIGNATURES_AT_ONCE):
        rows = lists.rows[start : start + SIGNATURES_AT_ONCE]
        lengths = signatures.lengths[rows]
        held = signatures.indices[ranges(signatures.indptr[rows], lengths)]
        if not concepts.is_everything:
            held = concepts.number[held]
        cell = np.repeat(cells[start : start + SIGNATURES_AT_ONCE], lengths) + held
        for total, part in zip(sums, weights[:, rows], strict=True):
            # Counts add up to less than 2**53, so that their sums as float64 are exact.
            total += np.bincount(cell, np.repeat(part, lengths), len(total))
    exact = sums.astype(np.int64).reshape(len(weights), -1, n)
    return exact[:, :, : concepts.size]
