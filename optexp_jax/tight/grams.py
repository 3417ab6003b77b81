"""Exact overlaps over a region: of all pairs of concepts, and of one label with every concept.

A region is a set of signatures. Two kernels give the same integers: one touches only the signatures
of the region, on the host; one streams over all entries with the others weighted 0, on the device.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Float64, Int32, Int64, Num

from optexp_jax.concepts.signatures import Signatures
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.neuron import NeuronCounts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.tracing import note_trace


class Gram(eqx.Module):
    """`inside[a, b] = |a ∩ b ∩ N|` and `outside[a, b] = |a ∩ b \\ N|` over a region."""

    inside: Int64[Array, "concepts concepts"]
    outside: Int64[Array, "concepts concepts"]


@dataclass(frozen=True, eq=False)
class LabelOverlaps:
    """What a label shares with every concept, inside the neuron and outside."""

    inside: Int64[np.ndarray, "*rows concepts"]
    outside: Int64[np.ndarray, "*rows concepts"]

    def __add__(self, other: "LabelOverlaps") -> "LabelOverlaps":
        return LabelOverlaps(self.inside + other.inside, self.outside + other.outside)

    def __sub__(self, other: "LabelOverlaps") -> "LabelOverlaps":
        return LabelOverlaps(self.inside - other.inside, self.outside - other.outside)


class PairIndex:
    """All pairs a <= b of concepts that share a signature, signature by signature."""

    def __init__(self, signatures: Signatures):
        self.n_concepts = signatures.n_concepts
        self.total: Int64[Array, "concepts concepts"] | None = None
        lengths = signatures.lengths
        counts = lengths * (lengths + 1) // 2
        self.indptr = np.concatenate([[0], np.cumsum(counts)])
        cell = np.empty(self.indptr[-1], np.int32)
        for length in np.unique(lengths[lengths > 0]):
            rows = np.flatnonzero(lengths == length)
            concepts = signatures.indices[signatures.indptr[rows][:, None] + np.arange(length)]
            first, second = np.triu_indices(length)
            cells = concepts[:, first].astype(np.int64) * self.n_concepts + concepts[:, second]
            cell[self.indptr[rows][:, None] + np.arange(len(first))] = cells
        self.cell: Int32[np.ndarray, " pairs"] = cell
        self.owner: Int32[np.ndarray, " pairs"] = np.repeat(
            np.arange(len(signatures), dtype=np.int32), counts
        )

    @cached_property
    def on_device(self) -> tuple[Int32[Array, " pairs"], Int32[Array, " pairs"]]:
        return jnp.asarray(self.cell), jnp.asarray(self.owner)

    @cached_property
    def _cells(self) -> Int32[np.ndarray, " cells"]:
        """The cells that any signature has a pair in."""
        return np.unique(self.cell)

    @cached_property
    def _matrix(self) -> scipy.sparse.csr_matrix:
        """Which signatures have a pair in each of those cells."""
        rows = np.searchsorted(self._cells, self.cell)
        ones = np.ones(len(self.cell))
        shape = len(self._cells), len(self.indptr) - 1
        return scipy.sparse.csr_matrix((ones, (rows, self.owner)), shape)

    def sum_many_on_host(
        self, weights: Int64[np.ndarray, "units signatures"]
    ) -> Float64[np.ndarray, "units n n"]:
        """Weights of signatures summed by pair, upper triangle only: one sparse product.

        The weights are integers below 2**53 in sum, so adding them as float64 is exact.
        """
        sums = np.zeros((len(weights), self.n_concepts**2))
        sums[:, self._cells] = (self._matrix @ np.ascontiguousarray(weights.T, np.float64)).T
        return sums.reshape(-1, self.n_concepts, self.n_concepts)

    def sum_on_host(self, weights: Int64[np.ndarray, " signatures"]) -> Float64[np.ndarray, "n n"]:
        """The same of one unit; of few signatures without a look at the others."""
        rows = np.flatnonzero(weights)
        if len(rows) * 4 > len(weights):
            return self.sum_many_on_host(weights[None])[0]
        starts, counts = self.indptr[rows], np.diff(self.indptr)[rows]
        at = ranges(starts, counts)
        sums = np.bincount(
            self.cell[at], np.repeat(weights[rows], counts), minlength=self.n_concepts**2
        )
        # Of nothing, numpy counts in integers.
        return sums.astype(np.float64, copy=False).reshape(self.n_concepts, self.n_concepts)


def ranges(
    starts: Int64[np.ndarray, " rows"], counts: Int64[np.ndarray, " rows"]
) -> Int64[np.ndarray, " entries"]:
    """`starts[i], starts[i] + 1, ...`, counts[i] of them, one row after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - counts), counts)


@partial(jax.jit, static_argnames="n_concepts")
def _sum_on_device(
    weights: Int64[Array, " signatures"],
    cell: Int32[Array, " pairs"],
    owner: Int32[Array, " pairs"],
    *,
    n_concepts: int,
) -> Int64[Array, "concepts concepts"]:
    note_trace("gram")
    return jnp.zeros(n_concepts**2, jnp.int64).at[cell].add(weights[owner]).reshape(n_concepts, -1)


@partial(jax.jit, static_argnames="n_concepts")
def _sum_many_on_device(
    weights: Int64[Array, "units signatures"],
    cell: Int32[Array, " pairs"],
    owner: Int32[Array, " pairs"],
    *,
    n_concepts: int,
) -> Int64[Array, "units concepts concepts"]:
    note_trace("grams")
    # One sum over wide rows is faster than one a unit.
    sums = jnp.zeros((n_concepts**2, len(weights)), jnp.int64).at[cell].add(weights.T[owner])
    return sums.T.reshape(-1, n_concepts, n_concepts)


@jax.jit
def _mirror(upper: Num[Array, "n n"]) -> Int64[Array, "n n"]:
    note_trace("mirror")
    exact = upper.astype(jnp.int64)
    return exact + jnp.triu(exact, 1).T


_indices: weakref.WeakKeyDictionary[ConceptTable, PairIndex] = weakref.WeakKeyDictionary()


def pair_index(table: ConceptTable) -> PairIndex:
    """The pair index of a table; the same object for as long as the table lives."""
    if table not in _indices:
        _indices[table] = PairIndex(table.signatures)
    return _indices[table]


_prepared: weakref.WeakKeyDictionary[NeuronCounts, Int64[Array, "concepts concepts"]] = (
    weakref.WeakKeyDictionary()
)


def prepare_grams(
    table: ConceptTable, neurons: Sequence[NeuronCounts], on_host: bool | None = None
) -> None:
    """Sum up the Gram matrices of several neurons in one call, for the searches that come next."""
    index = pair_index(table)
    weights = np.stack([neuron.inside for neuron in neurons])
    with jax.enable_x64(True):
        if prefers_host_kernels() if on_host is None else on_host:
            sums = jnp.asarray(index.sum_many_on_host(weights))
        else:
            sums = _sum_many_on_device(
                jnp.asarray(weights), *index.on_device, n_concepts=index.n_concepts
            )
        for neuron, upper in zip(neurons, sums, strict=True):
            _prepared[neuron] = _mirror(upper)


class Overlaps:
    """Overlaps of one neuron's concepts, over any region of its table."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts, on_host: bool | None = None):
        self._table = table
        self._neuron = neuron
        self._on_host = prefers_host_kernels() if on_host is None else on_host

    @cached_property
    def everywhere(self) -> Gram:
        """The Gram matrices of the whole table; what all neurons share is computed once."""
        index = pair_index(self._table)
        if index.total is None:
            index.total = self._sum(self._table.sizes)
        inside = _prepared.pop(self._neuron, None)
        if inside is None:
            inside = self._sum(self._neuron.inside)
        with jax.enable_x64(True):
            return Gram(inside, _difference(index.total, inside))

    def gram(self, region: Bool[np.ndarray, " signatures"]) -> Gram:
        """The Gram matrices of a region; from its complement where that is smaller."""
        inside, outside = self._neuron.inside, self._neuron.outside
        if region.sum() * 2 <= len(region):
            return self._gram(inside * region, outside * region)
        rest = self._gram(inside * ~region, outside * ~region)
        with jax.enable_x64(True):
            return Gram(
                _difference(self.everywhere.inside, rest.inside),
                _difference(self.everywhere.outside, rest.outside),
            )

    def of_rows(self, rows: Int64[np.ndarray, " rows"]) -> LabelOverlaps:
        """What a label, given by its signatures, shares with every concept."""
        signatures = self._table.signatures
        counts = signatures.lengths[rows]
        concepts = signatures.indices[ranges(signatures.indptr[rows], counts)]

        def by_concept(weights: Int64[np.ndarray, " rows"]) -> Int64[np.ndarray, " concepts"]:
            sums = np.bincount(concepts, np.repeat(weights, counts), signatures.n_concepts)
            return sums.astype(np.int64)  # exact: see PairIndex.sum_on_host

        return LabelOverlaps(
            by_concept(self._neuron.inside[rows]), by_concept(self._neuron.outside[rows])
        )

    def of_region(self, region: Bool[np.ndarray, " signatures"]) -> LabelOverlaps:
        """What a region shares with every concept; from its complement where that is smaller."""
        if region.sum() * 2 <= len(region):
            return self.of_rows(np.flatnonzero(region))
        return self.own - self.of_rows(np.flatnonzero(~region))

    def of_concept(self, concept: int) -> LabelOverlaps:
        """What a concept shares with every other."""
        return LabelOverlaps(self._rows.inside[concept], self._rows.outside[concept])

    @cached_property
    def own(self) -> LabelOverlaps:
        """The counts of every concept."""
        return LabelOverlaps(self._rows.inside.diagonal(), self._rows.outside.diagonal())

    @cached_property
    def _rows(self) -> LabelOverlaps:
        gram = self.everywhere
        return LabelOverlaps(np.asarray(gram.inside), np.asarray(gram.outside))

    def _gram(
        self,
        inside: Int64[np.ndarray, " signatures"],
        outside: Int64[np.ndarray, " signatures"],
    ) -> Gram:
        return Gram(self._sum(inside), self._sum(outside))

    def _sum(self, weights: Int64[np.ndarray, " signatures"]) -> Int64[Array, "concepts concepts"]:
        index = pair_index(self._table)
        with jax.enable_x64(True):
            if self._on_host:
                return _mirror(jnp.asarray(index.sum_on_host(weights)))
            return _mirror(
                _sum_on_device(jnp.asarray(weights), *index.on_device, n_concepts=index.n_concepts)
            )


@jax.jit
def _difference(whole: Int64[Array, "n n"], part: Int64[Array, "n n"]) -> Int64[Array, "n n"]:
    note_trace("difference")
    return whole - part
