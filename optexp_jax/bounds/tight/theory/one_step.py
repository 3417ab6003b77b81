"""Bounds on formulas of three concepts from the exact counts of all pairs.

How much a third concept x can still add to a pair, of which W is exact:

    (a∘b) AND NOT x   removes at most v·E((a∘b) ∩ x), and gives up I((a∘b) ∩ x)
    (a∘b) OR x        adds W(x \\ (a∘b))
    (a∘b) AND x       leaves I((a∘b) ∩ x) − v·E((a∘b) ∩ x)

Here for all pairs at once, from maxima over x of each concept's row (Propositions 3 and 6); in
`triple_bounds`, for the pairs that survive, with the same x for both concepts (Proposition 5).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.operator_set import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    OperatorSet,
    common_to_three,
)
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.bounds.tight.theory.bound_inputs import (
    NEVER,
    BoundInputs,
    GramRows,
    diagonals,
    least,
)
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@partial(jax.jit, static_argnames=("ops",))
def highest_pair_bounds(
    inputs: BoundInputs, maxima: RowMaxima, *, ops: OperatorSet
) -> Float64[Array, "subs concepts ops"]:
    """The highest bounds of all pairs with the same first concept."""
    note_trace("highest_pair_bounds")
    return pair_bounds_of(inputs.all_rows(), maxima, ops).max(-1)


@partial(jax.jit, static_argnames=("ops",))
def highest_bounds(
    inputs: BoundInputs, maxima: RowMaxima, *, ops: OperatorSet
) -> Float64[Array, "subs concepts"]:
    """The same over all operators."""
    return highest_pair_bounds(inputs, maxima, ops=ops).max(-1)


@partial(jax.jit, static_argnames=("ops",))
def pair_bounds(
    inputs: BoundInputs,
    maxima: RowMaxima,
    sub: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    *,
    ops: OperatorSet,
) -> Float64[Array, "rows ops concepts"]:
    """An upper bound on W of the pairs of some concepts with every other, and one more concept."""
    note_trace("pair_bounds")
    return pair_bounds_of(inputs.rows(sub, a), maxima, ops)


def pair_bounds_of(
    block: GramRows, maxima: RowMaxima, ops: OperatorSet
) -> Float64[Array, "*rows ops concepts"]:
    """The same for the pairs of a block, within a program: Propositions 3 and 6."""
    i, ve, both, without = block.i, block.ve, block.both, block.without
    removed, added, union_best = (
        block.mine(part) for part in (maxima.removed, maxima.added, maxima.union)
    )
    # Every bound is the least of those that hold; a and b are exchangeable in a union.
    never = jnp.full_like(i, NEVER)
    unions, intersections, differences = [never], [never], [never]
    if ops.difference:
        unions.append(block.union + least(maxima.gain, block, maxima.removed))
        intersections.append(jnp.minimum(i, both + least(maxima.removed, block)))
        # Of the two filters b is the one with the higher W(a AND NOT b).
        differences.append(without + jnp.minimum(removed, ve))
    if ops.union:
        # Of three concepts in a union, x is the one with the smallest share.
        share = maxima.third_share(block.inputs)
        shares = block.mine(share) + block.theirs(share) + least(share, block)
        unions.append(jnp.minimum(block.union + least(maxima.fresh, block), shares))
        intersections.append(both + least(maxima.added, block))
        differences.append(jnp.minimum(without + added, union_best + ve))
    if ops.intersection:
        # An x that meets neither leaves nothing.
        meets = block.mine(maxima.meets) | block.theirs(maxima.meets)
        halves = block.mine(maxima.half) + block.theirs(maxima.half)
        unions.append(jnp.where(meets, halves, NEVER))
        intersections.append(jnp.minimum(i, least(maxima.common, block)))
        # (a AND NOT b) AND x is (a AND x) AND NOT b, which is bounded there.
    bounds = [jnp.stack(part).max(0) for part in (unions, intersections, differences)]
    usable = block.usable(ops) & block.proper()
    return jnp.where(usable, jnp.stack(bounds, axis=-2), NEVER)


@partial(jax.jit, static_argnames=("ops",))
def triple_bounds(
    inputs: BoundInputs,
    sub: Int32[Array, " pairs"],
    op: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    *,
    ops: OperatorSet,
) -> Float64[Array, " pairs"]:
    """Proposition 5: a bound on W of given pairs with one more concept, the best over each x."""
    note_trace("triple_bounds")
    every = jnp.arange(inputs.n_concepts, dtype=a.dtype)

    def one(
        sub: Int32[Array, ""], kind: Int32[Array, ""], a: Int32[Array, ""], b: Int32[Array, ""]
    ) -> Array:
        w = _Pair.of(inputs, sub, a, b)
        usable = inputs.allowed[sub] & (every != a) & (every != b)
        best = [
            jnp.where(kind == UNION, _union_and_more(w, ops), NEVER),
            jnp.where(kind == INTERSECTION, _intersection_and_more(w, ops), NEVER),
            jnp.where(kind == DIFFERENCE, _difference_and_more(w, ops), NEVER),
        ]
        return jnp.where(usable, jnp.stack(best).max(0), NEVER).max()

    return jax.vmap(one)(sub, op, a, b)


@pytree
class _Counts:
    """Two concepts next to every concept x: locations of each, and of each two."""

    a: Float64[Array, ""]
    b: Float64[Array, ""]
    x: Float64[Array, " concepts"]
    ab: Float64[Array, ""]
    ax: Float64[Array, " concepts"]
    bx: Float64[Array, " concepts"]

    @classmethod
    def of(
        cls,
        gram: Int64[Array, "subs n n"],
        sub: Int32[Array, ""],
        a: Int32[Array, ""],
        b: Int32[Array, ""],
    ) -> "_Counts":
        own = diagonals(gram)[sub]
        parts = own[a], own[b], own, gram[sub, a, b], gram[sub, a], gram[sub, b]
        return cls(*(part.astype(jnp.float64) for part in parts))

    def common_to_three(self) -> tuple[Float64[Array, " concepts"], Float64[Array, " concepts"]]:
        """Limits of |a ∩ b ∩ x|, from the pairs (Proposition 4)."""
        return common_to_three(self.a, self.b, self.x, self.ab, self.ax, self.bx, jnp)


@pytree
class _Pair:
    """The same inside the neuron and outside of it."""

    i: _Counts
    e: _Counts
    v: Float64[Array, ""]

    @classmethod
    def of(
        cls, inputs: BoundInputs, sub: Int32[Array, ""], a: Int32[Array, ""], b: Int32[Array, ""]
    ) -> "_Pair":
        inside = _Counts.of(inputs.gram.inside, sub, a, b)
        return cls(inside, _Counts.of(inputs.gram.outside, sub, a, b), inputs.v[sub])

    @property
    def both(self) -> Float64[Array, ""]:
        """W(a AND b), to be added."""
        return weight(self.i.ab, self.v * self.e.ab)

    @property
    def shared(self) -> Float64[Array, ""]:
        """W(a AND b), to be taken away."""
        return self.i.ab - self.v * self.e.ab

    @property
    def x(self) -> Float64[Array, " concepts"]:
        """W(x)."""
        return weight(self.i.x, self.v * self.e.x)

    @property
    def a(self) -> Float64[Array, ""]:
        """W(a)."""
        return weight(self.i.a, self.v * self.e.a)

    @property
    def union(self) -> Float64[Array, ""]:
        """W(a OR b)."""
        return self.a + weight(self.i.b, self.v * self.e.b) - self.shared


def _union_and_more(w: _Pair, ops: OperatorSet) -> Float64[Array, " concepts"]:
    """W of `(a OR b)∘x` for every x, the highest over the operators."""
    ia, ib, ea, eb = w.i.ax, w.i.bx, w.e.ax, w.e.bx
    union = w.union
    best = jnp.full_like(ia, NEVER)
    if ops.difference:
        removed = union + w.v * (ea + eb) - jnp.maximum(ia, ib)
        # W(a \ x) + W(b \ x) − W((a AND b) \ x)
        kept_i = jnp.maximum(w.i.ab - jnp.minimum(ia, ib), 0.0)
        kept_e = jnp.minimum(jnp.minimum(w.e.a - ea, w.e.b - eb), w.e.ab)
        parts = union + w.both - (ia - w.v * ea) - (ib - w.v * eb) - kept_i + w.v * kept_e
        best = jnp.maximum(best, jnp.minimum(removed, parts))
    if ops.union:
        covered = jnp.minimum(ea + eb, w.e.x)
        best = jnp.maximum(best, union + w.x + w.v * covered - jnp.maximum(ia, ib))
    if ops.intersection:
        inside = jnp.minimum(ia + ib, w.i.x)
        outside = jnp.maximum(jnp.maximum(ea, eb), ea + eb - w.e.ab)
        best = jnp.maximum(best, weight(inside, w.v * outside))
    return best


def _intersection_and_more(w: _Pair, ops: OperatorSet) -> Float64[Array, " concepts"]:
    """W of `(a AND b)∘x` for every x, the highest over the operators."""
    i_low, i_high = w.i.common_to_three()
    e_low, e_high = w.e.common_to_three()
    pair = w.both
    best = jnp.full_like(i_low, NEVER)
    if ops.difference:
        best = jnp.maximum(best, pair + w.v * e_high - i_low)
    if ops.union:
        best = jnp.maximum(best, pair + w.x + w.v * e_high - i_low)
    if ops.intersection:
        best = jnp.maximum(best, weight(i_high, w.v * e_low))
    return best


def _difference_and_more(w: _Pair, ops: OperatorSet) -> Float64[Array, " concepts"]:
    """W of `(a AND NOT b)∘x` for every x; AND is left to `(a AND x) AND NOT b`."""
    i_low, i_high = w.i.common_to_three()
    e_low, _ = w.e.common_to_three()
    pair = w.a - w.shared
    # The part of a that x shares, less what b has of it.
    shared_i = jnp.maximum(w.i.ax - i_high, 0.0)
    shared_e = w.e.ax - e_low
    best = jnp.full_like(i_low, NEVER)
    if ops.difference:
        best = jnp.maximum(best, pair + w.v * shared_e - shared_i)
    if ops.union:
        best = jnp.maximum(best, pair + w.x + w.v * shared_e - shared_i)
    return best
