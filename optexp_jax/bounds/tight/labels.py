"""Labels: the inner formulas of a place, many at a time, and what they share with every concept.

Most labels are pairs. On the host, what two concepts share is looked up in the pair index, and the
rest of a pair's counts follows from the Gram matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64, Shaped

from optexp_jax.bounds.tight.forms import INTERSECTION, OPERATORS, UNION
from optexp_jax.bounds.tight.label_counts import LabelCounts
from optexp_jax.bounds.tight.labels_on_device import (
    PairLabels,
    count_chain_labels,
    count_pair_labels,
)
from optexp_jax.bounds.tight.pair_index import RowLists, pair_index
from optexp_jax.bounds.tight.place import Place
from optexp_jax.bounds.tight.sparse_table import membership
from optexp_jax.bounds.tight.tuning import SIGNATURES_AT_ONCE
from optexp_jax.concepts.signatures import ranges
from optexp_jax.counts.overlaps import overlaps_with_concepts
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.internal.transfers import run


@dataclass(frozen=True, eq=False)
class Labels:
    """Formulas of one length, one a row: `(inner[0] forms[0] inner[1]) forms[1] inner[2]`."""

    inner: Int32[np.ndarray, "labels length"]
    forms: Int32[np.ndarray, "labels steps"]

    def __len__(self) -> int:
        return len(self.inner)

    @property
    def length(self) -> int:
        """Concepts in each label."""
        return self.inner.shape[1]

    @classmethod
    def pairs(
        cls,
        form: Int32[np.ndarray, " labels"],
        a: Int32[np.ndarray, " labels"],
        b: Int32[np.ndarray, " labels"],
    ) -> "Labels":
        """Labels `a∘b`."""
        return cls(np.stack([a, b], axis=1), form[:, None])

    @classmethod
    def concatenate(cls, parts: Sequence["Labels"]) -> "Labels":
        """Labels of one length, one after another."""
        inner = np.concatenate([part.inner for part in parts])
        return cls(inner, np.concatenate([part.forms for part in parts]))

    def take(self, rows: np.ndarray | slice) -> "Labels":
        """Some of the labels."""
        return Labels(self.inner[rows], self.forms[rows])

    def joined(
        self, form: Int32[np.ndarray, " labels"], concept: Int32[np.ndarray, " labels"]
    ) -> "Labels":
        """Each label with one more step."""
        return Labels(np.column_stack([self.inner, concept]), np.column_stack([self.forms, form]))


def count_labels(place: Place, labels: Labels) -> LabelCounts:
    """Counts of labels over what is undecided at a place, on the host."""
    if labels.length == 2:
        return _pairs_on_host(place, labels)
    formulas = FormulaBatch(labels.inner, _operators(labels), OPERATORS)
    found = overlaps_with_concepts(place.table, place.neuron, formulas, place.undecided, True)
    shared = (place.concepts.pick(part) for part in (found.shared_inside, found.shared_outside))
    return LabelCounts(found.inside, found.outside, *shared)


def count_labels_on_device(place: Place, labels: Labels, first: int, size: int) -> LabelCounts:
    """The same, left on the device, for the labels from the `first` row of `size` rows on."""

    def filled(part: Shaped[np.ndarray, "labels ..."]) -> Shaped[np.ndarray, "size ..."]:
        rows = np.zeros((size, *part.shape[1:]), part.dtype)
        rows[first : first + len(part)] = part
        return rows

    if labels.length == 2:
        lists = pair_index(place.table).lists_of(*labels.inner.T)
        columns = (labels.forms[:, 0], *place.concepts.number[labels.inner].T)
        pairs = PairLabels(*(filled(part) for part in (lists.start, lists.count, *columns)))
        return run(count_pair_labels, place.on_device, pairs)
    chains = filled(labels.inner), filled(_operators(labels)), operator_bits(OPERATORS)
    real = filled(np.ones(len(labels), bool))
    held = membership(place.table, place.overlaps.sizes)
    return run(count_chain_labels, place.on_device, held, *chains, real)


def _operators(labels: Labels) -> Int32[np.ndarray, "labels length"]:
    return np.column_stack([np.full(len(labels), PADDING, np.int32), labels.forms])


def _pairs_on_host(place: Place, labels: Labels) -> LabelCounts:
    """Only what both concepts share has to be looked up; their own rows are known."""
    a, b = labels.inner.T
    both = pair_index(place.table).signatures_of(a, b)
    if place.steps:
        both = both.within(place.undecided)
    weights = np.stack([place.neuron.inside, place.neuron.outside])
    common = _by_concept(both, weights, place)
    numbers = place.concepts.number[labels.inner]
    inside, shared_inside = _complete(numbers, labels, place.counts.inside, common[0])
    outside, shared_outside = _complete(numbers, labels, place.counts.outside, common[1])
    return LabelCounts(inside, outside, shared_inside, shared_outside)


def _complete(
    numbers: Int32[np.ndarray, "labels two"],
    labels: Labels,
    pairs: Int64[np.ndarray, "n n"],
    common: Int64[np.ndarray, "labels n"],
) -> tuple[Int64[np.ndarray, " labels"], Int64[np.ndarray, "labels n"]]:
    """Counts of pairs `a∘b`, and of what they share, from what `a AND b` shares."""
    a, b = numbers.T
    form = labels.forms[:, 0]
    own, held = pairs.diagonal(), pairs[a, b]
    wider = np.flatnonzero(form != INTERSECTION)
    x, y, is_union = a[wider], b[wider], form[wider] == UNION
    held[wider] = own[x] - held[wider] + is_union * own[y]
    common[wider] = pairs[x] - common[wider] + is_union[:, None] * pairs[y]
    return held, common


def _by_concept(
    lists: RowLists, weights: Int64[np.ndarray, "sets signatures"], place: Place
) -> Int64[np.ndarray, "sets lists concepts"]:
    """Weights summed over what each list shares with every concept of a place."""
    signatures, concepts = place.table.signatures, place.concepts
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
