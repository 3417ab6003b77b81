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

    rows: Int32[np.ndarray, " subcubes"]
    holds: Int32[np.ndarray, "free subcubes"]
    """The subcube where the k-th free concept holds."""
    fails: Int32[np.ndarray, "free subcubes"]
    """The one where it does not."""


@dataclass(frozen=True, eq=False)
class Subcubes:
    """The 3**n subcubes of n concepts."""

    powers: Int64[np.ndarray, " concepts"]
    """What a digit counts."""
    free: Bool[np.ndarray, "subcubes concepts"]
    layers: tuple[Layer, ...]
    """By the number of free concepts, from one on."""

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
    layers: list[Layer] = []
    for n_free in range(1, n + 1):
        rows = np.flatnonzero(free.sum(1) == n_free)
        asked = np.nonzero(free[rows])[1].reshape(len(rows), n_free).T
        fails = rows - FREE * powers[asked]
        holds = fails + powers[asked]
        layers.append(Layer(*(part.astype(np.int32) for part in (rows, holds, fails))))
    return Subcubes(powers, free, tuple(layers))


def over_subcubes(cells: Num[Array, "cells sets"]) -> Num[Array, "subcubes sets"]:
    """Sums over all subcubes, from the cells."""
    n, n_sets = cells.shape[0].bit_length() - 1, cells.shape[1]
    values = cells.reshape(1, -1, n_sets)
    for _ in range(n):  # the digit of least weight first; those that are done stand in front
        done, left, _ = values.shape
        pairs = values.reshape(done, left // 2, 2, n_sets)
        both = jnp.stack([pairs[:, :, 0], pairs[:, :, 1], pairs.sum(2)], axis=0)
        values = both.reshape(3 * done, left // 2, n_sets)
    return values[:, 0]
