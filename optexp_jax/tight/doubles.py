"""Bounds on pairs with two more steps, the last of which is AND NOT.

With four concepts inside the outer steps, the outermost of the four is OR, AND or AND NOT. The
first two narrow what is left so much that `outer_bounds` settles most of them. An outermost AND
NOT y removes little from much, so here it is bounded from the inside: `((a∘b) OR x) AND NOT y`
and `((a∘b) AND NOT x) AND NOT y`. Where the middle step is AND the two filters commute and AND is
outermost.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int64

from optexp_jax.tight.grams import Gram
from optexp_jax.tight.pairs import (
    DIFFERENCE,
    INTERSECTION,
    NEVER,
    UNION,
    Forms,
    Weights,
    least,
    others,
    proper,
    usable_pairs,
)
from optexp_jax.tracing import note_trace


@partial(jax.jit, static_argnames=("forms",))
def double_bounds(
    gram: Gram, allowed: Bool[Array, " concepts"], v: Float64[Array, ""], *, forms: Forms
) -> Float64[Array, "forms concepts concepts"]:
    """An upper bound on W of every pair with an OR or AND NOT and then an AND NOT."""
    note_trace("double_bounds")
    w = Weights.of(gram, v)
    i, e, own, both = w.i, w.e, w.own, w.both
    other = others(allowed)

    def over_x(values: Float64[Array, "n n"]) -> Float64[Array, " n"]:
        return jnp.where(other, values, NEVER).max(1)

    without = own[:, None] - both
    union = own[:, None] + own[None, :] - both
    gain = over_x(v * e - i)
    one, two = (v * part for part in _largest_overlaps(w, allowed))
    # ((a∘b) AND NOT y), as in `pair_bounds`.
    union_not = union + least(gain[:, None] + one[None, :])
    both_not = jnp.minimum(i, both + least(one[:, None]))
    bounds = {
        # ((a∘b) AND NOT x) AND NOT y
        UNION: [union + least((gain + one)[:, None] + two[None, :])],
        INTERSECTION: [jnp.minimum(i, both + least(two[:, None]))],
        # Of the three filters b is the one with the highest W(a AND NOT b).
        DIFFERENCE: [without + jnp.minimum(two[:, None], v * e + one[:, None])],
    }
    if forms.union:
        # ((a∘b) OR x) AND NOT y is (a∘b) AND NOT y, and what x has outside of a∘b and y.
        fresh = over_x(without.T + two[None, :])
        added = jnp.maximum(over_x(own[None, :] + v * e + one[None, :]), 0.0)
        share = filtered_share(w, allowed)
        shares = share[:, None] + share[None, :] + least(share[:, None])
        bounds[UNION].append(
            jnp.minimum(union_not + jnp.maximum(least(fresh[:, None]), 0.0), shares)
        )
        bounds[INTERSECTION].append(both_not + least(added[:, None]))
        best_not = (own + gain)[:, None] + v * e  # the best filter of a, and b removed too
        base = jnp.minimum(without + one[:, None], best_not)
        around = over_x(union_not)[:, None] + v * e  # ((a OR x) AND NOT y), and b removed
        bounds[DIFFERENCE].append(jnp.minimum(base + added[:, None], around))
    usable = usable_pairs(allowed, forms) & proper(gram)
    return jnp.where(usable, jnp.stack([jnp.stack(bounds[k]).max(0) for k in range(3)]), NEVER)


def _largest_overlaps(
    w: Weights, allowed: Bool[Array, " concepts"]
) -> tuple[Float64[Array, " n"], Float64[Array, " n"]]:
    """The largest overlap of each concept outside the neuron, and the sum of the two largest."""
    e = jnp.where(others(allowed), w.e, 0.0)
    first = e.max(1)
    second = jnp.where(jnp.arange(len(e))[None, :] == e.argmax(1)[:, None], 0.0, e).max(1)
    return first, first + second


def filtered_share(w: Weights, allowed: Bool[Array, " concepts"]) -> Float64[Array, " concepts"]:
    """`third_share` of three concepts in a union that one AND NOT has been taken from."""
    first, two = _largest_overlaps(w, allowed)
    left = jnp.maximum(w.own_e - first, 0.0)
    return w.own_i - w.v * jnp.maximum(left / 3, left - two / 2)


@jax.jit
def last_step_bounds(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    v: Float64[Array, ""],
    label_inside: Int64[Array, ""],
    label_outside: Int64[Array, ""],
    shared_inside: Int64[Array, " concepts"],
    shared_outside: Int64[Array, " concepts"],
) -> Float64[Array, "two concepts"]:
    """Bounds on W of `(L OR x) AND NOT y` and `(L AND NOT x) AND NOT y`, by x, the best over y.

    The label's overlaps with every concept are exact, so each has a single unknown: what x and y
    share within L. Of two filters x is the one that leaves more.
    """
    note_trace("last_step_bounds")
    w = Weights.of(gram, v)
    shared_i, shared_e = (part.astype(jnp.float64) for part in (shared_inside, shared_outside))
    label = label_inside.astype(jnp.float64) - v * label_outside.astype(jnp.float64)
    shared = shared_i - v * shared_e
    left = label - shared  # W(L AND NOT y), by y
    outside_label = w.own - shared  # W(x AND NOT L), by x
    # W(x AND NOT L AND NOT y): less what y has of x outside of L.
    apart = jnp.minimum(
        outside_label[:, None] + v * w.e, w.own[:, None] - w.both + v * shared_e[:, None]
    )
    union = left[None, :] + apart
    filters = jnp.minimum(
        left[:, None]
        + v * shared_e[None, :]
        - jnp.maximum(shared_i[None, :] - jnp.minimum(shared_i[:, None], w.i), 0.0),
        left[None, :] + v * shared_e[:, None],
    )
    usable = others(allowed) & allowed[:, None]
    in_order = usable & (left[None, :] <= left[:, None])
    return jnp.stack(
        [jnp.where(usable, union, NEVER).max(1), jnp.where(in_order, filters, NEVER).max(1)]
    )
