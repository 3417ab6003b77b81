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
import scipy.sparse
from jaxtyping import Array, Bool, Int32, Int64, Num

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.device_table import move
from optexp_jax.kernel_choice import prefers_host_kernels
from optexp_jax.neuron import NeuronCounts
from optexp_jax.pytrees import pytree
from optexp_jax.tight.local_concepts import LocalConcepts
from optexp_jax.tight.pair_index import pair_index
from optexp_jax.tracing import note_trace


@pytree
class Gram:
    """`inside[r, a, b] = |a ∩ b ∩ N|` and `outside[r, a, b] = |a ∩ b \\ N|` over regions r."""

    inside: Int64[Array, "regions concepts concepts"]
    outside: Int64[Array, "regions concepts concepts"]


@dataclass(frozen=True, eq=False)
class HostGram:
    """Gram matrices of one region, on the host."""

    inside: Int64[np.ndarray, "concepts concepts"]
    outside: Int64[np.ndarray, "concepts concepts"]

    @classmethod
    def of(cls, gram: Gram) -> "HostGram":
        return cls(np.asarray(gram.inside)[0], np.asarray(gram.outside)[0])


@dataclass(frozen=True, eq=False)
class Own:
    """Counts of each concept by itself, over a region."""

    inside: Int64[np.ndarray, " concepts"]
    outside: Int64[np.ndarray, " concepts"]


class _Sums:
    """Weights of signatures summed by pair of concepts, upper triangle only, by either kernel."""

    def __init__(self, table: ConceptTable, on_host: bool):
        self._index = pair_index(table)
        self._on_host = on_host

    def __call__(
        self, weights: Int64[np.ndarray, "sets signatures"]
    ) -> Num[Array | np.ndarray, "sets n n"]:
        index = self._index
        if self._on_host:
            return index.sum_on_host(weights)
        with jax.enable_x64(True):
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


_prepared: weakref.WeakKeyDictionary[NeuronCounts, Num[Array | np.ndarray, "one n n"]] = (
    weakref.WeakKeyDictionary()
)


def prepare_grams(
    table: ConceptTable, neurons: Sequence[NeuronCounts], on_host: bool | None = None
) -> None:
    """Sum up the Gram matrices of several neurons in one call, for the searches that come next."""
    sums = count_several(table, neurons, on_host)
    for k, neuron in enumerate(neurons):
        _prepared[neuron] = sums[k : k + 1]


def count_several(
    table: ConceptTable, neurons: Sequence[NeuronCounts], on_host: bool | None = None
) -> Num[Array | np.ndarray, "neurons n n"]:
    """Active locations that pairs of concepts share, upper triangles only."""
    on_host = prefers_host_kernels() if on_host is None else on_host
    return _Sums(table, on_host)(np.stack([neuron.inside for neuron in neurons]))


class Overlaps:
    """Overlaps of one neuron's concepts, over any region of its table."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts, on_host: bool | None = None):
        self.table = table
        self.neuron = neuron
        self.on_host = prefers_host_kernels() if on_host is None else on_host
        self._sums = _Sums(table, self.on_host)

    @cached_property
    def everywhere(self) -> Gram:
        """The Gram matrices of the whole table."""
        with jax.enable_x64(True):
            return _complement(*self.counted())

    def counted(self) -> tuple[Int64[Array, "one n n"], Num[Array | np.ndarray, "one n n"]]:
        """What `complement` takes."""
        inside = _prepared.pop(self.neuron, None)
        if inside is None:
            inside = self._sums(self.neuron.inside[None])
        return self.total, inside

    @property
    def total(self) -> Int64[Array, "one n n"]:
        """What all neurons of the table share, computed once."""
        index = pair_index(self.table)
        if index.total is None:
            with jax.enable_x64(True):
                index.total = _mirror(self._sums(self.table.sizes[None]))
        return index.total

    @cached_property
    def everywhere_on_host(self) -> HostGram:
        return HostGram.of(self.everywhere)

    def all_pairs(self, region: Bool[np.ndarray, " signatures"]) -> Gram:
        """The Gram matrices of a region; from its complement where that is smaller."""
        directly = region.sum() * 2 <= len(region)
        kept = region if directly else ~region
        sums = self._sums(np.stack([self.neuron.inside * kept, self.neuron.outside * kept]))
        with jax.enable_x64(True):
            return _of_region(self.everywhere, sums, directly)


class Within:
    """Overlaps over one region, of each concept and of pairs of some of them."""

    def __init__(self, overlaps: Overlaps, region: Bool[np.ndarray, " signatures"]):
        self._overlaps = overlaps
        self._region = region
        # What a region lacks of the whole table is often less than what it holds.
        self._directly = int(region.sum()) * 2 <= len(region)

    @cached_property
    def _rows(self) -> Int64[np.ndarray, " signatures"]:
        return np.flatnonzero(self._region if self._directly else ~self._region)

    @cached_property
    def _held(self) -> scipy.sparse.csr_array:
        """Which concepts those signatures hold."""
        return self._overlaps.table.signatures.incidence[self._rows]

    @property
    def _weights(self) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        neuron = self._overlaps.neuron
        return neuron.inside[self._rows], neuron.outside[self._rows]

    @cached_property
    def own(self) -> Own:
        """Counts of all concepts of the table."""
        inside, outside = (self._held.T @ part for part in self._weights)
        if self._directly:
            return Own(inside, outside)
        whole = self._overlaps.everywhere_on_host
        return Own(whole.inside.diagonal() - inside, whole.outside.diagonal() - outside)

    def gram(self, concepts: LocalConcepts) -> Gram:
        """The Gram matrices of some concepts."""
        if concepts.is_everything:
            return self._overlaps.all_pairs(self._region)
        if not self._overlaps.on_host:
            padded = np.zeros(concepts.size, np.int32)
            padded[: len(concepts.ids)] = concepts.ids
            real = np.arange(concepts.size) < len(concepts.ids)
            with jax.enable_x64(True):
                return _pick(self._overlaps.all_pairs(self._region), padded, real)
        held = self._held[:, concepts.ids]
        whole = self._overlaps.everywhere_on_host

        def sums(
            weights: Int64[np.ndarray, " rows"], everywhere: Int64[np.ndarray, "n n"]
        ) -> Int64[np.ndarray, "one m m"]:
            weighted = scipy.sparse.diags_array(weights, dtype=np.int64) @ held
            found = (held.T @ weighted).toarray()
            if not self._directly:
                found = everywhere[np.ix_(concepts.ids, concepts.ids)] - found
            padded = np.zeros((1, concepts.size, concepts.size), np.int64)
            padded[0, : len(found), : len(found)] = found
            return padded

        inside, outside = self._weights
        with jax.enable_x64(True):
            moved = move(sums(inside, whole.inside), sums(outside, whole.outside))
        return Gram(moved[0], moved[1])


def _mirror(upper: Num[Array | np.ndarray, "sets n n"]) -> Int64[Array, "sets n n"]:
    exact = jnp.asarray(upper).astype(jnp.int64)
    return exact + jnp.swapaxes(jnp.triu(exact, 1), 1, 2)


def complement(
    total: Int64[Array, "one n n"], inside: Num[Array | np.ndarray, "regions n n"]
) -> Gram:
    """The Gram matrices, from those of all locations and the upper triangle of the active ones."""
    mirrored = _mirror(inside)
    return Gram(mirrored, total - mirrored)


@jax.jit
def _complement(total: Int64[Array, "one n n"], inside: Num[Array | np.ndarray, "one n n"]) -> Gram:
    note_trace("complement")
    return complement(total, inside)


@jax.jit
def _of_region(
    whole: Gram, sums: Num[Array | np.ndarray, "two n n"], directly: Bool[Array | np.ndarray, ""]
) -> Gram:
    """From sums over the region, or over what it lacks of the whole table."""
    note_trace("of_region")
    mirrored = _mirror(sums)
    held = Gram(mirrored[:1], mirrored[1:])
    return jax.lax.cond(directly, lambda: held, lambda: jax.tree.map(jnp.subtract, whole, held))


@jax.jit
def _pick(whole: Gram, ids: Int32[Array, " m"], real: Bool[Array, " m"]) -> Gram:
    """The matrices of some concepts, and empty ones."""
    note_trace("pick")

    def pick(values: Int64[Array, "one n n"]) -> Int64[Array, "one m m"]:
        kept = real[:, None] & real[None, :]
        return jnp.where(kept[None], values[:, ids[:, None], ids[None, :]], 0)

    return Gram(pick(whole.inside), pick(whole.outside))


@jax.jit
def stack_grams(grams: Sequence[Gram]) -> Gram:
    """The matrices of several regions together."""
    note_trace("stack_grams")
    return Gram(
        jnp.concatenate([gram.inside for gram in grams]),
        jnp.concatenate([gram.outside for gram in grams]),
    )
