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
from jaxtyping import Array, Bool, Float64, Int32, Shaped

from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.bounds.tight.largest import largest, sum_of_largest
from optexp_jax.bounds.tight.region import NEVER, BoundInputs
from optexp_jax.bounds.tight.rounding import outward, weight
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class OuterRows:
    """What other concepts can take away of each concept."""

    largest_e: Float64[Array, "counts places concepts"]
    """The sum of the k largest E(x ∩ y), for k = 0, 1, …"""
    largest_i: Float64[Array, "places concepts"]
    """The largest I(x ∩ y)."""
    meeting: Bool[Array, " places"]
    """Whether any two concepts meet."""

    def removed(self, k: Int32[Array, ""]) -> Float64[Array, "places concepts"]:
        return self.largest_e[jnp.minimum(k, len(self.largest_e) - 1)]


@partial(jax.jit, static_argnames="longest")
def outer_rows(regions: BoundInputs, *, longest: int) -> OuterRows:
    """The sums of up to `longest` overlaps."""
    note_trace("outer_rows")
    every, n = regions.all_rows(), regions.n_concepts
    overlaps = jnp.where(every.others, every.e, 0.0).reshape(-1, n)
    sums = jnp.cumsum(largest(overlaps, min(longest, n)), axis=1).T
    return OuterRows(
        jnp.concatenate([jnp.zeros((1, len(overlaps))), sums]).reshape(-1, *regions.allowed.shape),
        jnp.where(every.others, every.i, 0.0).max(2),
        _meets(regions).any(1),
    )


@partial(jax.jit, static_argnames=("forms", "steps"))
def outer_bounds(
    regions: BoundInputs,
    rows: OuterRows,
    rank: Int32[Array | np.ndarray, "places concepts"],
    best: Float64[Array | np.ndarray, " places"],
    left: Int32[Array, ""],
    place: Int32[Array | np.ndarray, " rows"],
    c: Int32[Array | np.ndarray, " rows"],
    *,
    forms: Forms,
    steps: Forms,
) -> Float64[Array, "rows forms"]:
    """Upper bounds on W for outermost steps of some concepts c, around at most `left` concepts.

    `steps` are those that are asked for; the others get −∞.

    `best` bounds W of everything that can be made of `left` concepts at each place, rounded up. In
    a run of ORs the outermost concept has the highest rank. One program serves every `left`.
    """
    note_trace("outer_bounds")
    place, c = jnp.asarray(place), jnp.asarray(c)
    v = regions.v[place]
    block = regions.rows(place, c)
    inside, outside, other = block.i, block.e, block.others
    meeting, ranks = rows.meeting[place], jnp.asarray(rank)

    def completion(
        inside: Float64[Array, "rows n"], outside: Float64[Array, "rows n"], ordered: bool
    ) -> Float64[Array, " rows"]:
        """The highest bound over classes (p, r), for `inside[c, x]` and `outside[c, x]` in R'."""

        def of_class(sources: Int32[Array, ""], bound: Float64[Array, " rows"]) -> Array:
            filters = left - sources
            e_left = jnp.maximum(outside - block.theirs(rows.removed(filters)), 0.0)
            shared = block.theirs(rows.removed(sources - 1)) / 2
            paid_for = jnp.maximum(e_left / sources.astype(jnp.float64), e_left - shared)
            share = weight(inside, block.v * paid_for)
            if forms.intersection:
                # An AND can take all extras away, and leaves what x shares with another concept.
                kept = jnp.maximum(share, jnp.minimum(inside, block.theirs(rows.largest_i)))
                share = jnp.where(filters > 0, kept, share)
            usable = other
            if ordered:
                usable &= (block.theirs(ranks) < block.mine(ranks)) | (filters > 0)
            share = jnp.where(usable, jnp.maximum(share, 0.0), 0.0)
            possible = (filters == 0) | (forms.intersection or forms.difference)
            possible &= (sources == 1) | forms.union
            # Where no two concepts meet, filters change nothing: all concepts are sources.
            possible &= meeting | (filters == 0)
            return jnp.maximum(bound, jnp.where(possible, sum_of_largest(share, sources), NEVER))

        first = jnp.where(rows.meeting.any(), 1, left).astype(left.dtype)
        return jax.lax.fori_loop(first, left + 1, of_class, jnp.full(len(c), NEVER))

    def if_meeting(bound: Callable[[], Float64[Array, " rows"]]) -> Float64[Array, " rows"]:
        """Filters are not effective elsewhere (`effective_steps`)."""
        return jax.lax.cond(rows.meeting.any(), bound, lambda: jnp.full(len(c), NEVER))

    def at(values: Shaped[Array, "places n"]) -> Shaped[Array, " rows"]:
        return values[place, c]

    without = (
        block.theirs(regions.own_i) - inside,
        block.theirs(regions.own_e) - outside,
    )
    most = jnp.asarray(best)[place]
    paid = jnp.minimum(at(rows.removed(left)), at(regions.own_e))
    bounds = [jnp.full(len(c), NEVER)] * 3
    if steps.union:
        rest = completion(*without, ordered=True)
        around = most + weight(at(regions.own_i), v * (at(regions.own_e) - paid))
        bounds[UNION] = jnp.minimum(at(regions.own) + rest, around)
    if steps.intersection:
        bounds[INTERSECTION] = if_meeting(lambda: completion(inside, outside, ordered=False))
    if steps.difference:
        rest = if_meeting(lambda: completion(*without, ordered=False))
        bounds[DIFFERENCE] = jnp.minimum(rest, most + v * paid)
    return jnp.where(at(regions.allowed)[:, None], outward(jnp.stack(bounds, axis=1)), NEVER)


@jax.jit
def effective_steps(regions: BoundInputs) -> Bool[Array, "places forms concepts"]:
    """Which outermost steps can change anything, by form (OR, AND, AND NOT).

    OR of a concept that is nowhere in the region, and filters that meet no other concept there,
    leave every formula as it is, or nothing of it.
    """
    note_trace("effective_steps")
    somewhere, meets = regions.own_i + regions.own_e > 0, _meets(regions)
    return jnp.stack([somewhere, meets, meets], axis=1)


def _meets(regions: BoundInputs) -> Bool[Array, "places concepts"]:
    """Whether each concept meets another one."""
    every = regions.all_rows()
    return ((every.inside + every.outside > 0) & every.others).any(2)
