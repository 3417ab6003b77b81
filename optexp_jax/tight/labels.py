"""Labels: the inner formulas of a place, many at a time, and what they share with every concept.

Most labels are pairs. On the host, what two concepts share is looked up in the pair index, and the
rest of a pair's counts follows from the Gram matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Bool, Int32, Int64

from optexp_jax.concepts.signatures import Signatures, ranges
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.formula_batch import PADDING, FormulaBatch
from optexp_jax.neuron import NeuronCounts
from optexp_jax.overlaps import overlaps_with_concepts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import INTERSECTION, OPERATORS, UNION
from optexp_jax.tight.grams import HostGram
from optexp_jax.tight.pair_index import RowLists, pair_index

ROWS_AT_ONCE = 2**18
"""Signatures that are looked at at once."""


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


@pytree
class LabelCounts:
    """Exact counts of labels in a region: their own, and of what they share with every concept."""

    inside: Int64[Array | np.ndarray, " labels"]
    outside: Int64[Array | np.ndarray, " labels"]
    shared_inside: Int64[Array | np.ndarray, "labels concepts"]
    shared_outside: Int64[Array | np.ndarray, "labels concepts"]


def count_labels(
    table: ConceptTable,
    neuron: NeuronCounts,
    labels: Labels,
    region: Bool[np.ndarray, " signatures"],
    gram: HostGram,
    on_host: bool | None = None,
) -> LabelCounts:
    """Counts of labels over a region, whose Gram matrices are known."""
    on_host = prefers_host_kernels() if on_host is None else on_host
    if on_host and labels.length == 2:
        return _pairs_on_host(table, neuron, labels, region, gram)
    operators = np.column_stack([np.full(len(labels), PADDING, np.int32), labels.forms])
    formulas = FormulaBatch(labels.inner, operators, OPERATORS)
    found = overlaps_with_concepts(table, neuron, formulas, region, on_host)
    return LabelCounts(found.inside, found.outside, found.shared_inside, found.shared_outside)


def _pairs_on_host(
    table: ConceptTable,
    neuron: NeuronCounts,
    labels: Labels,
    region: Bool[np.ndarray, " signatures"],
    gram: HostGram,
) -> LabelCounts:
    """Only what both concepts share has to be looked up; their own rows are known."""
    a, b = labels.inner.T
    both = pair_index(table).signatures_of(a, b)
    if not region.all():
        both = both.within(region)

    common = _by_concept(both, np.stack([neuron.inside, neuron.outside]), table.signatures)
    inside, shared_inside = _complete(labels, gram.inside, common[0])
    outside, shared_outside = _complete(labels, gram.outside, common[1])
    return LabelCounts(inside, outside, shared_inside, shared_outside)


def _complete(
    labels: Labels, pairs: Int64[np.ndarray, "n n"], common: Int64[np.ndarray, "labels n"]
) -> tuple[Int64[np.ndarray, " labels"], Int64[np.ndarray, "labels n"]]:
    """Counts of pairs `a∘b`, and of what they share, from what `a AND b` shares."""
    a, b = labels.inner.T
    form = labels.forms[:, 0]
    own, held = pairs.diagonal(), pairs[a, b]
    wider = np.flatnonzero(form != INTERSECTION)
    x, y, is_union = a[wider], b[wider], form[wider] == UNION
    held[wider] = own[x] - held[wider] + is_union * own[y]
    common[wider] = pairs[x] - common[wider] + is_union[:, None] * pairs[y]
    return held, common


def _by_concept(
    lists: RowLists, weights: Int64[np.ndarray, "sets signatures"], signatures: Signatures
) -> Int64[np.ndarray, "sets lists concepts"]:
    """Weights summed over what each list shares with every concept."""
    n = signatures.n_concepts
    sums = np.zeros((len(weights), len(lists) * n))
    cells = np.repeat(np.arange(len(lists)) * n, np.diff(lists.indptr))
    for start in range(0, len(lists.rows), ROWS_AT_ONCE):
        rows = lists.rows[start : start + ROWS_AT_ONCE]
        lengths = signatures.lengths[rows]
        entries = ranges(signatures.indptr[rows], lengths)
        first = np.repeat(cells[start : start + ROWS_AT_ONCE], lengths)
        cell = first + signatures.indices[entries]
        for total, part in zip(sums, weights[:, rows], strict=True):
            # Counts add up to less than 2**53, so that their sums as float64 are exact.
            total += np.bincount(cell, np.repeat(part, lengths), len(total))
    return sums.astype(np.int64).reshape(len(weights), -1, n)
