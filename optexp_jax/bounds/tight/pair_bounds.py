"""Bounds on formulas of three concepts from the exact counts of all pairs.

How much a third concept x can still add to a pair, of which W is exact:

    (a∘b) AND NOT x   removes at most v·E((a∘b) ∩ x), and gives up I((a∘b) ∩ x)
    (a∘b) OR x        adds W(x \\ (a∘b))
    (a∘b) AND x       leaves I((a∘b) ∩ x) − v·E((a∘b) ∩ x)

Here for all pairs at once, from maxima over x of each concept's row; in `triple_bounds`, for the
pairs that survive, with the same x for both concepts.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32

from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.region import NEVER, Block, BoundInputs, least
from optexp_jax.bounds.tight.rows import Rows
from optexp_jax.internal.tracing import note_trace


@partial(jax.jit, static_argnames=("forms",))
def highest_pair_bounds(
    regions: BoundInputs, rows: Rows, *, forms: Forms
) -> Float64[Array, "places concepts forms"]:
    """The highest bounds of all pairs with the same first concept."""
    note_trace("highest_pair_bounds")
    return pair_bounds_of(regions.all_rows(), rows, forms).max(-1)


@partial(jax.jit, static_argnames=("forms",))
def highest_bounds(
    regions: BoundInputs, rows: Rows, *, forms: Forms
) -> Float64[Array, "places concepts"]:
    """The same over all forms."""
    return highest_pair_bounds(regions, rows, forms=forms).max(-1)


@partial(jax.jit, static_argnames=("forms",))
def pair_bounds(
    regions: BoundInputs,
    rows: Rows,
    place: Int32[Array, " rows"],
    a: Int32[Array, " rows"],
    *,
    forms: Forms,
) -> Float64[Array, "rows forms concepts"]:
    """An upper bound on W of the pairs of some concepts with every other, and one more concept."""
    note_trace("pair_bounds")
    return pair_bounds_of(regions.rows(place, a), rows, forms)


def pair_bounds_of(
    block: Block, rows: Rows, forms: Forms
) -> Float64[Array, "*rows forms concepts"]:
    """The same for the pairs of a block, within a program."""
    i, ve, both, without = block.i, block.ve, block.both, block.without
    removed, added, union_best = (
        block.mine(part) for part in (rows.removed, rows.added, rows.union)
    )
    # Every bound is the least of those that hold; a and b are exchangeable in a union.
    never = jnp.full_like(i, NEVER)
    unions, intersections, differences = [never], [never], [never]
    if forms.difference:
        unions.append(block.union + least(rows.gain, block, rows.removed))
        intersections.append(jnp.minimum(i, both + least(rows.removed, block)))
        # Of the two filters b is the one with the higher W(a AND NOT b).
        differences.append(without + jnp.minimum(removed, ve))
    if forms.union:
        # Of three concepts in a union, x is the one with the smallest share.
        share = rows.third_share(block.regions)
        shares = block.mine(share) + block.theirs(share) + least(share, block)
        unions.append(jnp.minimum(block.union + least(rows.fresh, block), shares))
        intersections.append(both + least(rows.added, block))
        differences.append(jnp.minimum(without + added, union_best + ve))
    if forms.intersection:
        # An x that meets neither leaves nothing.
        meets = block.mine(rows.meets) | block.theirs(rows.meets)
        halves = block.mine(rows.half) + block.theirs(rows.half)
        unions.append(jnp.where(meets, halves, NEVER))
        intersections.append(jnp.minimum(i, least(rows.common, block)))
        # (a AND NOT b) AND x is (a AND x) AND NOT b, which is bounded there.
    bounds = [jnp.stack(part).max(0) for part in (unions, intersections, differences)]
    usable = block.usable(forms) & block.proper()
    return jnp.where(usable, jnp.stack(bounds, axis=-2), NEVER)
