"""Bounds on pairs with two more steps, the last of which is OR or AND NOT.

With P = a∘b, `Q = P∩z` for some other concept z, and W as in `pairs`:

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

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.tight.grams import Gram
from optexp_jax.tight.largest import largest
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


class Limits(eqx.Module):
    """The highest W of short formulas in a region."""

    light: Float64[Array, ""]
    """Of a light concept."""
    light_union: Float64[Array, ""]
    """Of light concepts x OR y."""
    two: Float64[Array, ""]
    """Of at most two concepts, or none at all."""
    three: Float64[Array, ""]
    """Of at most three."""


class Rows(eqx.Module):
    """What is known of each concept next to any other one."""

    overlap: Float64[Array, " concepts"]
    """The largest v·E(a ∩ z)."""
    two_overlaps: Float64[Array, " concepts"]
    """The sum of the two largest."""
    filtered: Float64[Array, " concepts"]
    """The highest W(a AND NOT z)."""


@partial(jax.jit, static_argnames=("forms",))
def short_formulas(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    light: Bool[Array, " concepts"],
    v: Float64[Array, ""],
    *,
    forms: Forms,
) -> tuple[Rows, Limits]:
    """Rows, and limits of all but three concepts, which are left infinite."""
    note_trace("short_formulas")
    w = Weights.of(gram, v)
    other = others(allowed)
    top = largest(jnp.where(other, v * w.e, 0.0), min(2, len(allowed)))
    without = w.own[:, None] - w.both
    filtered = jnp.where(other, without, NEVER).max(1)
    rows = Rows(top[:, 0], top.sum(1), filtered)
    union = w.own[:, None] + w.own[None, :] - w.both
    usable = usable_pairs(allowed, forms)
    pairs = jnp.where(usable, jnp.stack([union, w.both, without]), NEVER)
    light_pairs = (allowed & light)[:, None] & (allowed & light)[None, :] & other
    return rows, Limits(
        light=jnp.where(allowed & light, w.own, NEVER).max(),
        light_union=jnp.where(light_pairs, union, NEVER).max(),
        two=jnp.maximum(jnp.maximum(jnp.where(allowed, w.own, NEVER).max(), pairs.max()), 0.0),
        three=jnp.full((), jnp.inf),
    )


@partial(jax.jit, static_argnames=("forms",))
def two_step_bounds(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    light: Bool[Array, " concepts"],
    v: Float64[Array, ""],
    rows: Rows,
    limits: Limits,
    *,
    forms: Forms,
) -> Float64[Array, "forms concepts concepts"]:
    """An upper bound on W of every pair with two more steps, from maxima over each concept's row.

    Of three filters of one concept b is the one that leaves most.
    """
    note_trace("two_step_bounds")
    w = Weights.of(gram, v)
    i, own, both, ve = w.i, w.own, w.both, v * w.e
    overlap, two_overlaps = rows.overlap, rows.two_overlaps
    other = others(allowed)

    def over_z(values: Float64[Array, "n n"]) -> Float64[Array, " n"]:
        return jnp.where(other, values, NEVER).max(1)

    def over_light(values: Float64[Array, "n n"]) -> Float64[Array, " n"]:
        return jnp.where(other & light[None, :], values, NEVER).max(1)

    def by_form(
        row: Float64[Array, " n"], union: Float64[Array, "n n"]
    ) -> Float64[Array, "forms n n"]:
        """A maximum over z: of a∘b ⊂ a what a has; of a∩b what both have."""
        wide = jnp.broadcast_to(row[:, None], i.shape)
        return jnp.stack([union, least(row[:, None]), wide])

    def either(row: Float64[Array, " n"]) -> Float64[Array, "forms n n"]:
        """A row of a, to which b adds its largest overlap."""
        return by_form(row, least(row[:, None] + overlap[None, :]))

    without = own[:, None] - both
    pair = jnp.stack([own[:, None] + own[None, :] - both, both, without])
    inside = jnp.stack([w.own_i[:, None] + w.own_i[None, :] - i, i, w.own_i[:, None] - i])
    overlaps = by_form(overlap, overlap[:, None] + overlap[None, :])  # v·E(P ∩ z)
    two = by_form(two_overlaps, two_overlaps[:, None] + two_overlaps[None, :])
    net = jnp.minimum(inside, pair + two)  # W(P \ x \ y)
    gain = over_z(ve - i)
    filtered = jnp.minimum(inside, pair + overlaps)  # W(P AND NOT x)
    filtered = jnp.stack(
        [
            jnp.minimum(filtered[UNION], pair[UNION] + least(gain[:, None] + overlap[None, :])),
            filtered[INTERSECTION],
            jnp.minimum(filtered[DIFFERENCE], (own + gain)[:, None] + ve),
        ]
    )
    bounds = [jnp.full_like(pair, NEVER)]
    if forms.difference:
        both_filters = jnp.minimum(jnp.minimum(filtered, limits.three) + overlaps, pair + two)
        # Of the three filters b leaves most: the others, and then b, remove no more than this.
        three_filters = without + ve + overlap[:, None]
        bounds.append(both_filters.at[DIFFERENCE].min(three_filters))
    fresh = over_z(without.T + overlap[None, :])
    added = over_z(own[None, :] + ve)
    joined = pair + by_form(added, least(fresh[:, None]))  # W(P OR x)
    joined = jnp.minimum(joined, limits.three)
    if forms.union:
        last = either(over_light(own[None, :] + ve + overlap[None, :]))
        unions = jnp.minimum(joined + last, limits.light_union + net)
        both_light = light[:, None] & light[None, :]
        bounds.append(unions.at[UNION].set(jnp.where(both_light, unions[UNION], NEVER)))
    if forms.union and forms.difference:
        last = by_form(
            over_z(ve + overlap[None, :]),
            least(over_z(ve - i + overlap[None, :])[:, None] + overlap[None, :]),
        )
        kept = either(over_z(rows.filtered[None, :] + ve))  # W(x \ P \ y)
        bounds.append(jnp.minimum(jnp.minimum(joined + last, filtered + kept), limits.two + net))
    if forms.union and (forms.difference or forms.intersection):
        last = either(over_light(own[None, :] + ve))  # W(y outside of a part of P)
        if forms.difference:
            bounds.append(
                jnp.minimum(jnp.minimum(filtered, limits.three) + last, limits.light + net)
            )
        if forms.intersection:
            half = over_z(i - ve / 2)
            common = over_z(i)
            never = jnp.full_like(i, NEVER)
            within = jnp.stack([half[:, None] + half[None, :], least(common[:, None]), never])
            within = jnp.minimum(jnp.minimum(within, inside), limits.three)  # W(P AND x)
            bounds.append(jnp.minimum(within + last, limits.light + inside))
    usable = usable_pairs(allowed, forms) & proper(gram)
    return jnp.where(usable, jnp.stack(bounds).max(0), NEVER)


@partial(jax.jit, static_argnames=("forms",))
def refined_two_steps(
    gram: Gram,
    allowed: Bool[Array, " concepts"],
    light: Bool[Array, " concepts"],
    v: Float64[Array, ""],
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
    w = Weights.of(gram, v)
    every = jnp.arange(len(allowed), dtype=a.dtype)[None, :]
    usable = allowed[None, :] & (every != a[:, None]) & (every != b[:, None])
    light_z = usable & light[None, :]
    # A source that can be most of the formula: with it, x and y are looked at together.
    main = jnp.argmax(jnp.where(allowed, rows.filtered, NEVER)).astype(a.dtype)
    overlap, best_filtered, own = (row[None, :] for row in (rows.overlap, rows.filtered, w.own))

    def most(
        values: Float64[Array, "pairs n"], among: Bool[Array, "pairs n"] = usable
    ) -> Float64[Array, " pairs"]:
        return jnp.where(among, values, NEVER).max(1)

    def by_form(union: Array, intersection: Array, difference: Array) -> Array:
        kind = form.reshape(-1, *[1] * (union.ndim - 1))
        rest = jnp.where(kind == INTERSECTION, intersection, difference)
        return jnp.where(kind == UNION, union, rest)

    i_ab, both_ab = w.i[a, b], w.both[a, b]
    pair = by_form(w.own[a] + w.own[b] - both_ab, both_ab, w.own[a] - both_ab)
    inside = by_form(w.own_i[a] + w.own_i[b] - i_ab, i_ab, w.own_i[a] - i_ab)
    least_i, most_i = _shared_by_pairs(w.i, a, b, by_form)
    least_e, most_e = _shared_by_pairs(w.e, a, b, by_form)
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
        with_main = most((w.own[main] - w.both[main])[None, :] + both_filters, not_main) + pair
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
    counts: Float64[Array, "n n"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    by_form: Callable[[Array, Array, Array], Array],
) -> tuple[Float64[Array, "pairs n"], Float64[Array, "pairs n"]]:
    """Limits of how many locations of P each concept z has, from the pairs."""
    own = jnp.diagonal(counts)
    az, bz, ab = counts[a], counts[b], counts[a, b][:, None]
    three_most = jnp.minimum(jnp.minimum(az, bz), ab)
    three_least = jnp.maximum(ab + az - own[a][:, None], ab + bz - own[b][:, None])
    three_least = jnp.maximum(jnp.maximum(three_least, az + bz - own[None, :]), 0.0)
    most = by_form(jnp.minimum(az + bz - three_least, own[None, :]), three_most, az - three_least)
    least = by_form(az + bz - three_most, three_least, az - three_most)
    return jnp.maximum(least, 0.0), most
