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


class _Sums:
    """Weights of signatures summed by pair of concepts, upper triangle only, by either kernel."""

    def __init__(self, table: ConceptTable, on_host: bool | None = None):
        self._index = pair_index(table)
        self._on_host = prefers_host_kernels() if on_host is None else on_host

    def __call__(self, weights: Int64[np.ndarray, "sets signatures"]) -> Num[Array, "sets n n"]:
        index = self._index
        with jax.enable_x64(True):
            if self._on_host:
                return jnp.asarray(index.sum_on_host(weights))
            return _sum_on_device(
                jnp.asarray(weights), *index.on_device, n_concepts=index.n_concepts
            )


@partial(jax.jit, static_argnames="n_concepts")
def _sum_on_device(
    weights: Int64[Array, "sets signatures"],
    cell: Int32[Array, " pairs"],
    owner: Int32[Array, " pairs"],
    *,
    n_concepts: int,
) -> Int64[Array, "sets concepts concepts"]:
    note_trace("sums")
    # One sum over wide rows is faster than one a set of weights.
    sums = jnp.zeros((n_concepts**2, len(weights)), jnp.int64).at[cell].add(weights.T[owner])
    return sums.T.reshape(-1, n_concepts, n_concepts)


_prepared: weakref.WeakKeyDictionary[NeuronCounts, Num[Array, "one n n"]] = (
    weakref.WeakKeyDictionary()
)


def prepare_grams(
    table: ConceptTable, neurons: Sequence[NeuronCounts], on_host: bool | None = None
) -> None:
    """Sum up the Gram matrices of several neurons in one call, for the searches that come next."""
    sums = _Sums(table, on_host)(np.stack([neuron.inside for neuron in neurons]))
    for k, neuron in enumerate(neurons):
        _prepared[neuron] = sums[k : k + 1]


class Overlaps:
    """Overlaps of one neuron's concepts, over any region of its table."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts, on_host: bool | None = None):
        self._table = table
        self._neuron = neuron
        self._sums = _Sums(table, on_host)

    @cached_property
    def everywhere(self) -> Gram:
        """The Gram matrices of the whole table; what all neurons share is computed once."""
        index = pair_index(self._table)
        inside = _prepared.pop(self._neuron, None)
        if inside is None:
            inside = self._sums(self._neuron.inside[None])
        with jax.enable_x64(True):
            if index.total is None:
                index.total = _mirror(self._sums(self._table.sizes[None])[0])
            return _complement(index.total, inside)

    def gram(self, region: Bool[np.ndarray, " signatures"]) -> Gram:
        """The Gram matrices of a region; from its complement where that is smaller."""
        directly = region.sum() * 2 <= len(region)
        kept = region if directly else ~region
        sums = self._sums(np.stack([self._neuron.inside * kept, self._neuron.outside * kept]))
        with jax.enable_x64(True):
            return _both(sums) if directly else _rest(self.everywhere, sums)


def _mirror(upper: Num[Array, "n n"]) -> Int64[Array, "n n"]:
    exact = upper.astype(jnp.int64)
    return exact + jnp.triu(exact, 1).T


@jax.jit
def _complement(total: Int64[Array, "n n"], inside: Num[Array, "one n n"]) -> Gram:
    note_trace("complement")
    mirrored = _mirror(inside[0])
    return Gram(mirrored, total - mirrored)


@jax.jit
def _both(sums: Num[Array, "two n n"]) -> Gram:
    note_trace("both")
    return Gram(_mirror(sums[0]), _mirror(sums[1]))


@jax.jit
def _rest(whole: Gram, sums: Num[Array, "two n n"]) -> Gram:
    note_trace("rest")
    return Gram(whole.inside - _mirror(sums[0]), whole.outside - _mirror(sums[1]))
