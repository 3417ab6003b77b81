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
from optexp_jax.tight.largest import largest
from optexp_jax.tight.pairs import NEVER, Forms, Weights, others
from optexp_jax.tracing import note_trace


class OuterBounds(eqx.Module):
    """Upper bounds on W for each outermost step (operator, c) of a region's formulas."""

    union: Float64[Array, " concepts"]
    intersection: Float64[Array, " concepts"]
    difference: Float64[Array, " concepts"]


@partial(jax.jit, static_argnames=("forms", "left"))
def outer_bounds(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    rank: Int32[Array, " concepts"],
    v: Float64[Array, ""],
    best: Float64[Array, ""],
    *,
    forms: Forms,
    left: int,
) -> OuterBounds:
    """Bounds for outermost steps with at most `left` concepts inside of them.

    `best` bounds W of everything that can be made of `left` concepts in this region. In a run of
    ORs the outermost concept has the highest rank.
    """
    note_trace("outer_bounds")
    weights = Weights.of(gram, v)
    i, e = weights.i, weights.e
    n = len(allowed)
    other = others(allowed)
    overlaps = largest(jnp.where(other, e, 0.0), min(left, n))
    # top_e[k][x]: the sum of the k largest overlaps of x, outside the neuron, with other concepts.
    top_e = [jnp.zeros(n), *jnp.cumsum(overlaps, axis=1).T]
    top_e += [top_e[-1]] * (left + 1 - len(top_e))
    top_i = jnp.where(other, i, 0.0).max(1)

    def completion(inside: Array, outside: Array, ordered: bool) -> Float64[Array, " n"]:
        """The highest bound over classes (p, r), for `inside[c, x]` and `outside[c, x]` in R'."""
        bounds: list[Array] = []
        for sources in range(1, left + 1):
            filters = left - sources
            if filters and not (forms.intersection or forms.difference):
                continue
            if sources > 1 and not forms.union:
                continue
            e_left = jnp.maximum(outside - top_e[filters][None, :], 0.0)
            shared = top_e[sources - 1][None, :] / 2
            share = inside - v * jnp.maximum(e_left / sources, e_left - shared)
            if filters and forms.intersection:
                # An AND can take all extras away, and leaves what x shares with another concept.
                share = jnp.maximum(share, jnp.minimum(inside, top_i[None, :]))
            usable = other & (rank[None, :] < rank[:, None]) if ordered and not filters else other
            share = jnp.where(usable, jnp.maximum(share, 0.0), 0.0)
            bounds.append(largest(share, min(sources, n)).sum(1))
        return jnp.stack(bounds).max(0)

    own_i, own_e, own = weights.own_i, weights.own_e, weights.own
    outside_c = completion(own_i[None, :] - i, own_e[None, :] - e, ordered=False)
    paid = jnp.minimum(top_e[left], own_e)
    return OuterBounds(
        union=_where(
            forms.union & allowed,
            jnp.minimum(
                own + completion(own_i[None, :] - i, own_e[None, :] - e, ordered=True),
                best + own_i - v * (own_e - paid),
            ),
        ),
        intersection=_where(forms.intersection & allowed, completion(i, e, ordered=False)),
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
