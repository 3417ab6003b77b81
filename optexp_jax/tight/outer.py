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

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.tight.grams import Gram
from optexp_jax.tight.largest import largest, sum_of_largest
from optexp_jax.tight.pairs import NEVER, Forms, Weights, others
from optexp_jax.tracing import note_trace


class OuterBounds(eqx.Module):
    """Upper bounds on W for each outermost step (operator, c) of a region's formulas."""

    union: Float64[Array, " concepts"]
    intersection: Float64[Array, " concepts"]
    difference: Float64[Array, " concepts"]


@partial(jax.jit, static_argnames=("forms", "longest"))
def outer_bounds(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    rank: Int32[Array, " concepts"],
    v: Float64[Array, ""],
    best: Float64[Array, ""],
    left: Int32[Array, ""],
    *,
    forms: Forms,
    longest: int,
) -> OuterBounds:
    """Bounds for outermost steps with at most `left` concepts inside of them.

    `best` bounds W of everything that can be made of `left` concepts in this region. In a run of
    ORs the outermost concept has the highest rank. One program serves every `left <= longest`.
    """
    note_trace("outer_bounds")
    weights = Weights.of(gram, v)
    i, e = weights.i, weights.e
    n = len(allowed)
    other = others(allowed)
    overlaps = largest(jnp.where(other, e, 0.0), min(longest, n))
    # top_e[k][x]: the sum of the k largest overlaps of x, outside the neuron, with other concepts.
    top_e = jnp.concatenate([jnp.zeros((1, n)), jnp.cumsum(overlaps, axis=1).T])
    top_i = jnp.where(other, i, 0.0).max(1)

    def largest_overlaps(k: Int32[Array, ""]) -> Float64[Array, "1 n"]:
        return top_e[jnp.minimum(k, len(top_e) - 1)][None, :]

    def completion(
        inside: Float64[Array, "n n"], outside: Float64[Array, "n n"], ordered: bool
    ) -> Float64[Array, " n"]:
        """The highest bound over classes (p, r), for `inside[c, x]` and `outside[c, x]` in R'."""

        def of_class(sources: Int32[Array, ""], bound: Float64[Array, " n"]) -> Array:
            filters = left - sources
            e_left = jnp.maximum(outside - largest_overlaps(filters), 0.0)
            shared = largest_overlaps(sources - 1) / 2
            share = inside - v * jnp.maximum(e_left / sources.astype(jnp.float64), e_left - shared)
            if forms.intersection:
                # An AND can take all extras away, and leaves what x shares with another concept.
                kept = jnp.maximum(share, jnp.minimum(inside, top_i[None, :]))
                share = jnp.where(filters > 0, kept, share)
            usable = other
            if ordered:
                usable &= (rank[None, :] < rank[:, None]) | (filters > 0)
            share = jnp.where(usable, jnp.maximum(share, 0.0), 0.0)
            possible = (filters == 0) | (forms.intersection or forms.difference)
            possible &= (sources == 1) | forms.union
            return jnp.maximum(bound, jnp.where(possible, sum_of_largest(share, sources), NEVER))

        one = jnp.ones((), left.dtype)
        return jax.lax.fori_loop(one, left + 1, of_class, jnp.full(n, NEVER))

    own_i, own_e, own = weights.own_i, weights.own_e, weights.own
    outside_i, outside_e = own_i[None, :] - i, own_e[None, :] - e
    paid = jnp.minimum(largest_overlaps(left)[0], own_e)

    def filters() -> tuple[Float64[Array, " n"], Float64[Array, " n"]]:
        return completion(i, e, ordered=False), completion(outside_i, outside_e, ordered=False)

    # Where no two concepts meet, filters change nothing (`effective_steps`).
    meeting = (((i + e) > 0) & other).any()
    within_c, outside_c = jax.lax.cond(
        meeting, filters, lambda: (jnp.full(n, NEVER), jnp.full(n, NEVER))
    )
    return OuterBounds(
        union=_where(
            forms.union & allowed,
            jnp.minimum(
                own + completion(outside_i, outside_e, ordered=True),
                best + own_i - v * (own_e - paid),
            ),
        ),
        intersection=_where(forms.intersection & allowed, within_c),
        difference=_where(forms.difference & allowed, jnp.minimum(outside_c, best + v * paid)),
    )


@jax.jit
def effective_steps(gram: Gram, allowed: Bool[Array, " concepts"]) -> Bool[Array, "forms concepts"]:
    """Which outermost steps can change anything, by form (OR, AND, AND NOT).

    OR of a concept that is nowhere in the region, and filters that meet no other concept there,
    leave every formula as it is, or nothing of it.
    """
    note_trace("effective_steps")
    overlap = gram.inside + gram.outside
    somewhere = jnp.diagonal(overlap) > 0
    meets = ((overlap > 0) & others(allowed)).any(1)
    return jnp.stack([somewhere, meets, meets])


def _where(kept: Bool[Array, " n"], bound: Float64[Array, " n"]) -> Float64[Array, " n"]:
    return jnp.where(kept, bound, NEVER)
