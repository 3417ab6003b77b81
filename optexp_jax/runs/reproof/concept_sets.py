"""Every set of a few concepts, numbered, and what each holds together, for many units at once.

Sets of one size stand in the order of their largest concept, then of the next largest, and so on:
{c1 < c2 < ... < ck} has the number C(c1, 1) + C(c2, 2) + ... + C(ck, k). So the sets whose largest
concept is m are those of one concept less among 0 ... m - 1, in the same order, each with m.
"""

import itertools
import math
from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Int64

from optexp_jax.concepts.signatures import Signatures


class ConceptSets:
    """All sets of 1 to `longest` concepts that the signatures of a table can hold."""

    def __init__(self, signatures: Signatures, longest: int):
        self._signatures = signatures
        self.n_concepts, self.longest = signatures.n_concepts, longest
        self._binomial = np.array(
            [[math.comb(n, k) for k in range(longest + 1)] for n in range(self.n_concepts)],
            np.int64,
        )

    @cached_property
    def members(self) -> list[Int64[np.ndarray, "_ _"]]:
        """The concepts of every set, ascending: first those of one concept, then of two, ..."""
        found = [np.arange(self.n_concepts)[:, None]]
        for size in range(2, self.longest + 1):
            parts = [
                np.column_stack([found[-1][:n], np.full(n, largest)])
                for largest in range(self.n_concepts)
                for n in [math.comb(largest, size - 1)]
            ]
            found.append(np.concatenate(parts))
        return found

    def number(self, members: Int64[np.ndarray, "sets size"]) -> Int64[np.ndarray, " sets"]:
        """The numbers of sets among those of their size."""
        parts = (self._binomial[column, place] for place, column in enumerate(members.T, 1))
        return np.sum(list(parts), axis=0)

    def shared(
        self, weights: Int64[np.ndarray, "signatures units"]
    ) -> list[Int64[np.ndarray, "_ units"]]:
        """The weight of all locations that hold every concept of a set, by size and number."""
        return [matrix @ weights for matrix in self._holding]

    @cached_property
    def _holding(self) -> list[scipy.sparse.csr_array]:
        """Which signatures hold all of a set, as 0/1 matrices `[set, signature]`."""
        return [self._holding_of(size) for size in range(1, self.longest + 1)]

    def _holding_of(self, size: int) -> scipy.sparse.csr_array:
        lists, sets, holders = self._signatures, [], []
        for length in np.unique(lists.lengths).tolist():
            rows = np.flatnonzero(lists.lengths == length)
            concepts = lists.indices[lists.indptr[rows][:, None] + np.arange(length)]
            for places in itertools.combinations(range(length), size):
                sets.append(self.number(concepts[:, places].astype(np.int64)))
                holders.append(rows)
        shape = (math.comb(self.n_concepts, size), len(lists))
        if not sets:
            return scipy.sparse.csr_array(shape, dtype=np.int64)
        ones = np.ones(sum(map(len, sets)), np.int64)
        places = (np.concatenate(sets), np.concatenate(holders))
        return scipy.sparse.coo_array((ones, places), shape=shape).tocsr()


def count_sets(n_concepts: int, longest: int) -> int:
    """How many sets there are."""
    return sum(math.comb(n_concepts, size) for size in range(1, longest + 1))


def count_held(signatures: Signatures, longest: int) -> int:
    """How many sets the signatures hold, each counted for itself: what a table's matrices take."""
    lengths, n = np.unique(signatures.lengths, return_counts=True)
    return sum(
        many * math.comb(length, size)
        for length, many in zip(lengths.tolist(), n.tolist(), strict=True)
        for size in range(1, longest + 1)
    )
