"""Estimates of paths: what any formula that grows from a label can reach.

A path appends between one and t further concepts to a label L. Paths that use a single operator
have the published closed forms; a path that mixes operators is bounded by the loosest of theirs,
taken per sample. An operator of the user's own gets the bound that holds for every operator: at
best it covers the whole neuron and nothing else, at worst the reverse.
"""

from functools import partial
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int, Int32, Int64

from optexp_jax.bounds.paper.label import LabelBounds
from optexp_jax.bounds.paper.vectors import TopBott
from optexp_jax.counts.quantities import NeuronQuantities
from optexp_jax.formulas.operators import AND, AND_NOT, OR, Operator

MARGIN = 2.0**-44
"""Relative outward rounding of estimates.

Both terms of a ratio are integers below 2**53, so float64 holds them exactly and their quotient is
off by 2**-53 on IEEE hardware; the margin leaves room for devices that emulate float64.
"""

IMPOSSIBLE = -1.0
"""The upper estimate of a path that cannot be taken, or need not be."""


class Reach(eqx.Module):
    """Limits of a path's intersection I and extras E, `[row, sample]`."""

    i_min: Int[Array, "rows samples"]
    i_max: Int[Array, "rows samples"]
    e_min: Int[Array, "rows samples"]
    e_max: Int[Array, "rows samples"]


class Estimates(eqx.Module):
    """Bounds on the IoU of each row; by kind of path, where several are estimated together."""

    upper: Float64[Array, "rows *kinds"]
    lower: Float64[Array, "rows *kinds"]

    def without(self, left_out: Bool[Array, "rows *kinds"]) -> "Estimates":
        """The same with some paths marked as impossible."""
        return Estimates(
            jnp.where(left_out, IMPOSSIBLE, self.upper), jnp.where(left_out, 0.0, self.lower)
        )


def estimate_paths(
    label: LabelBounds,
    vectors: TopBott,
    further: Int32[Array, " rows"],
    neuron: NeuronQuantities,
    operators: tuple[Operator, ...],
    most_further: int | None = None,
) -> Estimates:
    """dIoU_max and dIoU_min of every path from each label, and of the label itself (last column).

    A column is a next operator; t further concepts can use up to t operators, so it holds the
    loosest estimate over the sets of that many operators that contain it. If t is known not to be
    above `most_further`, larger sets are left out.
    """
    most_used = len(operators) if most_further is None else min(len(operators), most_further)
    reaches = {operator: exclusive_path(label, vectors, neuron, operator) for operator in operators}
    impossible = Estimates(jnp.full(further.shape, IMPOSSIBLE), jnp.zeros(further.shape))
    columns = dict.fromkeys(operators, impossible)
    for n_used in range(1, most_used + 1):
        allowed = further >= n_used
        for used in combinations(operators, n_used):
            ratio = _ratio(_loosest([reaches[operator] for operator in used]), neuron)
            for operator in used:
                column = columns[operator]
                low = ratio.lower if n_used == 1 else jnp.minimum(column.lower, ratio.lower)
                columns[operator] = Estimates(
                    jnp.where(allowed, jnp.maximum(column.upper, ratio.upper), column.upper),
                    jnp.where(allowed, low, column.lower),
                )
    every = [*columns.values(), estimate_final(label, neuron)]
    return Estimates(
        jnp.stack([column.upper for column in every], axis=1),
        jnp.stack([column.lower for column in every], axis=1),
    )


def estimate_path(
    label: LabelBounds,
    vectors: TopBott,
    further: Int32[Array, " rows"],
    kind: Int32[Array, " rows"],
    neuron: NeuronQuantities,
    operators: tuple[Operator, ...],
    most_further: int,
) -> Estimates:
    """The same of one path from each label, that whose next operator has index `kind`.

    At least one further concept must be possible.
    """
    reaches = [exclusive_path(label, vectors, neuron, operator) for operator in operators]
    own = reaches[0]
    for index, reach in enumerate(reaches[1:], start=1):
        chosen = (kind == index)[:, None]
        own = jax.tree.map(partial(jnp.where, chosen), reach, own)
    estimates = _ratio(own, neuron)
    for n_others in range(1, min(len(operators), most_further)):
        # The next operator may stand among the others as well: the set is a smaller one then.
        allowed = further > n_others

        def loosen(narrow: Estimates, n_others: int = n_others) -> Estimates:
            for others in combinations(reaches, n_others):
                wide = _ratio(_loosest([own, *others]), neuron)
                narrow = Estimates(
                    jnp.maximum(narrow.upper, wide.upper), jnp.minimum(narrow.lower, wide.lower)
                )
            return narrow

        # Most nodes are one step from full length and need none of this.
        loose = jax.lax.cond(allowed.any(), loosen, lambda narrow: narrow, estimates)
        estimates = jax.tree.map(partial(jnp.where, allowed), loose, estimates)
    return estimates


def estimate_final(label: LabelBounds, neuron: NeuronQuantities) -> Estimates:
    """dIoU_max and dIoU_min of each label itself."""
    return _ratio(final_path(label), neuron)


def final_path(label: LabelBounds) -> Reach:
    """No further concept: the label's own quantities."""
    return Reach(
        label.iu + label.ic.low,
        label.iu + label.ic.high,
        label.eu + label.ec.low,
        label.eu + label.ec.high,
    )


def exclusive_path(
    label: LabelBounds, vectors: TopBott, neuron: NeuronQuantities, operator: Operator
) -> Reach:
    """A path on which every further operator is this one."""
    nu, nc, seu, sec = (part[None, :] for part in (neuron.nu, neuron.nc, neuron.seu, neuron.sec))
    top, one, bottom = vectors.top, vectors.top_one, vectors.bottom
    zero = jnp.zeros_like(label.iu)
    if operator == OR:
        return Reach(
            i_min=jnp.maximum(label.ic.low + label.iu, bottom.ic + bottom.iu),
            i_max=jnp.minimum(label.ic.high + top.ic, nc) + jnp.minimum(label.iu + top.iu, nu),
            e_min=jnp.maximum(label.ec.low + label.eu, bottom.ec + bottom.eu),
            e_max=jnp.minimum(label.ec.high + top.ec, sec) + jnp.minimum(label.eu + top.eu, seu),
        )
    if operator == AND:
        # The first AND leaves nothing unique; every further one only shrinks, hence Top_1 for any
        # t. Two of them can empty the extras, so the published Union_min (valid for one) is not
        # used.
        return Reach(
            i_min=zero,
            i_max=jnp.minimum(label.ic.high, one.ic),
            e_min=zero,
            e_max=jnp.minimum(label.ec.high, one.ec),
        )
    if operator == AND_NOT:
        # Another concept never holds a unique element of the label: those stay, inside and outside.
        return Reach(
            i_min=label.iu,
            i_max=label.iu + jnp.minimum(label.ic.high, nc - bottom.ic),
            e_min=label.eu,
            e_max=label.eu + jnp.minimum(label.ec.high, sec - bottom.ec),
        )
    return Reach(i_min=zero, i_max=nu + nc + zero, e_min=zero, e_max=seu + sec + zero)


def _loosest(reaches: list[Reach]) -> Reach:
    """A path that may use any of several operators."""
    loosest = reaches[0]
    for reach in reaches[1:]:
        loosest = Reach(
            jnp.minimum(loosest.i_min, reach.i_min),
            jnp.maximum(loosest.i_max, reach.i_max),
            jnp.minimum(loosest.e_min, reach.e_min),
            jnp.maximum(loosest.e_max, reach.e_max),
        )
    return loosest


def _ratio(reach: Reach, neuron: NeuronQuantities) -> Estimates:
    """Bounds on I / (|N| + E), summed over samples and rounded outward."""

    def total(part: Int[Array, "... samples"]) -> Int64[Array, "..."]:
        return part.sum(-1, dtype=jnp.int64)

    def quotient(i: Int[Array, "rows samples"], e: Int[Array, "rows samples"]) -> Array:
        # Where E is zero for all rows, XLA would multiply by 1/|N| instead, which rounds twice:
        # equal ratios must be equal numbers, for ties and for the memory of recent nodes.
        union = jax.lax.optimization_barrier(total(neuron.n) + total(e))
        return total(i).astype(jnp.float64) / union.astype(jnp.float64)

    return Estimates(
        quotient(reach.i_max, reach.e_min) * (1 + MARGIN),
        quotient(reach.i_min, reach.e_max) * (1 - MARGIN),
    )
