"""Cells: a set of n concepts cuts the locations into 2**n parts, by which concepts hold there.

The number of a cell has bit j if the j-th concept of its set holds. Arrays have cells first and
sets last, so that all that is done with cells is done with whole rows of sets. Cell 0, where no
concept of the set holds, counts nothing: operators map (0, 0) to 0, so no formula holds there.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int, Int64, Num, Real

from optexp_jax.bounds.tight.rounding import raised, weight
from optexp_jax.concepts.signatures import Signatures
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.transfers import fetch_all

MOST_CONCEPTS = 8
"""Concepts of a set at most: sums of 2**8 terms are rounded outward by far enough."""


@pytree
class Cells:
    """Active locations and others in each cell of each set; 0 in cell 0."""

    inside: Int64[Array | np.ndarray, "cells sets"]
    outside: Int64[Array | np.ndarray, "cells sets"]

    @property
    def n_concepts(self) -> int:
        """Concepts of each set."""
        return self.inside.shape[0].bit_length() - 1

    def __len__(self) -> int:
        """Number of sets."""
        return self.inside.shape[1]

    def take(self, sets: Int[np.ndarray, " chosen"] | slice) -> "Cells":
        """The cells of some of the sets."""
        return Cells(self.inside[:, sets], self.outside[:, sets])


def cells_of_intersections(
    inside: Int64[Array, "subsets sets"], outside: Int64[Array, "subsets sets"]
) -> Cells:
    """The cells, from what every subset of each set has in common (Proposition 17).

    Row S of a column holds the locations that have every concept of the subset S, by its bits;
    row 0, all locations, is not looked at.
    """
    return Cells(_cut(inside), _cut(outside))


def _cut(intersections: Int64[Array, "subsets sets"]) -> Int64[Array, "cells sets"]:
    cells = moebius(intersections)
    return cells.at[0].set(0)


def moebius(intersections: Num[Array, "subsets *rest"]) -> Num[Array, "cells *rest"]:
    """From "at least these concepts" to "exactly these", one concept at a time.

    Whole numbers stay exact. What row 0 holds comes out in row 0 alone.
    """
    size, *rest = intersections.shape
    values = intersections
    for j in range(size.bit_length() - 1):
        halves = values.reshape(size >> (j + 1), 2, 1 << j, *rest)
        without = halves[:, 0] - halves[:, 1]
        values = jnp.stack([without, halves[:, 1]], axis=1).reshape(size, *rest)
    return values


def moebius_on_host(values: Num[np.ndarray, "subsets *rest"]) -> Num[np.ndarray, "cells *rest"]:
    """The same on the host, in the place of what is given."""
    size, *rest = values.shape
    for j in range(size.bit_length() - 1):
        halves = values.reshape(size >> (j + 1), 2, 1 << j, *rest)
        halves[:, 0] -= halves[:, 1]
    return values


def any_function(cells: Cells, v: Float64[Array, ""] | float) -> Float64[Array, " sets"]:
    """U: the highest W of any Boolean function of each set, rounded up (Proposition 18)."""
    w = weight(jnp.asarray(cells.inside, jnp.float64), v * jnp.asarray(cells.outside, jnp.float64))
    return raised(jnp.maximum(w, 0.0).sum(0))


def any_function_on_host(cells: Cells, v: float) -> Float64[np.ndarray, " sets"]:
    """The same on the host."""
    inside, outside = fetch_all(cells.inside, cells.outside)
    w = weight(inside.astype(np.float64), v * outside)
    return raised(np.maximum(w, 0.0, out=w).sum(0))


def count_cells(
    signatures: Signatures, neuron: NeuronCounts, sets: Sequence[Sequence[int]] | np.ndarray
) -> Cells:
    """The cells of some sets, counted from the signatures that hold one of their concepts.

    All sets have the same number of concepts, in any order.
    """
    rows = np.array(sets, np.int64)
    n_sets, n = rows.shape
    inside, outside = np.zeros((2, 1 << n, n_sets), np.int64)
    holders = signatures.holders
    cell = np.zeros(len(signatures), np.int64)  # of each signature; 0 again after every set
    for row, concepts in enumerate(rows.tolist()):
        lists = [holders.indices[holders.indptr[c] : holders.indptr[c + 1]] for c in concepts]
        touched = [lists[0]]
        cell[lists[0]] = 1
        for j, held in enumerate(lists[1:], start=1):
            touched.append(held[cell[held] == 0])
            cell[held] |= 1 << j
        once = np.concatenate(touched)
        number = cell[once]
        inside[:, row] = _sums(number, neuron.inside[once], 1 << n)
        outside[:, row] = _sums(number, neuron.outside[once], 1 << n)
        cell[once] = 0
    return Cells(inside, outside)


def _sums(
    number: Int64[np.ndarray, " entries"], counts: Int64[np.ndarray, " entries"], n_cells: int
) -> Real[np.ndarray, " cells"]:
    # float64 holds counts below 2**53 and their sums exactly.
    return np.bincount(number, counts.astype(np.float64), n_cells)
