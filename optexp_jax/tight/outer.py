"""Bounds on what is left once the outermost step of a formula is fixed.

A chain read from its outermost step inward is a decision list: `… OR c` says "if c then 1", `…
AND c` "if not c then 0", `… AND NOT c` "if c then 0". What is decided never changes; the rest of
the chain works on the locations R' that are left: R without c, or, for AND, R within c. The Gram
matrices of R give exactly how much of every concept x lies in R', inside the neuron, I'(x), and
outside of it, E'(x).

A completion of t concepts has p sources (its leaf and ORs) and r = t − p filters. Its locations
are divided equally among the sources that contain them; W is then at most the sum of the p
largest shares.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.tight.largest import largest, sum_of_largest
from optexp_jax.tight.region import NEVER, Region
from optexp_jax.tracing import note_trace


@pytree
class OuterRows:
    """What other concepts can take away of each concept."""

    largest_e: Float64[Array, "counts concepts"]
    """The sum of the k largest E(x ∩ y), for k = 0, 1, …"""
    largest_i: Float64[Array, " concepts"]
    """The largest I(x ∩ y)."""
    meeting: Bool[Array, ""]
    """Whether any two concepts meet."""

    def removed(self, k: Int32[Array, ""]) -> Float64[Array, " concepts"]:
        return self.largest_e[jnp.minimum(k, len(self.largest_e) - 1)]


@partial(jax.jit, static_argnames="longest")
def outer_rows(region: Region, *, longest: int) -> OuterRows:
    """The sums of up to `longest` overlaps."""
    note_trace("outer_rows")
    every, n = region.all_rows(), region.n_concepts
    overlaps = largest(jnp.where(every.others, every.e, 0.0), min(longest, n))
    return OuterRows(
        jnp.concatenate([jnp.zeros((1, n)), jnp.cumsum(overlaps, axis=1).T]),
        jnp.where(every.others, every.i, 0.0).max(1),
        ((every.inside + every.outside > 0) & every.others).any(),
    )


@partial(jax.jit, static_argnames=("forms", "steps"))
def outer_bounds(
    region: Region,
    rows: OuterRows,
    rank: Int32[Array | np.ndarray, " concepts"],
    best: Float64[Array, ""],
    left: Int32[Array, ""],
    c: Int32[Array | np.ndarray, " rows"],
    *,
    forms: Forms,
    steps: Forms,
) -> Float64[Array, "rows forms"]:
    """Upper bounds on W for outermost steps of some concepts c, around at most `left` concepts.

    `steps` are those that are asked for; the others get −∞.

    `best` bounds W of everything that can be made of `left` concepts in this region. In a run of
    ORs the outermost concept has the highest rank. One program serves every `left`.
    """
    note_trace("outer_bounds")
    v, block = region.v, region.rows(jnp.asarray(c))
    inside, outside, other = block.i, block.e, block.others

    def completion(
        inside: Float64[Array, "rows n"], outside: Float64[Array, "rows n"], ordered: bool
    ) -> Float64[Array, " rows"]:
        """The highest bound over classes (p, r), for `inside[c, x]` and `outside[c, x]` in R'."""

        def of_class(sources: Int32[Array, ""], bound: Float64[Array, " rows"]) -> Array:
            filters = left - sources
            e_left = jnp.maximum(outside - rows.removed(filters)[None, :], 0.0)
            shared = rows.removed(sources - 1)[None, :] / 2
            share = inside - v * jnp.maximum(e_left / sources.astype(jnp.float64), e_left - shared)
            if forms.intersection:
                # An AND can take all extras away, and leaves what x shares with another concept.
                kept = jnp.maximum(share, jnp.minimum(inside, rows.largest_i[None, :]))
                share = jnp.where(filters > 0, kept, share)
            usable = other
            if ordered:
                usable &= (rank[None, :] < rank[c][:, None]) | (filters > 0)
            share = jnp.where(usable, jnp.maximum(share, 0.0), 0.0)
            possible = (filters == 0) | (forms.intersection or forms.difference)
            possible &= (sources == 1) | forms.union
            return jnp.maximum(bound, jnp.where(possible, sum_of_largest(share, sources), NEVER))

        # Where no two concepts meet, filters change nothing: all concepts are sources.
        first = jnp.where(rows.meeting, 1, left).astype(left.dtype)
        return jax.lax.fori_loop(first, left + 1, of_class, jnp.full(len(c), NEVER))

    def if_meeting(bound: Callable[[], Float64[Array, " rows"]]) -> Float64[Array, " rows"]:
        """Filters are not effective elsewhere (`effective_steps`)."""
        return jax.lax.cond(rows.meeting, bound, lambda: jnp.full(len(c), NEVER))

    without = region.own_i[None, :] - inside, region.own_e[None, :] - outside
    own_i, own_e, own = region.own_i[c], region.own_e[c], region.own[c]
    paid = jnp.minimum(rows.removed(left)[c], own_e)
    bounds = [jnp.full(len(c), NEVER)] * 3
    if steps.union:
        rest = completion(*without, ordered=True)
        bounds[UNION] = jnp.minimum(own + rest, best + own_i - v * (own_e - paid))
    if steps.intersection:
        bounds[INTERSECTION] = if_meeting(lambda: completion(inside, outside, ordered=False))
    if steps.difference:
        rest = if_meeting(lambda: completion(*without, ordered=False))
        bounds[DIFFERENCE] = jnp.minimum(rest, best + v * paid)
    return jnp.where(region.allowed[c][:, None], jnp.stack(bounds, axis=1), NEVER)


@jax.jit
def effective_steps(region: Region) -> Bool[Array, "forms concepts"]:
    """Which outermost steps can change anything, by form (OR, AND, AND NOT).

    OR of a concept that is nowhere in the region, and filters that meet no other concept there,
    leave every formula as it is, or nothing of it.
    """
    note_trace("effective_steps")
    somewhere = region.own_i + region.own_e > 0
    every = region.all_rows()
    meets = ((every.inside + every.outside > 0) & every.others).any(1)
    return jnp.stack([somewhere, meets, meets])
