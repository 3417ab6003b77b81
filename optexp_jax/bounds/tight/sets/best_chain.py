"""The best chain of each of many sets, by dynamic programming over subcubes.

A chain is a decision list (Proposition 7): each step asks for one concept, and what is left is a
subcube. So the highest W of what can still come depends on the subcube alone, and 3**n values make
up for the n!·3**(n-1) chains of a set.

Steps that change nothing are left out: chains that have one hold at the same locations as a shorter
one, which comes before them in the order of ties (Proposition 20).
"""

import functools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int64

from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.sets.subcubes import (
    over_subcubes,
    over_subcubes_on_host,
    subcubes,
)
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.transfers import fetch_all


@pytree
class SolvedSets:
    """Exact counts and the highest W of chains in every subcube of each set."""

    inside: Int64[Array | np.ndarray, "subcubes sets"]
    outside: Int64[Array | np.ndarray, "subcubes sets"]
    best: Float64[Array | np.ndarray, "subcubes sets"]
    """The highest W of a chain of the free concepts, rounded up; minus infinity if there is none.

    The last row is that of whole chains.
    """

    def take(self, sets: Int64[np.ndarray, " chosen"] | slice) -> "SolvedSets":
        """Some of the sets."""
        return SolvedSets(self.inside[:, sets], self.outside[:, sets], self.best[:, sets])


@partial(jax.jit, static_argnames=("ops", "shorter"))
def solve_sets(
    cells: Cells, v: Float64[Array, ""] | float, *, ops: OperatorSet, shorter: bool = False
) -> SolvedSets:
    """The highest W of chains of each set, in all of its subcubes (Proposition 19).

    Chains have every concept of their set, or with `shorter` one of them at least.
    """
    inside, outside = (over_subcubes(jnp.asarray(part)) for part in (cells.inside, cells.outside))
    w = weight(inside.astype(jnp.float64), v * outside.astype(jnp.float64))
    best = _best(w, inside + outside > 0, ops, shorter, jnp)
    return SolvedSets(inside, outside, best)


def solve_sets_on_host(
    cells: Cells, v: float, *, ops: OperatorSet, shorter: bool = False
) -> SolvedSets:
    """The same on the host."""
    parts = fetch_all(cells.inside, cells.outside)
    inside, outside = (over_subcubes_on_host(part) for part in parts)
    w = weight(inside.astype(np.float64), v * outside)
    return SolvedSets(inside, outside, _best(w, inside + outside > 0, ops, shorter, np))


def _best(w: Any, there: Any, ops: OperatorSet, shorter: bool, xp: Any) -> Any:
    """The highest W in every subcube, a layer after another, in numpy or in JAX."""
    n = 0
    while 3**n < len(w):
        n += 1
    known = subcubes(n)
    lowest = -xp.inf
    layers = [xp.full((1 << n, w.shape[1]), lowest)]
    for n_free, layer in enumerate(known.layers, start=1):
        before, options = layers[-1], []
        for k in range(n_free):
            holds, fails = layer.holds[k], layer.fails[k]
            added, left = w[holds], before[layer.fails_before[k]]
            steps = xp.full_like(added, lowest)
            if ops.union:
                steps = xp.maximum(steps, added + left)
            if ops.difference:
                steps = xp.maximum(steps, left)
            if ops.intersection:
                steps = xp.maximum(steps, before[layer.holds_before[k]])
            steps = xp.where(there[fails], steps, lowest)
            if shorter or n_free == 1:  # a leaf
                steps = xp.maximum(steps, added)
            options.append(xp.where(there[holds], steps, lowest))
        layers.append(functools.reduce(xp.maximum, options))
    return xp.concatenate(layers)[known.place]
