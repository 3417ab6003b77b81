"""Which sets of two, three and more concepts occur together, in at least one signature.

Bounds on pieces of overlaps are sums over such sets (`pieces`). The lists are made once a table; a
neuron's counts are one pass over them.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.concepts.signatures import Signatures
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.table_cache import per_table

MOST_ENTRIES = 6_000_000
"""Sets of one size, each once a signature that holds it, up to which they are listed."""
DEEPEST = 6
"""Concepts of the largest sets that are listed."""


@dataclass(frozen=True, eq=False)
class DirectedPairs:
    """Every occurring pair twice, x first and y first, in ascending order of the first."""

    first: Int32[np.ndarray, " entries"]
    second: Int32[np.ndarray, " entries"]
    pair: Int64[np.ndarray, " entries"]
    """Which occurring pair."""

    def among(self, kept: Bool[np.ndarray, " concepts"]) -> "DirectedPairs":
        """Those of which both concepts are kept."""
        return self.take(kept[self.first] & kept[self.second])

    def take(self, chosen: Bool[np.ndarray, " entries"]) -> "DirectedPairs":
        return DirectedPairs(self.first[chosen], self.second[chosen], self.pair[chosen])


@dataclass(frozen=True, eq=False)
class PairEntries:
    """The occurring pairs that each signature holds, one signature after another."""

    indptr: Int64[np.ndarray, " signatures_plus_one"]
    pair: Int32[np.ndarray, " entries"]


@dataclass(frozen=True, eq=False)
class OccurringSets:
    """All sets of k concepts that some signature holds, in ascending order."""

    concepts: Int32[np.ndarray, "sets k"]
    which: Int32[np.ndarray, " entries"]
    """The set of each entry; an entry is a signature that holds it."""
    signature: Int32[np.ndarray, " entries"]
    total: Float64[np.ndarray, " sets"]
    """Locations of each set."""

    def __len__(self) -> int:
        return len(self.concepts)

    def sum(self, counts: Int64[np.ndarray, " signatures"]) -> Float64[np.ndarray, " sets"]:
        """Counts of signatures summed up by set: whole numbers below 2**53, so they are exact."""
        return _summed(self.which, counts[self.signature], len(self))

    @cached_property
    def directed(self) -> DirectedPairs:
        """Of pairs: each with either concept first."""
        a, b = self.concepts.T
        first, second = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.argsort(first, kind="stable")
        return DirectedPairs(first[order], second[order], np.tile(np.arange(len(self)), 2)[order])

    @cached_property
    def by_signature(self) -> PairEntries:
        """The same entries, by signature; up to the last one that holds any."""
        order = np.argsort(self.signature, kind="stable")
        signature = self.signature[order]
        last = int(signature[-1]) + 1 if len(signature) else 0
        return PairEntries(np.searchsorted(signature, np.arange(last + 1)), self.which[order])


@dataclass(frozen=True, eq=False)
class Supersets:
    """Which sets of k + 1 concepts contain each set of k, in ascending order of the latter."""

    smaller: Int32[np.ndarray, " links"]
    larger: Int32[np.ndarray, " links"]


@dataclass(frozen=True, eq=False)
class OccurringLevels:
    """The occurring sets of two concepts and more, as far as they are listed."""

    levels: tuple[OccurringSets, ...]
    """Those of two concepts first."""
    links: tuple[Supersets, ...]
    """From each level to the next one."""
    n_concepts: int
    longest: int
    """Concepts of the longest signature."""

    @property
    def pairs(self) -> OccurringSets:
        return self.levels[0]

    @property
    def deepest(self) -> int:
        """Concepts of the largest sets that are listed."""
        return len(self.levels) + 1


@per_table
def occurring_sets(table: ConceptTable, deepest: int, most: int = MOST_ENTRIES) -> OccurringLevels:
    """The occurring sets of up to so many concepts; only pairs, if there are too many others."""
    signatures = table.signatures
    lengths = signatures.lengths
    levels = [_list_sets(signatures, 2, table.sizes)]
    links: list[Supersets] = []
    for k in range(3, min(deepest, DEEPEST) + 1):
        entries = sum(_choose(int(n), k) * int((lengths == n).sum()) for n in np.unique(lengths))
        if not 0 < entries <= most or float(table.n_concepts) ** k >= 2.0**62:
            break
        levels.append(_list_sets(signatures, k, table.sizes))
        links.append(_link(levels[-2], levels[-1], table.n_concepts))
    return OccurringLevels(
        tuple(levels), tuple(links), table.n_concepts, int(lengths.max(initial=0))
    )


def _summed(
    which: Int32[np.ndarray, " entries"] | Int64[np.ndarray, " entries"],
    counts: Int64[np.ndarray, " entries"],
    n: int,
) -> Float64[np.ndarray, " n"]:
    # Without any entries the sums would be integers.
    return np.bincount(which, counts.astype(np.float64), n).astype(np.float64)


def _choose(n: int, k: int) -> int:
    found = 1
    for j in range(k):
        found = found * (n - j) // (j + 1)
    return max(found, 0)


def _keys(concepts: Int32[np.ndarray, "sets k"], n_concepts: int) -> Int64[np.ndarray, " sets"]:
    """A number for each set, in the order of sets."""
    keys = np.zeros(len(concepts), np.int64)
    for column in concepts.T:
        keys = keys * n_concepts + column
    return keys


def _list_sets(
    signatures: Signatures, k: int, sizes: Int64[np.ndarray, " signatures"]
) -> OccurringSets:
    lengths = signatures.lengths
    held: list[Int32[np.ndarray, "entries k"]] = [np.empty((0, k), np.int32)]
    holder: list[Int64[np.ndarray, " entries"]] = [np.empty(0, np.int64)]
    for n in np.unique(lengths[lengths >= k]).tolist():
        rows = np.flatnonzero(lengths == n)
        concepts = signatures.indices[signatures.indptr[rows][:, None] + np.arange(n)]
        for chosen in combinations(range(n), k):
            held.append(concepts[:, list(chosen)])
            holder.append(rows)
    concepts, signature = np.concatenate(held), np.concatenate(holder)
    order = np.argsort(_keys(concepts, signatures.n_concepts), kind="stable")
    keys = _keys(concepts[order], signatures.n_concepts)
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    which = np.cumsum(np.diff(keys, prepend=-1) != 0) - 1
    signature = signature[order]
    total = _summed(which, sizes[signature], len(first))
    return OccurringSets(
        concepts[order][first], which.astype(np.int32), signature.astype(np.int32), total
    )


def _link(smaller: OccurringSets, larger: OccurringSets, n_concepts: int) -> Supersets:
    keys = _keys(smaller.concepts, n_concepts)
    k = larger.concepts.shape[1]
    parts = [
        np.searchsorted(keys, _keys(np.delete(larger.concepts, drop, axis=1), n_concepts))
        for drop in range(k)
    ]
    to = np.concatenate(parts)
    order = np.argsort(to, kind="stable")
    which = np.tile(np.arange(len(larger)), k)
    return Supersets(to[order].astype(np.int32), which[order].astype(np.int32))
