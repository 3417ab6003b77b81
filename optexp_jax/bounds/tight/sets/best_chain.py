"""The best chain of each of many sets, by dynamic programming over subcubes.

A chain is a decision list (Proposition 7): each step asks for one concept, and what is left is a
subcube. So the highest W of what can still come depends on the subcube alone, and 3**n values make
up for the n!·3**(n-1) chains of a set.

Steps that change nothing are left out: chains that have one hold at the same locations as a shorter
one, which comes before them in the order of ties (Proposition 20).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int64

from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.sets.subcubes import Layer, over_subcubes, subcubes
from optexp_jax.internal.pytrees import pytree


@pytree
class SolvedSets:
    """Exact counts and the highest W of chains in every subcube of each set."""

    inside: Int64[Array | np.ndarray, "subcubes sets"]
    outside: Int64[Array | np.ndarray, "subcubes sets"]
    best: Float64[Array | np.ndarray, "subcubes sets"]
    """The highest W of a chain of the free concepts, rounded up; minus infinity if there is none.

    The last row is that of whole chains.
    """


@partial(jax.jit, static_argnames=("ops", "shorter"))
def solve_sets(
    cells: Cells, v: Float64[Array, ""] | float, *, ops: OperatorSet, shorter: bool = False
) -> SolvedSets:
    """The highest W of chains of each set, in all of its subcubes (Proposition 19).

    Chains have every concept of their set, or with `shorter` one of them at least.
    """
    inside, outside = (over_subcubes(jnp.asarray(part)) for part in (cells.inside, cells.outside))
    w = weight(inside.astype(jnp.float64), v * outside.astype(jnp.float64))
    there = inside + outside > 0
    best = jnp.full_like(w, -jnp.inf)
    for n_free, layer in enumerate(subcubes(cells.n_concepts).layers, start=1):
        ends = shorter or n_free == 1
        best = best.at[layer.rows].set(_highest(layer, w, there, best, ops, ends))
    return SolvedSets(inside, outside, best)


def _highest(
    layer: Layer,
    w: Float64[Array, "subcubes sets"],
    there: Bool[Array, "subcubes sets"],
    best: Float64[Array, "subcubes sets"],
    ops: OperatorSet,
    ends: bool,
) -> Float64[Array, "rows sets"]:
    """Over all steps that can come next in the subcubes of one layer."""
    highest = jnp.full((len(layer.rows), w.shape[1]), -jnp.inf)
    for holds, fails in zip(layer.holds, layer.fails, strict=True):
        if ends:  # a leaf, which has to hold somewhere
            highest = jnp.maximum(highest, jnp.where(there[holds], w[holds], -jnp.inf))
        proper = there[holds] & there[fails]
        steps = jnp.full_like(highest, -jnp.inf)
        if ops.union:
            steps = jnp.maximum(steps, w[holds] + best[fails])
        if ops.difference:
            steps = jnp.maximum(steps, best[fails])
        if ops.intersection:
            steps = jnp.maximum(steps, best[holds])
        highest = jnp.maximum(highest, jnp.where(proper, steps, -jnp.inf))
    return highest
