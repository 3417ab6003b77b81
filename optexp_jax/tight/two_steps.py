"""Bounds on pairs with two more steps, the last of which is OR or AND NOT.

With P = a∘b, `Q = P∩z` for some other concept z, and W as in `region`:

    (P AND NOT x) AND NOT y   W(P) − W(P∩(x∪y))
    (P OR x) AND NOT y        W(P \\ y) + W(x \\ P \\ y)  =  W(x \\ y) + W(P \\ x \\ y)
    (P OR x) OR y             W(P OR x) + W(y \\ P \\ x)  =  W(x OR y) + W(P \\ x \\ y)
    (P AND NOT x) OR y        W(P AND NOT x) + W(y \\ (P \\ x))
    (P AND x) OR y            W(P AND x) + W(y \\ (P ∩ x))

Formulas that end in AND are searched from the outside (`outer`), and so are those that end in an OR
of a *heavy* concept, one of the few with the highest W: without these the y that end in OR add so
little that next to nothing is left. All other concepts are *light*. As
`(a AND NOT b) AND x` is `(a AND x) AND NOT b`, no AND follows an AND NOT.

Wherever a formula is split in two, what is known of shorter formulas limits one part (`Limits`).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.tight.region import NEVER, Block, Region, least
from optexp_jax.tight.rows import Rows
from optexp_jax.tight.short_formulas import Limits
from optexp_jax.tracing import note_trace


@pytree
class StepRows:
    """Maxima over the other concepts z, for every concept a, that `Rows` does not have."""

    light_added: Float64[Array, " concepts"]
    """W(z) + v·E(a ∩ z) of a light z."""
    light_fresh: Float64[Array, " concepts"]
    """The same, with removed(z): z next to a and a further concept."""
    removed_twice: Float64[Array, " concepts"]
    """v·E(a ∩ z) + removed(z)."""
    gained_twice: Float64[Array, " concepts"]
    """v·E(a ∩ z) − I(a ∩ z) + removed(z)."""
    kept: Float64[Array, " concepts"]
    """The highest W(z AND NOT y), and v·E(a ∩ z)."""


@jax.jit
def step_rows(region: Region, rows: Rows) -> StepRows:
    """The further maxima of a region."""
    note_trace("step_rows")
    own, removed = region.own[None, :], rows.removed[None, :]
    filtered = rows.filtered(region)[None, :]
    every, light = region.all_rows(), region.light[None, :]
    return StepRows(
        *every.most_of_each(
            jnp.where(light, own + every.ve, NEVER),
            jnp.where(light, own + every.ve + removed, NEVER),
            every.ve + removed,
            every.ve - every.i + removed,
            filtered + every.ve,
        )
    )


@partial(jax.jit, static_argnames=("forms",))
def two_step_bounds(
    region: Region,
    rows: Rows,
    more: StepRows,
    limits: Limits,
    a: Int32[Array, " rows"],
    *,
    forms: Forms,
) -> Float64[Array, "rows forms concepts"]:
    """An upper bound on W of the pairs of some concepts with every other, and two more steps."""
    note_trace("two_step_bounds")
    return _bounds(region.rows(a), rows, more, limits, forms)


def _bounds(
    block: Block, rows: Rows, more: StepRows, limits: Limits, forms: Forms
) -> Float64[Array, "rows forms concepts"]:
    """Of three filters of one concept b is the one that leaves most."""
    region, a = block.region, block.a
    i, both, ve, own, without = block.i, block.both, block.ve, block.own, block.without
    own_i = region.own_i

    def at(row: Float64[Array, " n"]) -> Float64[Array, "rows one"]:
        return row[a][:, None]

    def by_form(union: Array, intersection: Array, difference: Array) -> Array:
        wide = jnp.broadcast_to(difference, i.shape)
        return jnp.stack([union, intersection, wide], axis=1)

    def narrow(row: Float64[Array, " n"], union: Array) -> Array:
        """A maximum over z: of a∘b ⊂ a what a has; of a∩b what both have."""
        return by_form(union, least(row, block), at(row))

    def either(row: Float64[Array, " n"]) -> Array:
        """A row of a, to which b adds its largest overlap."""
        return narrow(row, least(row, block, rows.removed))

    pair = by_form(block.union, both, without)
    inside = by_form(at(own_i) + own_i[None, :] - i, i, at(own_i) - i)
    overlaps = narrow(rows.removed, at(rows.removed) + rows.removed[None, :])  # v·E(P ∩ z)
    two = narrow(rows.two_removed, at(rows.two_removed) + rows.two_removed[None, :])
    net = jnp.minimum(inside, pair + two)  # W(P \\ x \\ y)
    filtered = jnp.minimum(inside, pair + overlaps)  # W(P AND NOT x)
    filtered = by_form(
        jnp.minimum(filtered[:, UNION], block.union + least(rows.gain, block, rows.removed)),
        filtered[:, INTERSECTION],
        jnp.minimum(filtered[:, DIFFERENCE], own + at(rows.gain) + ve),
    )
    bounds = [jnp.full_like(pair, NEVER)]
    if forms.difference:
        both_filters = jnp.minimum(jnp.minimum(filtered, limits.three) + overlaps, pair + two)
        # Of the three filters b leaves most: the others, and then b, remove no more than this.
        three_filters = without + ve + at(rows.removed)
        bounds.append(both_filters.at[:, DIFFERENCE].min(three_filters))
    joined = pair + narrow(rows.added, least(rows.fresh, block))  # W(P OR x)
    joined = jnp.minimum(joined, limits.three)
    if forms.union:
        unions = jnp.minimum(joined + either(more.light_fresh), limits.light_union + net)
        both_light = region.light[a][:, None] & region.light[None, :]
        bounds.append(unions.at[:, UNION].set(jnp.where(both_light, unions[:, UNION], NEVER)))
    if forms.union and forms.difference:
        last = narrow(more.removed_twice, least(more.gained_twice, block, rows.removed))
        kept = either(more.kept)  # W(x \\ P \\ y)
        bounds.append(jnp.minimum(jnp.minimum(joined + last, filtered + kept), limits.two + net))
    if forms.union and (forms.difference or forms.intersection):
        last = either(more.light_added)  # W(y outside of a part of P)
        if forms.difference:
            bounds.append(
                jnp.minimum(jnp.minimum(filtered, limits.three) + last, limits.light + net)
            )
        if forms.intersection:
            never = jnp.full_like(i, NEVER)
            halves = at(rows.half) + rows.half[None, :]
            within = by_form(halves, least(rows.common, block), never)
            within = jnp.minimum(jnp.minimum(within, inside), limits.three)  # W(P AND x)
            bounds.append(jnp.minimum(within + last, limits.light + inside))
    usable = block.usable(forms) & block.proper()
    return jnp.where(usable, jnp.stack(bounds).max(0), NEVER)


@partial(jax.jit, static_argnames=("forms",))
def refined_two_steps(
    region: Region,
    rows: Rows,
    limits: Limits,
    form: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    *,
    forms: Forms,
) -> Float64[Array, " pairs"]:
    """The same of given pairs, with what both of their concepts share with each further one."""
    note_trace("refined_two_steps")
    gram, light, v = region.gram, region.light, region.v
    filtered_rows = rows.filtered(region)
    every = jnp.arange(region.n_concepts, dtype=a.dtype)[None, :]
    usable = region.allowed[None, :] & (every != a[:, None]) & (every != b[:, None])
    light_z = usable & light[None, :]
    # A source that can be most of the formula: with it, x and y are looked at together.
    main = jnp.argmax(jnp.where(region.allowed, filtered_rows, NEVER)).astype(a.dtype)
    overlap, best_filtered, own = (
        row[None, :] for row in (rows.removed, filtered_rows, region.own)
    )

    def most(
        values: Float64[Array, "pairs n"], among: Bool[Array, "pairs n"] = usable
    ) -> Float64[Array, " pairs"]:
        return jnp.where(among, values, NEVER).max(1)

    def by_form(union: Array, intersection: Array, difference: Array) -> Array:
        kind = form.reshape(-1, *[1] * (union.ndim - 1))
        rest = jnp.where(kind == INTERSECTION, intersection, difference)
        return jnp.where(kind == UNION, union, rest)

    i_ab = gram.inside[a, b].astype(jnp.float64)
    both_ab = i_ab - v * gram.outside[a, b].astype(jnp.float64)
    w_a, w_b, i_a, i_b = region.own[a], region.own[b], region.own_i[a], region.own_i[b]
    pair = by_form(w_a + w_b - both_ab, both_ab, w_a - both_ab)
    inside = by_form(i_a + i_b - i_ab, i_ab, i_a - i_ab)
    least_i, most_i = _shared_by_pairs(gram.inside, a, b, by_form)
    least_e, most_e = _shared_by_pairs(gram.outside, a, b, by_form)
    paid = v * most_e
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
    if forms.difference:
        # What y removes of x's share is not counted twice: at most I(P ∩ x) is.
        other_filter = jnp.minimum(
            jnp.where(is_first, second[:, None], first[:, None]), best_gain[:, None] + most_i
        )
        bounds.append(jnp.minimum(pair + most(gain + other_filter), filtered + first))
    if forms.union:
        # W(x \\ P) + W(y \\ P), and half of what x and y share for each.
        share = most(outside + overlap / 2, light_z)
        unions = jnp.minimum(
            jnp.minimum(pair + 2 * share, joined + most(outside + overlap, light_z)),
            limits.light_union + net,
        )
        heavy_union = (form == UNION) & ~(light[a] & light[b])
        bounds.append(jnp.where(heavy_union, NEVER, unions))
    if forms.union and forms.difference:
        apart = jnp.minimum(best_filtered + paid, outside + overlap)  # W(x \\ P \\ y)
        limited = jnp.minimum(limits.two + net, pair + best_gain + most(apart))
        not_main = usable & (every != main)
        generic = pair + most(best_filtered + gain, not_main) + first
        bounds.append(jnp.minimum(jnp.minimum(generic, limited), joined + most(gain + overlap)))
        both_filters = jnp.minimum(gain[:, main, None] + paid, paid[:, main, None] + gain)
        main_without = region.rows(main[None]).without  # W(main AND NOT z)
        with_main = most(main_without + both_filters, not_main) + pair
        bounds.append(jnp.where(usable[:, main], jnp.minimum(with_main, limited), NEVER))
        added = jnp.minimum(last[:, None], most(outside, light_z)[:, None] + most_i)
        bounds.append(
            jnp.minimum(jnp.minimum(filtered + last, pair + most(gain + added)), limits.light + net)
        )
    if forms.union and forms.intersection:
        within = most(most_i - v * least_e)  # W(P AND x)
        part = jnp.minimum(within, limits.three) + last
        part = jnp.minimum(part, limits.light + jnp.minimum(most(most_i), inside))
        bounds.append(jnp.where(form == DIFFERENCE, NEVER, part))
    return jnp.stack(bounds).max(0)


def _shared_by_pairs(
    counts: Int64[Array, "n n"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    by_form: Callable[[Array, Array, Array], Array],
) -> tuple[Float64[Array, "pairs n"], Float64[Array, "pairs n"]]:
    """Limits of how many locations of P each concept z has, from the pairs."""
    own, az, bz, ab = (
        part.astype(jnp.float64)
        for part in (jnp.diagonal(counts), counts[a], counts[b], counts[a, b][:, None])
    )
    three_most = jnp.minimum(jnp.minimum(az, bz), ab)
    three_least = jnp.maximum(ab + az - own[a][:, None], ab + bz - own[b][:, None])
    three_least = jnp.maximum(jnp.maximum(three_least, az + bz - own[None, :]), 0.0)
    most = by_form(jnp.minimum(az + bz - three_least, own[None, :]), three_most, az - three_least)
    least = by_form(az + bz - three_most, three_least, az - three_most)
    return jnp.maximum(least, 0.0), most
