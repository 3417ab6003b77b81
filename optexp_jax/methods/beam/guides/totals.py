"""From bounds per sample to estimates of whole candidates: what both guides share."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int64

from optexp_jax.bounds.paper.path import MARGIN
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.beam.guides.pairs import Pairs

Rows = TypeVar("Rows", bound=eqx.Module)


class Best(eqx.Module):
    """The most that can lie inside the neuron and the least that can lie outside."""

    inside: Int64[Array, "..."]
    outside: Int64[Array, "..."]


def estimate_rows(
    rows: Rows,
    count: Int64[Array, ""],
    shape: tuple[int, int],
    estimate: Callable[[Rows], Float64[Array, "operators concepts"]],
) -> Float64[Array, "rows operators concepts"]:
    """Estimates of each row, `shape` of them; rows past `count` are skipped.

    Rows go one after another, because there can be millions of pairs.
    """

    def one_row(numbered: tuple[Int64[Array, ""], Rows]) -> Float64[Array, "operators concepts"]:
        index, row = numbered
        nothing = jnp.zeros(shape, jnp.float64)
        return jax.lax.cond(index < count, estimate, lambda _: nothing, row)

    n_rows = jax.tree.leaves(rows)[0].shape[0]
    return jax.lax.map(one_row, (jnp.arange(n_rows, dtype=jnp.int64), rows))


def estimate_children(
    pairs: Pairs,
    member: Best,
    joined: dict[Operator, Best],
    size: Int64[Array, ""],
) -> Float64[Array, "operators concepts"]:
    """Upper bounds on `I / (|N| + E)` of a member joined to each concept, rounded outward.

    `member` is per sample, `joined` per pair. In samples without the concept the operator keeps all
    of the member or nothing.
    """
    everywhere: list[Array] = []
    changes: list[Array] = []
    for operator, best in joined.items():
        for alone, together in ((member.inside, best.inside), (member.outside, best.outside)):
            kept = alone if operator.p else jnp.zeros_like(alone)
            everywhere.append(kept.sum())
            changes.append(together - kept[pairs.sample])
    # One sum over wide rows is several times faster than one a column.
    by_concept = jax.ops.segment_sum(
        jnp.stack(changes, 1), pairs.concept, pairs.n_concepts, indices_are_sorted=True
    )
    totals = (jnp.stack(everywhere)[:, None] + by_concept.T).reshape(len(joined), 2, -1)
    inside, outside = totals[:, 0], totals[:, 1]
    return upper_ratio(inside, size + outside)


def upper_ratio(
    intersection: Int64[Array, "..."], union: Int64[Array, "..."]
) -> Float64[Array, "..."]:
    """The quotient, rounded outward."""
    return intersection.astype(jnp.float64) / union.astype(jnp.float64) * (1 + MARGIN)
