"""Bounds on what is left once the outermost step of a formula is fixed.

The outermost step captures some locations, and the rest of the chain works on the residual R'
(Proposition 7). The Gram matrices of R give exactly how much of every concept x lies in R', inside
the neuron, I'(x), and outside of it, E'(x). Classes of completions by their sources and filters are
Proposition 8; what a step adds around all that stands inside is Proposition 9.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Shaped

from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION, OperatorSet
from optexp_jax.bounds.tight.rounding import outward, weight
from optexp_jax.bounds.tight.theory.bound_inputs import NEVER, BoundInputs
from optexp_jax.bounds.tight.theory.top_k import sum_of_top_k, sums_of_top_k
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class OuterMaxima:
    """What other concepts can take away of each concept."""

    largest_e: Float64[Array, "counts subs concepts"]
    """The sum of the k largest E(x ∩ y), for k = 0, 1, …"""
    largest_i: Float64[Array, "subs concepts"]
    """The largest I(x ∩ y)."""
    meeting: Bool[Array, " subs"]
    """Whether any two concepts meet."""

    def removed(self, k: Int32[Array, ""]) -> Float64[Array, "subs concepts"]:
        return self.largest_e[jnp.minimum(k, len(self.largest_e) - 1)]


@partial(jax.jit, static_argnames="longest")
def outer_maxima(inputs: BoundInputs, *, longest: int) -> OuterMaxima:
    """The sums of up to `longest` overlaps."""
    note_trace("outer_rows")
    every, n = inputs.all_rows(), inputs.n_concepts
    overlaps = jnp.where(every.others, every.e, 0.0).reshape(-1, n)
    return OuterMaxima(
        sums_of_top_k(overlaps, longest).reshape(-1, *inputs.allowed.shape),
        jnp.where(every.others, every.i, 0.0).max(2),
        _meets(inputs).any(1),
    )


@partial(jax.jit, static_argnames=("ops", "steps"))
def outer_bounds(
    inputs: BoundInputs,
    maxima: OuterMaxima,
    rank: Int32[Array | np.ndarray, "subs concepts"],
    best: Float64[Array | np.ndarray, " subs"],
    left: Int32[Array, ""],
    sub: Int32[Array | np.ndarray, " rows"],
    c: Int32[Array | np.ndarray, " rows"],
    *,
    ops: OperatorSet,
    steps: OperatorSet,
) -> Float64[Array, "rows ops"]:
    """Upper bounds on W for outermost steps of some concepts c, around at most `left` concepts.

    `steps` are those that are asked for; the others get −∞.

    `best` bounds W of all that can be made of `left` concepts in each subproblem, rounded up. In
    a run of ORs the outermost concept has the highest rank. One program serves every `left`.
    """
    note_trace("outer_bounds")
    sub, c = jnp.asarray(sub), jnp.asarray(c)
    v = inputs.v[sub]
    block = inputs.rows(sub, c)
    inside, outside, other = block.i, block.e, block.others
    meeting, ranks = maxima.meeting[sub], jnp.asarray(rank)

    def completion(
        inside: Float64[Array, "rows n"], outside: Float64[Array, "rows n"], ordered: bool
    ) -> Float64[Array, " rows"]:
        """Proposition 8 over classes (p, r), for `inside[c, x]` and `outside[c, x]` in R'."""

        def of_class(sources: Int32[Array, ""], bound: Float64[Array, " rows"]) -> Array:
            filters = left - sources
            e_left = jnp.maximum(outside - block.theirs(maxima.removed(filters)), 0.0)
            shared = block.theirs(maxima.removed(sources - 1)) / 2
            paid_for = jnp.maximum(e_left / sources.astype(jnp.float64), e_left - shared)
            share = weight(inside, block.v * paid_for)
            if ops.intersection:
                # An AND can take all extras away, and leaves what x shares with another concept.
                kept = jnp.maximum(share, jnp.minimum(inside, block.theirs(maxima.largest_i)))
                share = jnp.where(filters > 0, kept, share)
            usable = other
            if ordered:
                usable &= (block.theirs(ranks) < block.mine(ranks)) | (filters > 0)
            share = jnp.where(usable, jnp.maximum(share, 0.0), 0.0)
            possible = (filters == 0) | (ops.intersection or ops.difference)
            possible &= (sources == 1) | ops.union
            # Where no two concepts meet, filters change nothing: all concepts are sources.
            possible &= meeting | (filters == 0)
            return jnp.maximum(bound, jnp.where(possible, sum_of_top_k(share, sources), NEVER))

        first = jnp.where(maxima.meeting.any(), 1, left).astype(left.dtype)
        return jax.lax.fori_loop(first, left + 1, of_class, jnp.full(len(c), NEVER))

    def if_meeting(bound: Callable[[], Float64[Array, " rows"]]) -> Float64[Array, " rows"]:
        """Filters are not effective elsewhere (`effective_steps`)."""
        return jax.lax.cond(maxima.meeting.any(), bound, lambda: jnp.full(len(c), NEVER))

    def at(values: Shaped[Array, "subs n"]) -> Shaped[Array, " rows"]:
        return values[sub, c]

    without = (
        block.theirs(inputs.own_i) - inside,
        block.theirs(inputs.own_e) - outside,
    )
    most = jnp.asarray(best)[sub]  # B of Proposition 9
    paid = jnp.minimum(at(maxima.removed(left)), at(inputs.own_e))
    bounds = [jnp.full(len(c), NEVER)] * 3
    if steps.union:
        rest = completion(*without, ordered=True)
        around = most + weight(at(inputs.own_i), v * (at(inputs.own_e) - paid))
        bounds[UNION] = jnp.minimum(at(inputs.own) + rest, around)
    if steps.intersection:
        bounds[INTERSECTION] = if_meeting(lambda: completion(inside, outside, ordered=False))
    if steps.difference:
        rest = if_meeting(lambda: completion(*without, ordered=False))
        bounds[DIFFERENCE] = jnp.minimum(rest, most + v * paid)
    return jnp.where(at(inputs.allowed)[:, None], outward(jnp.stack(bounds, axis=1)), NEVER)


@jax.jit
def effective_steps(inputs: BoundInputs) -> Bool[Array, "subs ops concepts"]:
    """Which outermost steps can change anything (Proposition 10), by operator (OR, AND, AND NOT).

    OR of a concept that is nowhere in the region, and filters that meet no other concept there,
    leave every formula as it is, or nothing of it.
    """
    note_trace("effective_steps")
    somewhere, meets = inputs.own_i + inputs.own_e > 0, _meets(inputs)
    return jnp.stack([somewhere, meets, meets], axis=1)


def _meets(inputs: BoundInputs) -> Bool[Array, "subs concepts"]:
    """Whether each concept meets another one."""
    every = inputs.all_rows()
    return ((every.inside + every.outside > 0) & every.others).any(2)
