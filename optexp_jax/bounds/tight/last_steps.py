"""The same formulas as in `two_steps`, once the pair's overlaps with every concept are exact.

For a label P with `I(P ∩ z)` and `E(P ∩ z)` known, what is left unknown of `(P∘x)∘y` is how x and y
overlap within P or outside of it. First every x is bounded with the best y of all
(`any_last_step`), then the few x that survive with each y (`last_steps_after`).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Shaped

from optexp_jax.bounds.tight.expanded import Expanded
from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.bounds.tight.label_children import LabelsThere, not_in
from optexp_jax.bounds.tight.labels import Labels
from optexp_jax.bounds.tight.region import NEVER, Block, BoundInputs
from optexp_jax.bounds.tight.rounding import outward, slack, weight
from optexp_jax.bounds.tight.rows import Rows
from optexp_jax.bounds.tight.survivors import survivors
from optexp_jax.bounds.tight.tuning import LABELS_AT_ONCE
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, run


@dataclass(frozen=True, eq=False)
class Longer:
    """Labels one concept longer, with bounds on W of all that one more step makes of them."""

    place: Int32[np.ndarray, " labels"]
    labels: Labels
    upper: Float64[np.ndarray, " labels"]


def longer_labels(
    regions: BoundInputs,
    rows: Rows,
    expanded: Expanded,
    need: Float64[np.ndarray, " places"],
    forms: Forms,
) -> Longer:
    """Labels `P∘x` that one more OR or AND NOT may take to what their place needs."""
    labels, there = expanded.labels, expanded.there
    form = fill_up(labels.forms[:, 0], len(there.inner))
    of_place, on_host = expanded.of_place, expanded.places[0].overlaps.on_host
    needed = np.full(len(there.inner), np.inf)
    needed[: len(labels)] = need[of_place]
    with jax.enable_x64(True):
        best = run(any_last_step, regions, rows, there, form, forms=forms)
        reached = survivors(best, needed, on_host)
    labels_at, steps, numbers = reached.at
    there, form = _filled_up(there, on_host), fill_up(labels.forms[:, 0], LABELS_AT_ONCE)
    found: list[Longer] = []
    for step in (UNION, INTERSECTION, DIFFERENCE):
        row, x = labels_at[steps == step], numbers[steps == step]
        upper = reached.value[steps == step]
        for start in range(0, len(row), LABELS_AT_ONCE):
            chunk = slice(start, start + LABELS_AT_ONCE)
            these = (fill_up(part[chunk], LABELS_AT_ONCE) for part in (row, x))
            with jax.enable_x64(True):
                after = run(last_steps_after, regions, there, form, *these, step=step, forms=forms)
            upper[chunk] = np.minimum(upper[chunk], fetch(after)[: len(upper[chunk])])
        kept = upper >= need[of_place[row]]
        row, x = row[kept], x[kept]
        concept = np.empty_like(x)
        for k, place in enumerate(expanded.places):
            here = of_place[row] == k
            concept[here] = place.concepts.ids[x[here]]
        longer = labels.take(row).joined(np.full(len(row), step, np.int32), concept)
        found.append(Longer(of_place[row], longer, upper[kept]))
    return Longer(
        np.concatenate([part.place for part in found]),
        Labels.concatenate([part.labels for part in found]),
        np.concatenate([part.upper for part in found]),
    )


def _filled_up(labels: LabelsThere, on_host: bool) -> LabelsThere:
    """The labels in the one size that `last_steps_after` is compiled for."""
    if len(labels.inner) == LABELS_AT_ONCE:
        return labels
    if on_host:
        return jax.tree.map(lambda part: fill_up(part, LABELS_AT_ONCE), labels)
    with jax.enable_x64(True):
        return _fill_up_there(labels)


@jax.jit
def _fill_up_there(labels: LabelsThere) -> LabelsThere:
    note_trace("fill_up_there")
    missing = LABELS_AT_ONCE - len(labels.inner)

    def filled(part: Shaped[Array, "labels ..."]) -> Shaped[Array, "filled ..."]:
        return jnp.pad(part, [(0, missing), *[(0, 0)] * (part.ndim - 1)])

    return jax.tree.map(filled, labels)


@pytree
class _Pairs:
    """Pairs P with their overlaps, in floating point."""

    w: Float64[Array, "labels one"]
    i: Float64[Array, "labels concepts"]
    e: Float64[Array, "labels concepts"]
    paid: Float64[Array, "labels concepts"]
    gain: Float64[Array, "labels concepts"]
    """−W(P ∩ z), to be added to W(P)."""
    within: Float64[Array, "labels concepts"]
    """W(P ∩ z)."""
    outside: Float64[Array, "labels concepts"]
    """W(z \\ P)."""
    free: Bool[Array, "labels concepts"]
    light: Bool[Array, "labels concepts"]
    in_run: Bool[Array, "labels concepts"]
    """Concepts that may come to P in a run of ORs, in which nothing is heavy."""
    rounding: Float64[Array, "labels concepts"]
    """How far values of a concept may be off. Compiled code may round equal ones differently."""

    def not_above(
        self, values: Float64[Array, "labels concepts"], x: Int32[Array, " labels"]
    ) -> Bool[Array, "labels concepts"]:
        """Where a value is, or may be, not above that of x: of two level ones each follows."""
        lowest = values - self.rounding
        return lowest <= _at(values + self.rounding, x)

    @classmethod
    def of(
        cls, regions: BoundInputs, labels: LabelsThere, form: Int32[Array, " labels"]
    ) -> "_Pairs":
        counts, place = labels.counts, labels.place
        own_i, own_e, i, e = (
            jnp.asarray(part, jnp.float64)
            for part in (
                counts.inside,
                counts.outside,
                counts.shared_inside,
                counts.shared_outside,
            )
        )
        v = regions.v[place]
        paid = v[:, None] * e
        gain = paid - i
        free = regions.allowed[place] & not_in(labels.inner, regions.n_concepts)
        light = free & regions.light[place]
        lets_in = (form != UNION) | regions.light[place[:, None], labels.inner].all(1)
        return cls(
            w=weight(own_i, v * own_e)[:, None],
            i=i,
            e=e,
            paid=paid,
            gain=gain,
            within=weight(i, paid),
            outside=regions.own[place] + gain,
            free=free,
            light=light,
            in_run=light & lets_in[:, None],
            # Twice what `outside` was rounded up by, which is more for one concept than another.
            rounding=2 * slack(regions.own_i, regions.v[:, None] * regions.own_e)[place],
        )


@partial(jax.jit, static_argnames=("forms",))
def any_last_step(
    regions: BoundInputs,
    rows: Rows,
    labels: LabelsThere,
    form: Int32[Array, " labels"],
    *,
    forms: Forms,
) -> Float64[Array, "labels forms concepts"]:
    """Upper bounds on W of `(P∘x)∘y` with the best y of all, by the form of x."""
    note_trace("any_last_step")
    p, place = _Pairs.of(regions, labels, form), labels.place
    never = jnp.full_like(p.i, NEVER)
    after_or, after_and, after_not = never, never, never
    own, overlap, filtered = (
        part[place] for part in (regions.own, rows.removed, rows.filtered(regions))
    )
    last = _most(own + p.paid, p.light)  # W of y outside of a part of P
    best_gain = _most(p.gain, p.free)
    if forms.union:
        unions = p.w + p.outside + overlap + _most(p.outside, p.in_run)
        after_or = jnp.where(p.in_run, unions, NEVER)
    if forms.union and forms.difference:
        apart = jnp.minimum(p.outside + overlap, filtered + p.paid)
        after_or = jnp.maximum(after_or, p.w + best_gain + apart)
    if forms.union and forms.intersection:
        kept = jnp.minimum(last + p.within, _most(own, p.light) + p.i)
        after_and = jnp.where((form == DIFFERENCE)[:, None], NEVER, kept)
    if forms.difference:
        # What y removes of x's share is not counted twice: at most I(P ∩ x) is.
        removed = jnp.minimum(p.gain, best_gain) + p.i
        final = jnp.minimum(_most(p.paid, p.free), removed)
        if forms.union:
            added = jnp.minimum(last, _most(p.outside, p.light) + p.i)
            final = jnp.maximum(final, added)
        after_not = p.w + p.gain + final
    bounds = jnp.stack([after_or, after_and, after_not], axis=1)
    return jnp.where(p.free[:, None], outward(bounds), NEVER)


@partial(jax.jit, static_argnames=("step", "forms"))
def last_steps_after(
    regions: BoundInputs,
    labels: LabelsThere,
    form: Int32[Array, " labels"],
    row: Int32[Array, " rows"],
    x: Int32[Array, " rows"],
    *,
    step: int,
    forms: Forms,
) -> Float64[Array, " rows"]:
    """Upper bounds on W of `(P∘x)∘y`, x given for some rows P and its form for all, over each y."""
    note_trace("last_steps_after")
    labels, form = jax.tree.map(lambda part: jnp.asarray(part)[row], (labels, form))
    p = _Pairs.of(regions, labels, form)
    y = p.free & not_in(x[:, None], regions.n_concepts)
    block = regions.rows(jnp.asarray(labels.place), x)
    bound = {UNION: _after_or, INTERSECTION: _after_and, DIFFERENCE: _after_not}[step]
    return outward(bound(block, p, y, x, forms))


def _after_not(
    block: Block, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P AND NOT x) AND NOT y`, where y does not remove more than x, and `… OR y`."""
    common = jnp.minimum(jnp.minimum(_at(p.i, x), p.i), block.i)
    last = jnp.where(y & p.not_above(p.gain, x), p.gain + common, NEVER)
    if forms.union:
        last = jnp.maximum(last, jnp.where(y & p.light, p.outside + common, NEVER))
    return (p.w + _at(p.gain, x))[:, 0] + last.max(1)


def _after_or(
    block: Block, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P OR x) OR y`, where y does not add more than x, and `… AND NOT y`."""
    shared = block.ve
    outside = _at(p.outside, x)
    in_run = y & p.in_run & _at(p.in_run, x) & p.not_above(p.outside, x)
    best = jnp.where(in_run, outside + p.outside + shared, NEVER)
    if forms.difference:
        apart = jnp.minimum(outside + shared, block.without + _at(p.paid, x))
        best = jnp.maximum(best, jnp.where(y, p.gain + apart, NEVER))
    return p.w[:, 0] + best.max(1)


def _after_and(
    block: Block, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P AND x) OR y`."""
    del forms
    common = jnp.minimum(jnp.minimum(_at(p.e, x), p.e), block.e)
    own = block.theirs(block.regions.own)
    last = jnp.where(y & p.light, own + block.v * common, NEVER).max(1)
    return last + _at(p.within, x)[:, 0]


def _at(values: Array, x: Int32[Array, " labels"]) -> Array:
    """The value of each label's x, as a column."""
    return jnp.take_along_axis(values, x[:, None], axis=1)


def _most(
    values: Float64[Array, "#labels n"], among: Bool[Array, "labels n"]
) -> Float64[Array, "labels one"]:
    return jnp.where(among, values, NEVER).max(1, keepdims=True)
