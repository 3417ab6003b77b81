"""Labels: the inner formulas of a place, many at a time, and what they share with every concept.

Two kernels give the same integers. On the host, what two concepts share is looked up in the pair
index, and the rest of a pair's counts follows from the Gram matrices. On the device, each label's
signatures are streamed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Int32, Int64, UInt32

from optexp_jax.concepts.signatures import Signatures
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.device_table import LANES, device_table
from optexp_jax.formula_batch import PADDING, FormulaBatch
from optexp_jax.neuron import NeuronCounts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.scores import signatures_held
from optexp_jax.shapes import round_up_by_fours
from optexp_jax.tight.forms import INTERSECTION, OPERATORS, UNION
from optexp_jax.tight.grams import HostGram
from optexp_jax.tight.pair_index import RowLists, pair_index
from optexp_jax.tracing import note_trace


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


class LabelCounts(eqx.Module):
    """Exact counts of labels in a region: their own, and of what they share with every concept."""

    inside: Int64[Array | np.ndarray, "*labels"]
    outside: Int64[Array | np.ndarray, "*labels"]
    shared_inside: Int64[Array | np.ndarray, "*labels concepts"]
    shared_outside: Int64[Array | np.ndarray, "*labels concepts"]


def count_labels(
    table: ConceptTable,
    neuron: NeuronCounts,
    labels: Labels,
    region: Bool[np.ndarray, " signatures"],
    gram: HostGram,
    on_host: bool | None = None,
) -> LabelCounts:
    """Counts of labels over a region, whose Gram matrices are known. The result is on the host."""
    if not (prefers_host_kernels() if on_host is None else on_host):
        return _on_device(table, neuron, labels, region)
    if labels.length == 2:
        return _pairs_on_host(table, neuron, labels, region, gram)
    return _chains_on_host(table, neuron, labels, region)


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

    form = labels.forms[:, 0]
    wider = np.flatnonzero(form != INTERSECTION)
    second = (form == UNION)[wider]

    def complete(common: np.ndarray, first: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Counts of `a∘b`, in place of those of `a AND b`."""
        is_union = second.reshape(-1, *[1] * (common.ndim - 1))
        common[wider] = first - common[wider] + is_union * other
        return common

    def count(
        pairs: Int64[np.ndarray, "n n"], weights: Int64[np.ndarray, " signatures"]
    ) -> tuple[Int64[np.ndarray, " labels"], Int64[np.ndarray, "labels concepts"]]:
        own, (x, y) = pairs.diagonal(), (a[wider], b[wider])
        shared = complete(_by_concept(both, weights, table.signatures), pairs[x], pairs[y])
        return complete(pairs[a, b], own[x], own[y]), shared

    inside, shared_inside = count(gram.inside, neuron.inside)
    outside, shared_outside = count(gram.outside, neuron.outside)
    return LabelCounts(inside, outside, shared_inside, shared_outside)


def _chains_on_host(
    table: ConceptTable,
    neuron: NeuronCounts,
    labels: Labels,
    region: Bool[np.ndarray, " signatures"],
) -> LabelCounts:
    signatures = table.signatures
    lists: list[Int32[np.ndarray, " rows"]] = []
    for inner, forms in zip(labels.inner.tolist(), labels.forms.tolist(), strict=True):
        held = signatures.membership(inner[0])
        for form, concept in zip(forms, inner[1:], strict=True):
            held = OPERATORS[form](held, signatures.membership(concept))
        lists.append(np.flatnonzero(held & region).astype(np.int32))
    ends = np.cumsum([0, *map(len, lists)])
    rows = RowLists(ends, np.concatenate([np.empty(0, np.int32), *lists]))

    def count(weights: Int64[np.ndarray, " signatures"]) -> Int64[np.ndarray, " labels"]:
        before = np.concatenate([[0], np.cumsum(weights[rows.rows])])
        return np.diff(before[rows.indptr])

    return LabelCounts(
        count(neuron.inside),
        count(neuron.outside),
        _by_concept(rows, neuron.inside, signatures),
        _by_concept(rows, neuron.outside, signatures),
    )


def _by_concept(
    lists: RowLists, weights: Int64[np.ndarray, " signatures"], signatures: Signatures
) -> Int64[np.ndarray, "lists concepts"]:
    """Weights summed over what each list shares with every concept: one sparse product."""
    shape = len(lists), len(signatures)
    weighted = scipy.sparse.csr_array((weights[lists.rows], lists.rows, lists.indptr), shape)
    return cast(scipy.sparse.csr_array, weighted @ signatures.incidence).toarray()


def _on_device(
    table: ConceptTable,
    neuron: NeuronCounts,
    labels: Labels,
    region: Bool[np.ndarray, " signatures"],
) -> LabelCounts:
    n = len(labels)
    labels = labels.take(np.minimum(np.arange(round_up_by_fours(n, 16)), n - 1))  # few shapes
    operators = np.column_stack([np.full(len(labels), PADDING, np.int32), labels.forms])
    with jax.enable_x64(True):
        counts = _stream(
            signatures_held(table, FormulaBatch(labels.inner, operators, OPERATORS)),
            jnp.asarray(neuron.inside * region),
            jnp.asarray(neuron.outside * region),
            *device_table(table).signature_entries,
            n_concepts=table.n_concepts,
        )
    return jax.tree.map(lambda part: np.asarray(part)[:n], counts)


@partial(jax.jit, static_argnames="n_concepts")
def _stream(
    held: UInt32[Array, "labels words"],
    inside: Int64[Array, " signatures"],
    outside: Int64[Array, " signatures"],
    owner: Int32[Array, " entries"],
    concept: Int32[Array, " entries"],
    *,
    n_concepts: int,
) -> LabelCounts:
    note_trace("count_labels")

    def of_one(words: UInt32[Array, " words"]) -> LabelCounts:
        lanes = jnp.arange(LANES, dtype=jnp.uint32)[None, :]
        bits = ((words[:, None] >> lanes) & 1).reshape(-1)[: len(inside)].astype(jnp.int64)

        def by_concept(weights: Int64[Array, " signatures"]) -> Int64[Array, " concepts"]:
            return jnp.zeros(n_concepts, jnp.int64).at[concept].add(weights[owner])

        i, e = bits * inside, bits * outside
        return LabelCounts(i.sum(), e.sum(), by_concept(i), by_concept(e))

    return jax.lax.map(of_one, held)
