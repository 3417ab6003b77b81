"""Bounds on pairs with two more steps, the last of which is OR or AND NOT.

Proposition 13, with P = a∘b.

Formulas that end in AND are searched from the outside (`outer_step`), and so are those that end in
an OR of a *heavy* concept, one of the few with the highest W: without these the y that end in OR
add so little that next to nothing is left. All other concepts are *light*. As
`(a AND NOT b) AND x` is `(a AND x) AND NOT b`, no AND follows an AND NOT.

Wherever a formula is split in two, what is known of shorter formulas limits one part
(`ShortFormulaBounds`).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.operator_set import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    OperatorSet,
    common_to_three,
)
from optexp_jax.bounds.tight.rounding import outward, weight
from optexp_jax.bounds.tight.theory.bound_inputs import (
    NEVER,
    BoundInputs,
    GramRows,
    diagonals,
    least,
)
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima, TwoStepMaxima
from optexp_jax.bounds.tight.theory.short import ShortFormulaBounds
from optexp_jax.internal.tracing import note_trace


@partial(jax.jit, static_argnames=("ops",))
def two_step_bounds(
    inputs: BoundInputs,
    maxima: RowMaxima,
    more: TwoStepMaxima,
    limits: ShortFormulaBounds,
    sub: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    *,
    ops: OperatorSet,
) -> Float64[Array, "rows ops concepts"]:
    """Proposition 13 from row maxima: pairs of some concepts with every other, two more steps."""
    note_trace("two_step_bounds")
    return _bounds(inputs.rows(sub, a), maxima, more, limits, ops)


def _bounds(
    block: GramRows,
    maxima: RowMaxima,
    more: TwoStepMaxima,
    limits: ShortFormulaBounds,
    ops: OperatorSet,
) -> Float64[Array, "*rows ops concepts"]:
    """Of three filters of one concept b is the one that leaves most."""
    inputs, at = block.inputs, block.mine
    i, both, ve, own, without = block.i, block.both, block.ve, block.own, block.without
    own_i, light = inputs.own_i, inputs.light
    light_union, one, two_most, three = (
        block.of_sub(part)[..., None]
        for part in (limits.light_union, limits.light, limits.two, limits.three)
    )

    def by_op(union: Array, intersection: Array, difference: Array) -> Array:
        wide = jnp.broadcast_to(difference, i.shape)
        return jnp.stack([union, intersection, wide], axis=-2)

    def narrow(row: Float64[Array, "subs n"], union: Array) -> Array:
        """A maximum over z: of a∘b ⊂ a what a has; of a∩b what both have."""
        return by_op(union, least(row, block), at(row))

    def either(row: Float64[Array, "subs n"]) -> Array:
        """A row of a, to which b adds its largest overlap."""
        return narrow(row, least(row, block, maxima.removed))

    def both_of(row: Float64[Array, "subs n"]) -> Array:
        return at(row) + block.theirs(row)

    pair = by_op(block.union, both, without)
    inside = by_op(both_of(own_i) - i, i, at(own_i) - i)
    overlaps = narrow(maxima.removed, both_of(maxima.removed))  # v·E(P ∩ z)
    two = narrow(maxima.two_removed, both_of(maxima.two_removed))
    net = jnp.minimum(inside, pair + two)  # W(P \\ x \\ y)
    filtered = jnp.minimum(inside, pair + overlaps)  # W(P AND NOT x)
    filtered = by_op(
        jnp.minimum(
            filtered[..., UNION, :], block.union + least(maxima.gain, block, maxima.removed)
        ),
        filtered[..., INTERSECTION, :],
        jnp.minimum(filtered[..., DIFFERENCE, :], own + at(maxima.gain) + ve),
    )
    bounds = [jnp.full_like(pair, NEVER)]
    if ops.difference:
        both_filters = jnp.minimum(jnp.minimum(filtered, three) + overlaps, pair + two)
        # Of the three filters b leaves most: the others, and then b, remove no more than this.
        three_filters = without + ve + at(maxima.removed)
        bounds.append(both_filters.at[..., DIFFERENCE, :].min(three_filters))
    joined = pair + narrow(maxima.added, least(maxima.fresh, block))  # W(P OR x)
    joined = jnp.minimum(joined, three)
    if ops.union:
        unions = jnp.minimum(joined + either(more.light_fresh), light_union + net)
        kept = jnp.where(at(light) & block.theirs(light), unions[..., UNION, :], NEVER)
        bounds.append(unions.at[..., UNION, :].set(kept))
    if ops.union and ops.difference:
        last = narrow(more.removed_twice, least(more.gained_twice, block, maxima.removed))
        kept = either(more.kept)  # W(x \\ P \\ y)
        bounds.append(jnp.minimum(jnp.minimum(joined + last, filtered + kept), two_most + net))
    if ops.union and (ops.difference or ops.intersection):
        last = either(more.light_added)  # W(y outside of a part of P)
        if ops.difference:
            bounds.append(jnp.minimum(jnp.minimum(filtered, three) + last, one + net))
        if ops.intersection:
            never = jnp.full_like(i, NEVER)
            halves = both_of(maxima.half)
            within = by_op(halves, least(maxima.common, block), never)
            within = jnp.minimum(jnp.minimum(within, inside), three)  # W(P AND x)
            bounds.append(jnp.minimum(within + last, one + inside))
    usable = block.usable(ops) & block.proper()
    return jnp.where(usable, outward(jnp.stack(bounds).max(0)), NEVER)


@partial(jax.jit, static_argnames=("ops",))
def refined_two_steps(
    inputs: BoundInputs,
    maxima: RowMaxima,
    limits: ShortFormulaBounds,
    sub: Int32[Array, " pairs"],
    op: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    *,
    ops: OperatorSet,
) -> Float64[Array, " pairs"]:
    """Propositions 13 and 14 of given pairs, with what both concepts share with each other one."""
    note_trace("refined_two_steps")
    gram, light, v = inputs.gram, inputs.light, inputs.v[sub]
    filtered_rows = maxima.filtered(inputs)
    every = jnp.arange(inputs.n_concepts, dtype=a.dtype)[None, :]
    usable = inputs.allowed[sub] & (every != a[:, None]) & (every != b[:, None])
    light_z = usable & light[sub]
    # A source that can be most of the formula: with it, x and y are looked at together
    # (Proposition 14).
    main = jnp.argmax(jnp.where(inputs.allowed, filtered_rows, NEVER), axis=1).astype(a.dtype)
    main = main[sub]
    overlap, best_filtered, own = (row[sub] for row in (maxima.removed, filtered_rows, inputs.own))
    limits = jax.tree.map(lambda limit: limit[sub], limits)

    def most(
        values: Float64[Array, "pairs n"], among: Bool[Array, "pairs n"] = usable
    ) -> Float64[Array, " pairs"]:
        return jnp.where(among, values, NEVER).max(1)

    def by_op(union: Array, intersection: Array, difference: Array) -> Array:
        kind = op.reshape(-1, *[1] * (union.ndim - 1))
        rest = jnp.where(kind == INTERSECTION, intersection, difference)
        return jnp.where(kind == UNION, union, rest)

    i_ab, e_ab = (part[sub, a, b].astype(jnp.float64) for part in (gram.inside, gram.outside))
    shared = i_ab - v * e_ab
    w_a, w_b, i_a, i_b = (part[sub, side] for part in (inputs.own, inputs.own_i) for side in (a, b))
    pair = by_op(w_a + w_b - shared, weight(i_ab, v * e_ab), w_a - shared)
    inside = by_op(i_a + i_b - i_ab, i_ab, i_a - i_ab)
    least_i, most_i = _shared_by_pairs(gram.inside, sub, a, b, by_op)
    least_e, most_e = _shared_by_pairs(gram.outside, sub, a, b, by_op)
    paid = v[:, None] * most_e
    gain = paid - least_i  # at least −W(P ∩ z)
    # Written out once: else each of the maxima below would compute them again.
    paid, gain, most_i, least_e = jax.lax.optimization_barrier((paid, gain, most_i, least_e))
    outside = own + gain  # at least W(z \\ P)

    first = most(paid)
    is_first = paid == first[:, None]
    ties = (is_first & usable).sum(1) > 1
    second = jnp.where(ties, first, most(jnp.where(is_first, NEVER, paid)))
    net = jnp.minimum(inside, pair + first + jnp.maximum(second, 0.0))
    best_gain = most(gain)
    filtered = jnp.minimum(pair + best_gain, limits.three)
    joined = jnp.minimum(pair + most(outside), limits.three)
    last = most(own + paid, light_z)  # W(y outside of a part of P)
    bounds = [jnp.full_like(pair, NEVER)]
    if ops.difference:
        # What y removes of x's share is not counted twice: at most I(P ∩ x) is.
        other_filter = jnp.minimum(
            jnp.where(is_first, second[:, None], first[:, None]), best_gain[:, None] + most_i
        )
        bounds.append(jnp.minimum(pair + most(gain + other_filter), filtered + first))
    if ops.union:
        # W(x \\ P) + W(y \\ P), and half of what x and y share for each.
        share = most(outside + overlap / 2, light_z)
        unions = jnp.minimum(
            jnp.minimum(pair + 2 * share, joined + most(outside + overlap, light_z)),
            limits.light_union + net,
        )
        heavy_union = (op == UNION) & ~(light[sub, a] & light[sub, b])
        bounds.append(jnp.where(heavy_union, NEVER, unions))
    if ops.union and ops.difference:
        apart = jnp.minimum(best_filtered + paid, outside + overlap)  # W(x \\ P \\ y)
        limited = jnp.minimum(limits.two + net, pair + best_gain + most(apart))
        not_main = usable & (every != main[:, None])
        generic = pair + most(best_filtered + gain, not_main) + first
        bounds.append(jnp.minimum(jnp.minimum(generic, limited), joined + most(gain + overlap)))

        def at_main(values: Array) -> Array:
            return jnp.take_along_axis(values, main[:, None], axis=1)

        both_filters = jnp.minimum(at_main(gain) + paid, at_main(paid) + gain)
        main_without = inputs.rows(sub, main).without  # W(main AND NOT z)
        with_main = most(main_without + both_filters, not_main) + pair
        bounds.append(jnp.where(at_main(usable)[:, 0], jnp.minimum(with_main, limited), NEVER))
        added = jnp.minimum(last[:, None], most(outside, light_z)[:, None] + most_i)
        bounds.append(
            jnp.minimum(jnp.minimum(filtered + last, pair + most(gain + added)), limits.light + net)
        )
    if ops.union and ops.intersection:
        within = most(weight(most_i, v[:, None] * least_e))  # W(P AND x)
        part = jnp.minimum(within, limits.three) + last
        part = jnp.minimum(part, limits.light + jnp.minimum(most(most_i), inside))
        bounds.append(jnp.where(op == DIFFERENCE, NEVER, part))
    return outward(jnp.stack(bounds).max(0))


def _shared_by_pairs(
    counts: Int64[Array, "subs n n"],
    sub: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    by_op: Callable[[Array, Array, Array], Array],
) -> tuple[Float64[Array, "pairs n"], Float64[Array, "pairs n"]]:
    """Limits of how many locations of P each concept z has, from the pairs."""
    own = diagonals(counts)
    parts = own[sub, a], own[sub, b], counts[sub, a, b]
    in_a, in_b, ab = (part.astype(jnp.float64)[:, None] for part in parts)
    in_z, az, bz = (part.astype(jnp.float64) for part in (own[sub], counts[sub, a], counts[sub, b]))
    three_least, three_most = common_to_three(in_a, in_b, in_z, ab, az, bz, jnp)
    most = by_op(jnp.minimum(az + bz - three_least, in_z), three_most, az - three_least)
    least = by_op(az + bz - three_most, three_least, az - three_most)
    return jnp.maximum(least, 0.0), most
