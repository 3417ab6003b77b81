"""Subcubes: parts of a set's locations where some concepts hold, some do not, others are free.

A decision list that has asked for some concepts of its set is left with such a part, whatever the
order in which it asked. The number of a subcube has base-3 digit j: 0 if the j-th concept does not
hold, 1 if it does, 2 if it is free.
"""

import functools
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, Num

FREE = 2


@dataclass(frozen=True, eq=False)
class Layer:
    """All subcubes with as many free concepts, and what is left once one of those is asked for."""

    holds: Int32[np.ndarray, "free subcubes"]
    """The subcube where the k-th free concept holds."""
    fails: Int32[np.ndarray, "free subcubes"]
    """The one where it does not."""
    holds_before: Int32[np.ndarray, "free subcubes"]
    """The same as places in the layer before, to which they belong."""
    fails_before: Int32[np.ndarray, "free subcubes"]


@dataclass(frozen=True, eq=False)
class Subcubes:
    """The 3**n subcubes of n concepts."""

    powers: Int64[np.ndarray, " concepts"]
    """What a digit counts."""
    free: Bool[np.ndarray, "subcubes concepts"]
    layers: tuple[Layer, ...]
    """By the number of free concepts, from one on."""
    place: Int32[np.ndarray, " subcubes"]
    """Where each subcube stands if all layers stand one after another, none free first."""

    @property
    def whole(self) -> int:
        """The subcube in which every concept is free."""
        return len(self.free) - 1


@functools.cache
def subcubes(n: int) -> Subcubes:
    """How the subcubes of n concepts hang together; the same for all sets."""
    powers = 3 ** np.arange(n)
    digits = np.arange(3**n)[:, None] // powers % 3
    free = digits == FREE
    n_free = free.sum(1)
    by_layer = np.argsort(n_free, kind="stable")
    place = np.argsort(by_layer)
    starts = np.cumsum([0, *np.bincount(n_free)])
    layers: list[Layer] = []
    for k in range(1, n + 1):
        rows = by_layer[starts[k] : starts[k + 1]]
        asked = np.nonzero(free[rows])[1].reshape(len(rows), k).T
        fails = rows - FREE * powers[asked]
        holds = fails + powers[asked]
        before = (place[part] - starts[k - 1] for part in (holds, fails))
        layers.append(Layer(*(part.astype(np.int32) for part in (holds, fails, *before))))
    return Subcubes(powers, free, tuple(layers), place.astype(np.int32))


def over_subcubes_on_host(cells: Num[np.ndarray, "cells sets"]) -> Num[np.ndarray, "cubes sets"]:
    """`over_subcubes` on the host."""
    n_sets = cells.shape[1]
    values = cells.reshape(1, len(cells), n_sets)
    while values.shape[1] > 1:
        done, left, _ = values.shape
        both = np.empty((3, done, left // 2, n_sets), cells.dtype)
        both[0], both[1] = values[:, ::2], values[:, 1::2]
        np.add(both[0], both[1], out=both[2])
        values = both.reshape(3 * done, left // 2, n_sets)
    return values[:, 0]


def over_subcubes(cells: Num[Array, "cells sets"]) -> Num[Array, "subcubes sets"]:
    """Sums over all subcubes, from the cells."""
    size, n_sets = cells.shape
    values = cells.reshape(1, len(cells), n_sets)
    # The digit of least weight first; those that are done stand in front.
    for _ in range(size.bit_length() - 1):
        done, left, _ = values.shape
        pairs = values.reshape(done, left // 2, 2, n_sets)
        both = jnp.stack([pairs[:, :, 0], pairs[:, :, 1], pairs.sum(2)], axis=0)
        values = both.reshape(3 * done, left // 2, n_sets)
    return values[:, 0]
