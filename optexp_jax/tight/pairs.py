"""Bounds on formulas of three concepts from the exact counts of all pairs.

Over a region, with v the incumbent's IoU, every formula L has `W(L) = I(L) − v·E(L)`. W adds up
over locations, and L beats the incumbent only if W(L) exceeds a threshold. The Gram matrices give
W exactly for all pairs `a∘b`; here is how much a third concept x can still add to a pair:

    (a∘b) AND NOT x   removes at most v·E((a∘b) ∩ x), and gives up I((a∘b) ∩ x)
    (a∘b) OR x        adds W(x \\ (a∘b))
    (a∘b) AND x       leaves I((a∘b) ∩ x) − v·E((a∘b) ∩ x)

Each is bounded twice: for all pairs at once from maxima over x of each concept's row
(`pair_bounds`), and, for the pairs that survive, with the same x for both concepts
(`triple_bounds`). `X[a, b]` is W(a \\ b).
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.operators import AND, AND_NOT, OR, Operator
from optexp_jax.tight.grams import Gram
from optexp_jax.tracing import note_trace

UNION, INTERSECTION, DIFFERENCE = 0, 1, 2
"""The forms of a pair: a OR b, a AND b, a AND NOT b."""

OPERATORS = (OR, AND, AND_NOT)
"""The operator of each form."""

NEVER = -jnp.inf


class Forms(eqx.Module):
    """Which operators may be used."""

    union: bool = eqx.field(static=True)
    intersection: bool = eqx.field(static=True)
    difference: bool = eqx.field(static=True)

    @classmethod
    def of(cls, operators: Sequence[Operator]) -> "Forms":
        return cls(*(operator in operators for operator in OPERATORS))


class Weights(eqx.Module):
    """A region's counts in floating point, and the weights W that follow from them."""

    i: Float64[Array, "concepts concepts"]
    e: Float64[Array, "concepts concepts"]
    v: Float64[Array, ""]

    @classmethod
    def of(cls, gram: Gram, v: Float64[Array, ""]) -> "Weights":
        return cls(gram.inside.astype(jnp.float64), gram.outside.astype(jnp.float64), v)

    @property
    def own_i(self) -> Float64[Array, " concepts"]:
        return jnp.diagonal(self.i)

    @property
    def own_e(self) -> Float64[Array, " concepts"]:
        return jnp.diagonal(self.e)

    @property
    def own(self) -> Float64[Array, " concepts"]:
        """W of each concept."""
        return self.own_i - self.v * self.own_e

    @property
    def both(self) -> Float64[Array, "concepts concepts"]:
        """W(a AND b)."""
        return self.i - self.v * self.e


class PairScores(eqx.Module):
    """Exact counts of concepts and pairs, as IoUs in floating point (to be compared exactly)."""

    single: Float64[Array, " concepts"]
    pairs: Float64[Array, "forms concepts concepts"]
    highest: Float64[Array, ""]


@partial(jax.jit, static_argnames=("forms",))
def score_pairs(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    decided_inside: Int64[Array, ""],
    decided_outside: Int64[Array, ""],
    neuron_size: Int64[Array, ""],
    *,
    forms: Forms,
) -> PairScores:
    """IoUs of every concept and proper pair in a region, with what is decided outside of it."""
    note_trace("score_pairs")
    i, e = gram.inside, gram.outside
    own_i, own_e = jnp.diagonal(i), jnp.diagonal(e)

    def iou(inside: Array, outside: Array) -> Float64[Array, "..."]:
        intersection = (decided_inside + inside).astype(jnp.float64)
        union = (neuron_size + decided_outside + outside).astype(jnp.float64)
        return intersection / union

    counts = {
        UNION: (own_i[:, None] + own_i[None, :] - i, own_e[:, None] + own_e[None, :] - e),
        INTERSECTION: (i, e),
        DIFFERENCE: (own_i[:, None] - i, own_e[:, None] - e),
    }
    usable = usable_pairs(allowed, forms) & proper(gram)
    pairs = jnp.stack([jnp.where(usable[k], iou(*counts[k]), NEVER) for k in range(3)])
    single = jnp.where(allowed, iou(own_i, own_e), NEVER)
    return PairScores(single, pairs, jnp.maximum(single.max(), pairs.max()))


@partial(jax.jit, static_argnames=("forms",))
def pair_bounds(
    gram: Gram, allowed: Bool[Array, " concepts"], v: Float64[Array, ""], *, forms: Forms
) -> Float64[Array, "forms concepts concepts"]:
    """An upper bound on W of every pair with one more concept."""
    note_trace("pair_bounds")
    weights = Weights.of(gram, v)
    i, e, own, both = weights.i, weights.e, weights.own, weights.both
    other = others(allowed)

    def over_x(values: Float64[Array, "n n"]) -> Float64[Array, " n"]:
        """The maximum over the other concepts x, `values[a, x]`."""
        return jnp.where(other, values, NEVER).max(1)

    without = own[:, None] - both  # X[a, b] = W(a AND NOT b)
    union = own[:, None] + own[None, :] - both
    gain = over_x(v * e - i)  # W(a AND NOT x) − W(a)
    removed = over_x(v * e)
    common = over_x(i)
    half = over_x(i - v * e / 2)
    added = over_x(own[None, :] + v * e)  # W(x) + what of x was paid for already
    fresh = over_x(without.T + removed[None, :])  # W(x \ a), the other one's overlap removed too
    union_best = over_x(union)
    share = third_share(weights, allowed)

    # Every bound is the least of those that hold; a and b are exchangeable in a union.
    bounds = {form: [jnp.full_like(i, NEVER)] for form in (UNION, INTERSECTION, DIFFERENCE)}
    if forms.difference:
        bounds[UNION].append(union + least(gain[:, None] + removed[None, :]))
        bounds[INTERSECTION].append(jnp.minimum(i, both + least(removed[:, None])))
        # Of the two filters b is the one with the higher W(a AND NOT b).
        bounds[DIFFERENCE].append(without + jnp.minimum(removed[:, None], v * e))
    if forms.union:
        # Of three concepts in a union, x is the one with the smallest share.
        shares = share[:, None] + share[None, :] + least(share[:, None])
        bounds[UNION].append(jnp.minimum(union + least(fresh[:, None]), shares))
        bounds[INTERSECTION].append(both + least(added[:, None]))
        bounds[DIFFERENCE].append(
            jnp.minimum(without + added[:, None], union_best[:, None] + v * e)
        )
    if forms.intersection:
        # An x that meets neither leaves nothing.
        meets = over_x(i + e) > 0
        kept = half[:, None] + half[None, :]
        bounds[UNION].append(jnp.where(meets[:, None] | meets[None, :], kept, NEVER))
        bounds[INTERSECTION].append(jnp.minimum(i, least(common[:, None])))
        # (a AND NOT b) AND x is (a AND x) AND NOT b, which is bounded there.
    usable = usable_pairs(allowed, forms) & proper(gram)
    return jnp.where(usable, jnp.stack([jnp.stack(bounds[k]).max(0) for k in range(3)]), NEVER)


def least(values: Float64[Array, "..."]) -> Float64[Array, "n n"]:
    """The smaller of f(a, b) and f(b, a)."""
    n = max(values.shape)
    full = jnp.broadcast_to(values, (n, n))
    return jnp.minimum(full, full.T)


def third_share(weights: Weights, allowed: Bool[Array, " concepts"]) -> Float64[Array, " concepts"]:
    """How much each of three concepts can add to their union, shared locations divided equally.

    A location in m of the three counts 1/m for each, and 1/m >= 1/3 and >= 1 − (m − 1)/2.
    """
    e = jnp.where(others(allowed), weights.e, 0.0)
    first = e.max(1)
    second = jnp.where(jnp.arange(len(e))[None, :] == e.argmax(1)[:, None], 0.0, e).max(1)
    paid = jnp.maximum(weights.own_e / 3, weights.own_e - (first + second) / 2)
    return weights.own_i - weights.v * paid


def others(allowed: Bool[Array, " concepts"]) -> Bool[Array, "concepts concepts"]:
    """Which concepts x can come to a concept a, `[a, x]`."""
    return ~jnp.eye(len(allowed), dtype=bool) & allowed[None, :]


def usable_pairs(
    allowed: Bool[Array, " concepts"], forms: Forms
) -> Bool[Array, "forms concepts concepts"]:
    """Pairs of two allowed concepts whose operator may be used; symmetric forms only once."""
    n = len(allowed)
    both = allowed[:, None] & allowed[None, :]
    upper = jnp.triu(jnp.ones((n, n), bool), 1)
    return jnp.stack(
        [
            both & upper & forms.union,
            both & upper & forms.intersection,
            both & ~jnp.eye(n, dtype=bool) & forms.difference,
        ]
    )


def proper(gram: Gram) -> Bool[Array, "forms concepts concepts"]:
    """Pairs that are neither empty nor equal to one of their concepts over the region.

    The others, and whatever is built on them, exist with fewer concepts.
    """
    overlap = gram.inside + gram.outside
    own = jnp.diagonal(overlap)
    touching = overlap > 0
    row_in_column = overlap == own[:, None]
    column_in_row = overlap == own[None, :]
    proper = ~row_in_column & ~column_in_row
    return jnp.stack([proper, touching & proper, touching & ~row_in_column])


@partial(jax.jit, static_argnames=("forms",))
def triple_bounds(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    v: Float64[Array, ""],
    form: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    *,
    forms: Forms,
) -> Float64[Array, " pairs"]:
    """An upper bound on W of given pairs with one more concept, the best over each concept x."""
    note_trace("triple_bounds")
    w = Weights.of(gram, v)
    every = jnp.arange(len(allowed), dtype=a.dtype)

    def one(kind: Int32[Array, ""], a: Int32[Array, ""], b: Int32[Array, ""]) -> Array:
        usable = allowed & (every != a) & (every != b)
        best = [
            jnp.where(kind == UNION, _union_and_more(w, a, b, forms), NEVER),
            jnp.where(kind == INTERSECTION, _intersection_and_more(w, a, b, forms), NEVER),
            jnp.where(kind == DIFFERENCE, _difference_and_more(w, a, b, forms), NEVER),
        ]
        return jnp.where(usable, jnp.stack(best).max(0), NEVER).max()

    return jax.vmap(one)(form, a, b)


def _union_and_more(
    w: Weights, a: Int32[Array, ""], b: Int32[Array, ""], forms: Forms
) -> Float64[Array, " concepts"]:
    """W of `(a OR b)∘x` for every x, the highest over the operators."""
    ia, ib, ea, eb = w.i[a], w.i[b], w.e[a], w.e[b]  # overlaps with every x
    union = w.own[a] + w.own[b] - w.both[a, b]
    best = jnp.full_like(ia, NEVER)
    if forms.difference:
        removed = union + w.v * (ea + eb) - jnp.maximum(ia, ib)
        # W(a \ x) + W(b \ x) − W((a AND b) \ x)
        kept_i = jnp.maximum(w.i[a, b] - jnp.minimum(ia, ib), 0.0)
        kept_e = jnp.minimum(jnp.minimum(w.own_e[a] - ea, w.own_e[b] - eb), w.e[a, b])
        parts = union + w.both[a, b] - (ia - w.v * ea) - (ib - w.v * eb) - kept_i + w.v * kept_e
        best = jnp.maximum(best, jnp.minimum(removed, parts))
    if forms.union:
        covered = jnp.minimum(ea + eb, w.own_e)
        best = jnp.maximum(best, union + w.own + w.v * covered - jnp.maximum(ia, ib))
    if forms.intersection:
        inside = jnp.minimum(ia + ib, w.own_i)
        outside = jnp.maximum(jnp.maximum(ea, eb), ea + eb - w.e[a, b])
        best = jnp.maximum(best, inside - w.v * outside)
    return best


def _intersection_and_more(
    w: Weights, a: Int32[Array, ""], b: Int32[Array, ""], forms: Forms
) -> Float64[Array, " concepts"]:
    """W of `(a AND b)∘x` for every x, the highest over the operators."""
    i_low, i_high = _common_to_three(w.i, a, b)
    e_low, e_high = _common_to_three(w.e, a, b)
    pair = w.both[a, b]
    best = jnp.full_like(i_low, NEVER)
    if forms.difference:
        best = jnp.maximum(best, pair + w.v * e_high - i_low)
    if forms.union:
        best = jnp.maximum(best, pair + w.own + w.v * e_high - i_low)
    if forms.intersection:
        best = jnp.maximum(best, i_high - w.v * e_low)
    return best


def _difference_and_more(
    w: Weights, a: Int32[Array, ""], b: Int32[Array, ""], forms: Forms
) -> Float64[Array, " concepts"]:
    """W of `(a AND NOT b)∘x` for every x; AND is left to `(a AND x) AND NOT b`."""
    i_low, i_high = _common_to_three(w.i, a, b)
    e_low, _ = _common_to_three(w.e, a, b)
    pair = w.own[a] - w.both[a, b]
    # The part of a that x shares, less what b has of it.
    shared_i = jnp.maximum(w.i[a] - i_high, 0.0)
    shared_e = w.e[a] - e_low
    best = jnp.full_like(i_low, NEVER)
    if forms.difference:
        best = jnp.maximum(best, pair + w.v * shared_e - shared_i)
    if forms.union:
        best = jnp.maximum(best, pair + w.own + w.v * shared_e - shared_i)
    return best


def _common_to_three(
    g: Float64[Array, "concepts concepts"], a: Int32[Array, ""], b: Int32[Array, ""]
) -> tuple[Float64[Array, " concepts"], Float64[Array, " concepts"]]:
    """Limits of |a ∩ b ∩ x| for every x, from the pairs."""
    own = jnp.diagonal(g)
    ab, ax, bx = g[a, b], g[a], g[b]
    high = jnp.minimum(jnp.minimum(ax, bx), ab)
    low = jnp.maximum(jnp.maximum(ab + ax - own[a], ab + bx - own[b]), ax + bx - own)
    return jnp.maximum(low, 0.0), high
