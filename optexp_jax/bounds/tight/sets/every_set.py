"""All sets of up to n concepts of a table, numbered, and which of them occur together anywhere.

A set of k concepts, ascending, has the number `C(c_1, 1) + C(c_2, 2) + … + C(c_k, k)` among those
of k concepts (the combinatorial number system): sets with the same largest concept stand together,
in the order of the sets of their other concepts, which are the first ones of k − 1 concepts.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import scipy.sparse
from jaxtyping import Int32, Int64

from optexp_jax.bounds.tight.sets.cells import Cells, moebius_on_host
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.table_cache import per_table


@dataclass(frozen=True, eq=False)
class Level:
    """The sets of k concepts."""

    concepts: Int32[np.ndarray, "sets k"]
    """Ascending in each set."""
    parent: Int32[np.ndarray, " sets"]
    """The number of the set without the largest concept."""
    with_largest: Int32[np.ndarray, "parent_subsets sets"]
    """For each subset of the parent, by its bits, the row of what it and the largest concept have
    in common (see `EverySet.together`)."""

    def __len__(self) -> int:
        return len(self.concepts)


@dataclass(frozen=True, eq=False)
class EverySet:
    """The sets of up to n concepts of a table."""

    n_concepts: int
    together: scipy.sparse.csr_array
    """0/1 `[row, signature]`: which signatures have all concepts of a set. Only sets that some
    location has are there; row 0 stands for all others, and is empty."""
    rows: tuple[Int32[np.ndarray, " _"], ...]
    """The row of each set, by the number of concepts, from one on."""
    levels: tuple[Level, ...]
    """By the number of concepts, from one on."""

    def cells(
        self,
        sets: Int32[np.ndarray, "sets k"],
        inside: Int64[np.ndarray, " rows"],
        outside: Int64[np.ndarray, " rows"],
    ) -> Cells:
        """The cells of some sets, from the intersections inside and outside of a neuron."""
        row = self.subset_rows(sets)
        found = Cells(moebius_on_host(inside[row]), moebius_on_host(outside[row]))
        found.inside[0], found.outside[0] = 0, 0
        return found

    def subset_rows(self, sets: Int32[np.ndarray, "sets k"]) -> Int32[np.ndarray, "subsets sets"]:
        """The row of every subset of some sets, by its bits; 0 for the empty one."""
        n_sets, k = sets.shape
        found = np.zeros((1 << k, n_sets), np.int32)
        binomials = _binomials(self.n_concepts, k)
        for subset in range(1, 1 << k):
            chosen = [j for j in range(k) if subset >> j & 1]
            number = sum(binomials[sets[:, j], i + 1] for i, j in enumerate(chosen))
            found[subset] = self.rows[len(chosen) - 1][number]
        return found


@dataclass(frozen=True)
class SetsCost:
    """How much all sets of a table take, known before any of them is made."""

    sets: int
    """Sets of the greatest length."""
    cells: int
    """Their cells."""
    held: int
    """Bytes that are kept for the table."""
    scratch: int
    """Bytes that a search for one neuron takes besides."""

    @property
    def bytes(self) -> int:
        return self.held + self.scratch

    @classmethod
    def of(cls, n_concepts: int, lengths: Int64[np.ndarray, " signatures"], n: int) -> "SetsCost":
        """For a table with so many concepts in each of its signatures."""
        n = min(n, n_concepts)
        per_length = np.bincount(lengths)
        entries = sum(
            int(count) * comb(m, k)
            for m, count in enumerate(per_length.tolist())
            for k in range(1, n + 1)
        )
        sets = [comb(n_concepts, k) for k in range(1, n + 1)]
        held = 24 * entries + sum(
            count * (4 * k + 8 + 4 * 2 ** (k - 1)) for k, count in enumerate(sets, start=1)
        )
        shorter = sets[-2] * 2 ** (n - 1) if n > 1 else 0
        return cls(sets[-1], sets[-1] * 2**n, held, 8 * (2 * shorter + 2 * sets[-1]) + 16 * entries)


@per_table
def every_set(table: ConceptTable, n: int) -> EverySet:
    """All sets of up to n concepts; made once a table, and used by every search over it."""
    n_concepts = table.n_concepts
    n = min(n, n_concepts)
    occurring = _subsets_of_signatures(table, n)
    rows: list[Int32[np.ndarray, " _"]] = []
    begin = 1
    entries = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for k, (number, signature) in enumerate(occurring, start=1):
        found, which = np.unique(number, return_inverse=True)
        row = np.zeros(comb(n_concepts, k), np.int32)
        row[found] = begin + np.arange(len(found))
        rows.append(row)
        entries.append((begin + which.reshape(-1), signature))
        begin += len(found)
    at, signature = (np.concatenate(part) for part in zip(*entries, strict=True))
    together = scipy.sparse.csr_array(
        (np.ones(len(at), np.int64), (at, signature)), shape=(begin, len(table.signatures))
    )
    return EverySet(n_concepts, together, tuple(rows), tuple(_levels(n_concepts, rows)))


def _subsets_of_signatures(
    table: ConceptTable, n: int
) -> list[tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]]:
    """By size: the numbers of all subsets of all signatures, and the signature of each."""
    signatures = table.signatures
    binomials = _binomials(table.n_concepts, n)
    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(n)]
    there = table.sizes > 0
    for length in np.unique(signatures.lengths[there]).tolist():
        chosen = np.flatnonzero((signatures.lengths == length) & there)
        members = signatures.indices[signatures.indptr[chosen][:, None] + np.arange(length)]
        for k in range(1, min(length, n) + 1):
            for places in combinations(range(length), k):
                number = sum(binomials[members[:, j], i + 1] for i, j in enumerate(places))
                found[k - 1].append((np.array(number), chosen))
    empty = np.empty(0, np.int64)
    return [
        (
            np.concatenate([empty, *(a for a, _ in of_size)]),
            np.concatenate([empty, *(b for _, b in of_size)]),
        )
        for of_size in found
    ]


def _levels(n_concepts: int, rows: list[Int32[np.ndarray, " _"]]) -> list[Level]:
    binomials = _binomials(n_concepts, len(rows))
    levels = [
        Level(
            np.arange(n_concepts, dtype=np.int32)[:, None],
            np.zeros(n_concepts, np.int32),
            rows[0][None],
        )
    ]
    for k in range(2, len(rows) + 1):
        before = levels[-1].concepts
        n_before = [comb(c, k - 1) for c in range(n_concepts)]
        parent = np.concatenate([np.arange(count, dtype=np.int32) for count in n_before])
        largest = np.repeat(np.arange(n_concepts, dtype=np.int32), n_before)
        concepts = np.column_stack([before[parent], largest])
        with_largest = np.empty((1 << (k - 1), len(concepts)), np.int32)
        for subset in range(1 << (k - 1)):
            chosen = [j for j in range(k - 1) if subset >> j & 1]
            number = binomials[largest, len(chosen) + 1]
            for i, j in enumerate(chosen):
                number = number + binomials[concepts[:, j], i + 1]
            with_largest[subset] = rows[len(chosen)][number]
        levels.append(Level(concepts, parent, with_largest))
    return levels


def _binomials(n_concepts: int, k: int) -> Int64[np.ndarray, "concepts k_plus_one"]:
    """C(c, i) for concepts c and i up to k."""
    return np.array([[comb(c, i) for i in range(k + 1)] for c in range(n_concepts)], np.int64)
