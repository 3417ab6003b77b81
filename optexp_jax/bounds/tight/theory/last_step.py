"""The same formulas as in `two_step`, once the pair's overlaps with every concept are exact.

For a label P with `I(P ∩ z)` and `E(P ∩ z)` known, what is left unknown of `(P∘x)∘y` is what x and
y share within P. First every x is bounded with the best y of all (`any_last_step`, Proposition 15),
then the few x that survive with each y (`last_steps_after`, Proposition 16).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION, OperatorSet
from optexp_jax.bounds.tight.rounding import outward, slack, weight
from optexp_jax.bounds.tight.theory.bound_inputs import NEVER, BoundInputs, GramRows
from optexp_jax.bounds.tight.theory.exact_scores import CountedLabels, not_in
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima
from optexp_jax.bounds.tight.theory.shared_by_three import (
    LabelOverlaps,
    WeightLimits,
    shared_by_three,
)
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@pytree
class _Pairs:
    """Pairs P with their overlaps, in floating point."""

    w: Float64[Array, "labels one"]
    i: LabelOverlaps
    e: LabelOverlaps
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
        cls, inputs: BoundInputs, labels: CountedLabels, op: Int32[Array, " labels"]
    ) -> "_Pairs":
        counts, sub = labels.counts, labels.sub
        own_i, own_e, i, e = (
            jnp.asarray(part, jnp.float64)
            for part in (
                counts.inside,
                counts.outside,
                counts.shared_inside,
                counts.shared_outside,
            )
        )
        v = inputs.v[sub]
        paid = v[:, None] * e
        gain = paid - i
        free = inputs.allowed[sub] & not_in(labels.inner, inputs.n_concepts)
        light = free & inputs.light[sub]
        lets_in = (op != UNION) | inputs.light[sub[:, None], labels.inner].all(1)
        return cls(
            w=weight(own_i, v * own_e)[:, None],
            i=LabelOverlaps(own_i[:, None], i),
            e=LabelOverlaps(own_e[:, None], e),
            paid=paid,
            gain=gain,
            within=weight(i, paid),
            outside=inputs.own[sub] + gain,
            free=free,
            light=light,
            in_run=light & lets_in[:, None],
            # Twice what `outside` was rounded up by, which is more for one concept than another.
            rounding=2 * slack(inputs.own_i, inputs.v[:, None] * inputs.own_e)[sub],
        )


@partial(jax.jit, static_argnames=("ops",))
def any_last_step(
    inputs: BoundInputs,
    maxima: RowMaxima,
    labels: CountedLabels,
    op: Int32[Array, " labels"],
    *,
    ops: OperatorSet,
) -> Float64[Array, "labels ops concepts"]:
    """Proposition 15: bounds on W of `(P∘x)∘y` with the best y of all, by the operator of x."""
    note_trace("any_last_step")
    p, sub = _Pairs.of(inputs, labels, op), labels.sub
    never = jnp.full_like(p.paid, NEVER)
    after_or, after_and, after_not = never, never, never
    own, overlap, filtered = (
        part[sub] for part in (inputs.own, maxima.removed, maxima.filtered(inputs))
    )
    last = _most(own + p.paid, p.light)  # W of y outside of a part of P
    best_gain = _most(p.gain, p.free)
    if ops.union:
        # y adds no more than x.
        after_or = jnp.where(p.in_run, p.w + 2 * p.outside + overlap, NEVER)
    if ops.union and ops.difference:
        apart = jnp.minimum(p.outside + overlap, filtered + p.paid)
        after_or = jnp.maximum(after_or, p.w + best_gain + apart)
    if ops.union and ops.intersection:
        kept = jnp.minimum(last + p.within, _most(own, p.light) + p.i.shared)
        after_and = jnp.where((op == DIFFERENCE)[:, None], NEVER, kept)
    if ops.difference:
        # y removes no more than x, and x's share once only: gain(x) + I(P ∩ x).
        final = p.paid
        if ops.union:
            added = jnp.minimum(last, _most(p.outside, p.light) + p.i.shared)
            final = jnp.maximum(final, added)
        after_not = p.w + p.gain + final
    bounds = jnp.stack([after_or, after_and, after_not], axis=1)
    return jnp.where(p.free[:, None], outward(bounds), NEVER)


@partial(jax.jit, static_argnames=("step", "ops"))
def last_steps_after(
    inputs: BoundInputs,
    labels: CountedLabels,
    op: Int32[Array, " labels"],
    row: Int32[Array, " rows"],
    x: Int32[Array, " rows"],
    *,
    step: int,
    ops: OperatorSet,
) -> Float64[Array, " rows"]:
    """Proposition 16: bounds on W of `(P∘x)∘y` over each y; x is given for some rows P."""
    note_trace("last_steps_after")
    labels, op = jax.tree.map(lambda part: jnp.asarray(part)[row], (labels, op))
    p = _Pairs.of(inputs, labels, op)
    y = p.free & not_in(x[:, None], inputs.n_concepts)
    block = inputs.rows(jnp.asarray(labels.sub), x)
    three = shared_by_three(p.i, p.e, block, x)
    bound = {UNION: _after_or, INTERSECTION: _after_and, DIFFERENCE: _after_not}[step]
    return outward(bound(block, p, three, y, x, ops))


def _after_not(
    block: GramRows,
    p: _Pairs,
    three: WeightLimits,
    y: Bool[Array, "labels n"],
    x: Int32[Array, " labels"],
    ops: OperatorSet,
) -> Float64[Array, " labels"]:
    """`(P AND NOT x) AND NOT y`, where y does not remove more than x, and `… OR y`."""
    del block
    last = jnp.where(y & p.not_above(p.gain, x), p.gain + three.high, NEVER)
    if ops.union:
        last = jnp.maximum(last, jnp.where(y & p.light, p.outside + three.high, NEVER))
    return (p.w + _at(p.gain, x))[:, 0] + last.max(1)


def _after_or(
    block: GramRows,
    p: _Pairs,
    three: WeightLimits,
    y: Bool[Array, "labels n"],
    x: Int32[Array, " labels"],
    ops: OperatorSet,
) -> Float64[Array, " labels"]:
    """`(P OR x) OR y`, where y does not add more than x, and `… AND NOT y`."""
    apart = three.high - block.shared  # at least −W((x ∩ y) \\ P)
    in_run = y & p.in_run & _at(p.in_run, x) & p.not_above(p.outside, x)
    last = jnp.where(in_run, p.outside + apart, NEVER)
    if ops.difference:
        last = jnp.maximum(last, jnp.where(y, p.gain + apart, NEVER))
    return (p.w + _at(p.outside, x))[:, 0] + last.max(1)


def _after_and(
    block: GramRows,
    p: _Pairs,
    three: WeightLimits,
    y: Bool[Array, "labels n"],
    x: Int32[Array, " labels"],
    ops: OperatorSet,
) -> Float64[Array, " labels"]:
    """`(P AND x) OR y`."""
    del ops
    own = block.theirs(block.inputs.own)
    last = jnp.where(y & p.light, own - three.low, NEVER).max(1)
    return last + _at(p.within, x)[:, 0]


def _at(values: Array, x: Int32[Array, " labels"]) -> Array:
    """The value of each label's x, as a column."""
    return jnp.take_along_axis(values, x[:, None], axis=1)


def _most(
    values: Float64[Array, "#labels n"], among: Bool[Array, "labels n"]
) -> Float64[Array, "labels one"]:
    return jnp.where(among, values, NEVER).max(1, keepdims=True)
