"""Estimates of labels: how much of a formula's common elements lie inside the neuron, and outside.

Unique elements of a chain are exact, because each step joins one other concept: `P∘c` keeps P's
where `o(1,0) = 1` and c's where `o(0,1) = 1`. Common elements are only known as intervals, since
P and c may overlap anywhere among them. With S the common elements there are (N^C inside the
neuron, SE^C outside), P of them in the left side and c in the concept, the overlap k obeys

    max(0, P + c − S) <= k <= min(P, c),        and k = 0 when the sides are disjoint,

and `P∘c` has `p(P − k) + q(c − k) + r·k` of them. For OR, AND and AND NOT the extremes of this
are the published closed forms. All arrays are `[row, sample]`; with one sample that holds the
sums over all of them the very same lines give the aggregated estimate.
"""

from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from optexp_jax.counts.quantities import NeuronQuantities, Quantities


class Interval(eqx.Module):
    """A count that is known to lie between two others."""

    low: Int[Array, "*rows samples"]
    high: Int[Array, "*rows samples"]


class LabelBounds(eqx.Module):
    """What is known of a label: its unique elements exactly, its common elements as intervals."""

    iu: Int[Array, "*rows samples"]
    eu: Int[Array, "*rows samples"]
    ic: Interval
    ec: Interval

    @classmethod
    def exact(cls, quantities: Quantities) -> "LabelBounds":
        """Bounds of labels whose quantities are known, one a row."""
        return cls(
            iu=quantities.iu,
            eu=quantities.eu,
            ic=Interval(quantities.ic, quantities.ic),
            ec=Interval(quantities.ec, quantities.ec),
        )


class OperatorBits(eqx.Module):
    """The bits o(1,0), o(0,1), o(1,1) of each row's operator, as 0 or 1."""

    p: Int[Array, "rows 1"]
    q: Int[Array, "rows 1"]
    r: Int[Array, "rows 1"]
    monotone: bool = eqx.field(static=True, default=False)
    """All rows have operators whose result never shrinks when the left side grows."""


def join(
    left: LabelBounds,
    right: Quantities,
    bits: OperatorBits,
    disjoint: Bool[Array, " rows"],
    neuron: NeuronQuantities,
) -> LabelBounds:
    """Bounds of `P∘c` from those of P and the exact quantities of the concept c."""
    bits = jax.tree.map(lambda bit: bit.astype(right.ic.dtype), bits)
    return LabelBounds(
        iu=bits.p * left.iu + bits.q * right.iu,
        eu=bits.p * left.eu + bits.q * right.eu,
        ic=join_common(left.ic, right.ic, bits, disjoint, neuron.nc),
        ec=join_common(left.ec, right.ec, bits, disjoint, neuron.sec),
    )


def join_common(
    left: Interval,
    c: Int[Array, "rows samples"],
    bits: OperatorBits,
    disjoint: Bool[Array, " rows"],
    total: Int[Array, " samples"],
) -> Interval:
    """The least and the most that `p(P − k) + q(c − k) + r·k` can be.

    It is linear in P and k over a polygon, so it is extreme at a corner: P at an end of its
    interval or at a break of the limits of k (P = c, P = S − c), and k at one of its limits. With
    a monotone operator it is least where P is least, and greatest where P is greatest.
    """
    everything = total[None, :]
    weight = jnp.where(disjoint[:, None], 0, bits.r - bits.p - bits.q)

    def at(corner: Int[Array, "rows samples"]) -> list[Int[Array, "rows samples"]]:
        P = corner if bits.monotone else jnp.clip(corner, left.low, left.high)
        most = jnp.minimum(P, c)
        least = jnp.maximum(P + c - everything, 0)
        return [bits.p * P + bits.q * c + weight * k for k in (least, most)]

    if bits.monotone:
        low, high = reduce(jnp.minimum, at(left.low)), reduce(jnp.maximum, at(left.high))
    else:
        corners = (left.low, left.high, c, everything - c)
        values = [value for corner in corners for value in at(corner)]
        low, high = reduce(jnp.minimum, values), reduce(jnp.maximum, values)
    # Two sides known to be disjoint may add up to more than there is while P is only an interval.
    return Interval(jnp.minimum(low, everything), jnp.minimum(high, everything))


def distribute(own: LabelBounds, first: LabelBounds, second: LabelBounds) -> LabelBounds:
    """Bounds of `(A OR B)∘c` tightened by its equal, `(A∘c) OR (B∘c)`, for AND and AND NOT.

    An OR has at least what either side has and at most what both have. Unique elements stay those
    of the chain, which are exact; only intervals of common elements gain.
    """

    def tighten(kept: Interval, a: Interval, b: Interval) -> Interval:
        return Interval(
            jnp.maximum(kept.low, jnp.maximum(a.low, b.low)),
            jnp.minimum(kept.high, a.high + b.high),
        )

    return LabelBounds(
        own.iu, own.eu, tighten(own.ic, first.ic, second.ic), tighten(own.ec, first.ec, second.ec)
    )
