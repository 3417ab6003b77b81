"""Gram matrices: exact overlaps of all pairs of concepts over a region.

A region is a set of signatures. Two kernels give the same integers: one touches only the signatures
of the region, on the host; one streams over all entries with the others weighted 0, on the device.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, Num

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.neuron import NeuronCounts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.pytrees import pytree
from optexp_jax.tight.pair_index import pair_index
from optexp_jax.tracing import note_trace


@pytree
class Gram:
    """`inside[a, b] = |a ∩ b ∩ N|` and `outside[a, b] = |a ∩ b \\ N|` over a region."""

    inside: Int64[Array, "concepts concepts"]
    outside: Int64[Array, "concepts concepts"]


@dataclass(frozen=True, eq=False)
class HostGram:
    """Gram matrices on the host."""

    inside: Int64[np.ndarray, "concepts concepts"]
    outside: Int64[np.ndarray, "concepts concepts"]

    @classmethod
    def of(cls, gram: Gram) -> "HostGram":
        return cls(np.asarray(gram.inside), np.asarray(gram.outside))


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
