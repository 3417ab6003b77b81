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
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.pytrees import pytree
from optexp_jax.search.frontier import take
from optexp_jax.shapes import fill_up
from optexp_jax.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.tight.label_children import not_in
from optexp_jax.tight.labels import LabelCounts, Labels
from optexp_jax.tight.place import LABELS_AT_ONCE, Children
from optexp_jax.tight.region import NEVER, Region
from optexp_jax.tight.rows import Rows
from optexp_jax.tracing import note_trace


@dataclass(frozen=True, eq=False)
class Longer:
    """Labels one concept longer, with bounds on W of all that one more step makes of them."""

    labels: Labels
    upper: Float64[np.ndarray, " labels"]


def longer_labels(
    region: Region, rows: Rows, children: Children, need: float, forms: Forms
) -> Longer:
    """Labels `P∘x` that one more OR or AND NOT may take to `need`."""
    labels, counts = children.labels, children.counts
    form = fill_up(labels.forms[:, 0], len(children.inner))
    with jax.enable_x64(True):
        best = np.asarray(any_last_step(region, rows, counts, children.inner, form, forms=forms))
    best = best[: len(labels)]
    reached = np.flatnonzero((best >= need).reshape(-1))  # faster than in three dimensions
    labels_at, steps, concepts = (
        part.astype(np.int32) for part in np.unravel_index(reached, best.shape)
    )
    found: list[Longer] = []
    for step in (UNION, INTERSECTION, DIFFERENCE):
        row, x = labels_at[steps == step], concepts[steps == step]
        upper = best[row, step, x]
        for start in range(0, len(row), LABELS_AT_ONCE):
            chunk = slice(start, start + LABELS_AT_ONCE)
            known = take((counts, children.inner, form), fill_up(row[chunk], LABELS_AT_ONCE))
            with jax.enable_x64(True):
                after = last_steps_after(
                    region, *known, fill_up(x[chunk], LABELS_AT_ONCE), step=step, forms=forms
                )
            upper[chunk] = np.minimum(upper[chunk], np.asarray(after)[: len(upper[chunk])])
        kept = upper >= need
        longer = labels.take(row[kept]).joined(np.full(kept.sum(), step, np.int32), x[kept])
        found.append(Longer(longer, upper[kept]))
    labels = Labels.concatenate([part.labels for part in found])
    return Longer(labels, np.concatenate([part.upper for part in found]))


@pytree
class _Pairs:
    """Pairs P with their overlaps, in floating point."""

    w: Float64[Array, "labels one"]
    i: Float64[Array, "labels concepts"]
    e: Float64[Array, "labels concepts"]
    paid: Float64[Array, "labels concepts"]
    gain: Float64[Array, "labels concepts"]
    """−W(P ∩ z)."""
    outside: Float64[Array, "labels concepts"]
    """W(z \\ P)."""
    free: Bool[Array, "labels concepts"]
    light: Bool[Array, "labels concepts"]
    in_run: Bool[Array, "labels concepts"]
    """Concepts that may come to P in a run of ORs, in which nothing is heavy."""
    rounding: Float64[Array, " concepts"]
    """How far values of a concept may be off. Compiled code may round equal ones differently."""

    def not_above(
        self, values: Float64[Array, "labels concepts"], x: Int32[Array, " labels"]
    ) -> Bool[Array, "labels concepts"]:
        """Where a value is, or may be, not above that of x: of two level ones each follows."""
        lowest = values - self.rounding[None, :]
        return lowest <= _at(values, x) + self.rounding[x][:, None]

    @classmethod
    def of(
        cls,
        region: Region,
        labels: LabelCounts,
        inner: Int32[Array, "labels two"],
        form: Int32[Array, " labels"],
    ) -> "_Pairs":
        own_i, own_e, i, e = (
            jnp.asarray(part, jnp.float64)
            for part in (
                labels.inside,
                labels.outside,
                labels.shared_inside,
                labels.shared_outside,
            )
        )
        paid = region.v * e
        gain = paid - i
        free = region.allowed[None, :] & not_in(inner, len(region.allowed))
        light = free & region.light[None, :]
        lets_in = (form != UNION) | region.light[inner].all(1)
        return cls(
            w=(own_i - region.v * own_e)[:, None],
            i=i,
            e=e,
            paid=paid,
            gain=gain,
            outside=region.own[None, :] + gain,
            free=free,
            light=light,
            in_run=light & lets_in[:, None],
            rounding=2.0**-45 * (region.own_i + region.v * region.own_e),
        )


@partial(jax.jit, static_argnames=("forms",))
def any_last_step(
    region: Region,
    rows: Rows,
    labels: LabelCounts,
    inner: Int32[Array, "labels two"],
    form: Int32[Array, " labels"],
    *,
    forms: Forms,
) -> Float64[Array, "labels forms concepts"]:
    """Upper bounds on W of `(P∘x)∘y` with the best y of all, by the form of x."""
    note_trace("any_last_step")
    p = _Pairs.of(region, labels, inner, form)
    never = jnp.full_like(p.i, NEVER)
    after_or, after_and, after_not = never, never, never
    own, overlap, filtered = (
        part[None, :] for part in (region.own, rows.removed, rows.filtered(region))
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
        kept = jnp.minimum(last - p.gain, _most(own, p.light) + p.i)
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
    return jnp.where(p.free[:, None], bounds, NEVER)


@partial(jax.jit, static_argnames=("step", "forms"))
def last_steps_after(
    region: Region,
    labels: LabelCounts,
    inner: Int32[Array, "labels two"],
    form: Int32[Array, " labels"],
    x: Int32[Array, " labels"],
    *,
    step: int,
    forms: Forms,
) -> Float64[Array, " labels"]:
    """Upper bounds on W of `(P∘x)∘y`, x given for each P and its form for all, over each y."""
    note_trace("last_steps_after")
    p = _Pairs.of(region, labels, inner, form)
    y = p.free & not_in(x[:, None], len(region.allowed))
    bound = {UNION: _after_or, INTERSECTION: _after_and, DIFFERENCE: _after_not}[step]
    return bound(region, p, y, x, forms)


def _after_not(
    region: Region, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P AND NOT x) AND NOT y`, where y does not remove more than x, and `… OR y`."""
    common = jnp.minimum(jnp.minimum(_at(p.i, x), p.i), region.gram.inside[x].astype(jnp.float64))
    last = jnp.where(y & p.not_above(p.gain, x), p.gain + common, NEVER)
    if forms.union:
        last = jnp.maximum(last, jnp.where(y & p.light, p.outside + common, NEVER))
    return (p.w + _at(p.gain, x))[:, 0] + last.max(1)


def _after_or(
    region: Region, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P OR x) OR y`, where y does not add more than x, and `… AND NOT y`."""
    shared = region.v * region.gram.outside[x].astype(jnp.float64)
    outside = _at(p.outside, x)
    in_run = y & p.in_run & _at(p.in_run, x) & p.not_above(p.outside, x)
    best = jnp.where(in_run, outside + p.outside + shared, NEVER)
    if forms.difference:
        without = region.own[x][:, None] - (region.gram.inside[x].astype(jnp.float64) - shared)
        apart = jnp.minimum(outside + shared, without + _at(p.paid, x))
        best = jnp.maximum(best, jnp.where(y, p.gain + apart, NEVER))
    return p.w[:, 0] + best.max(1)


def _after_and(
    region: Region, p: _Pairs, y: Bool[Array, "labels n"], x: Int32[Array, " labels"], forms: Forms
) -> Float64[Array, " labels"]:
    """`(P AND x) OR y`."""
    del forms
    common = jnp.minimum(jnp.minimum(_at(p.e, x), p.e), region.gram.outside[x].astype(jnp.float64))
    last = jnp.where(y & p.light, region.own[None, :] + region.v * common, NEVER).max(1)
    return last - _at(p.gain, x)[:, 0]


def _at(values: Array, x: Int32[Array, " labels"]) -> Array:
    """The value of each label's x, as a column."""
    return jnp.take_along_axis(values, x[:, None], axis=1)


def _most(
    values: Float64[Array, "#labels n"], among: Bool[Array, "labels n"]
) -> Float64[Array, "labels one"]:
    return jnp.where(among, values, NEVER).max(1, keepdims=True)
