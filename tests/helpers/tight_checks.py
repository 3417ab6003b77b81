"""Each bound of the tight search against all formulas that it must hold for, in exact numbers."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from helpers.tight_cases import (
    Chains,
    N,
    Setting,
    assert_bounded,
    groups,
    is_new,
    ops_of,
)
from helpers.tight_helpers import (
    HERE,
    every_row,
    gram,
    inputs_of,
    most_w,
    of_chunk,
    of_pairs,
    pair_of,
    pairs_once,
)
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.search.subproblem import SubproblemCache
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.one_step import triple_bounds
from optexp_jax.bounds.tight.theory.outer_step import outer_bounds, outer_maxima
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima, two_step_maxima
from optexp_jax.bounds.tight.theory.screening import OverlapSums, gains
from optexp_jax.bounds.tight.theory.short import ShortFormulaBounds, short_formulas
from optexp_jax.bounds.tight.theory.two_step import refined_two_steps, two_step_bounds


def of_triples(setting: Setting, chains: Chains) -> np.ndarray:
    """`triple_bounds` of the first two concepts of each chain."""
    return of_chunk(partial(triple_bounds, inputs_of(setting)), setting, chains)


def shares(setting: Setting) -> np.ndarray:
    """How much each concept adds to a union of three, as the order of a union has it."""
    i, e = gram(setting)
    share = np.zeros(N)
    for x in setting.free:
        overlaps = np.sort([e[x, y] for y in setting.free if y != x])[::-1]
        share[x] = i[x, x] - setting.v * max(e[x, x] / 3, e[x, x] - overlaps[:2].sum() / 2)
    return share


def answered(setting: Setting, chains: Chains) -> np.ndarray:
    """Which chains of three concepts the bound of their first two must hold for."""
    op, a, b = pair_of(chains)
    x, last = chains.concepts[:, 2], chains.ops[:, 1]
    share = shares(setting)
    i, e = gram(setting)
    both = i - setting.v * e
    smallest = share[x] <= np.minimum(share[a], share[b])
    return (
        pairs_once(chains)
        & (smallest | (op != UNION) | (last != UNION))
        & ((both[a, b] <= both[a, x]) | (op != DIFFERENCE) | (last != DIFFERENCE))
        & ((op != DIFFERENCE) | (last != INTERSECTION))
    )


def best_of_groups(number: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """For each chain the highest bound over all ways to write it."""
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, bounds)
    return highest[number]


def check_pairs(setting: Setting) -> None:
    chains = setting.chains(3)
    new = is_new(setting, chains)
    must = chains.take(answered(setting, chains) & new)
    bounds = of_pairs(setting)
    assert_bounded(must, bounds[pair_of(must)], setting, "pair_bounds")
    together = np.minimum(bounds[pair_of(must)], of_triples(setting, must))
    assert_bounded(must, together, setting, "pair_bounds and triple_bounds")
    # Whatever the order is meant to be: every formula is held by a pair of some way to write it.
    chains = chains.take(new)
    if len(chains):
        either = np.minimum(bounds[pair_of(chains)], of_triples(setting, chains))
        assert_bounded(chains, best_of_groups(groups(chains), either), setting, "all pairs")


def in_light_run(chains: Chains, light: np.ndarray) -> np.ndarray:
    """Whether all concepts of the ORs that a chain of four ends in are light."""
    unions = chains.ops == UNION
    run = [unions[:, k:].all(1) for k in range(3)]  # the step that adds each concept but the first
    members = np.column_stack([run[0], *run])
    return np.all(light[chains.concepts] | ~members, axis=1)


def later(setting: Setting, chains: Chains, light: np.ndarray) -> np.ndarray:
    """Which chains of four concepts the bounds of their first two must hold for."""
    op, a, b = pair_of(chains)
    x, y = chains.concepts[:, 2], chains.concepts[:, 3]
    middle, last = chains.ops[:, 1], chains.ops[:, 2]
    i, e = gram(setting)
    both = i - setting.v * e
    filters = (chains.ops == DIFFERENCE).all(1)
    return (
        pairs_once(chains)
        & (last != INTERSECTION)
        & ((middle != INTERSECTION) | ((last == UNION) & (op != DIFFERENCE)))
        & ((last != UNION) | in_light_run(chains, light))
        & (~filters | (both[a, b] <= np.minimum(both[a, x], both[a, y])))
    )


def exact_weights(i: np.ndarray, e: np.ndarray, v: float) -> np.ndarray:
    """W as fractions: in float64 two that are level may not be."""
    return np.array(
        [
            inside - Fraction(v) * extras
            for inside, extras in zip(i.tolist(), e.tolist(), strict=True)
        ]
    )


def last_steps_of(setting: Setting, pairs: Chains, row: int, light: np.ndarray) -> Chains:
    """The chains `(P∘x)∘y` that the bounds of `P∘x` must hold for, P being one of the pairs."""
    chains, v = setting.chains(4), setting.v
    op, inner, (i, e) = pairs.ops[row, 0], pairs.concepts[row], setting.counts
    here = chains.take((chains.concepts[:, :2] == inner).all(1) & (chains.ops[:, 0] == op))
    columns = setting.case.columns
    shared = exact_weights((columns & pairs.masks[row]) @ i, (columns & pairs.masks[row]) @ e, v)
    added = exact_weights(columns @ i, columns @ e, v) - shared
    x, y = here.concepts[:, 2], here.concepts[:, 3]
    middle, last = here.ops[:, 1], here.ops[:, 2]
    return here.take(
        (last != INTERSECTION)
        & ((middle != INTERSECTION) | ((last == UNION) & (op != DIFFERENCE)))
        & ((last != UNION) | in_light_run(here, light))
        & ((middle != DIFFERENCE) | (last != DIFFERENCE) | (shared[x] <= shared[y]))
        & ((middle != UNION) | (last != UNION) | (added[x] >= added[y]))
    )


def short(inputs: BoundInputs, setting: Setting, three: float) -> ShortFormulaBounds:
    with jax.enable_x64(True):
        limits = short_formulas(inputs, ops=ops_of(setting.operators))
        return replace(limits, three=jnp.full(2, three))


def check_two_steps(setting: Setting, light: np.ndarray) -> None:
    chains = setting.chains(4)
    must = chains.take(later(setting, chains, light))
    must = must.take(is_new(setting, must))
    inputs, ops = inputs_of(setting, light), ops_of(setting.operators)
    for three in (np.inf, most_w(setting, 3)):
        limits = short(inputs, setting, three)
        with jax.enable_x64(True):
            rows = row_maxima(inputs)
            more = two_step_maxima(inputs, rows)
            known = inputs, rows, more, limits
            coarse = np.asarray(two_step_bounds(*known, *every_row(), ops=ops))
        pair = pair_of(must)
        assert_bounded(must, coarse.transpose(1, 0, 2)[pair], setting, "two_step_bounds")
        if len(must):
            refined = of_chunk(partial(refined_two_steps, inputs, rows, limits), setting, must)
            assert_bounded(must, refined, setting, "refined_two_steps")


def of_outer(setting: Setting, rank: np.ndarray, best: float, left: int) -> np.ndarray:
    """`outer_bounds` of all steps, `[operator, c]`."""
    inputs, ops = inputs_of(setting), ops_of(setting.operators)
    ranks = np.stack([rank[::-1], rank]).astype(np.int32)
    with jax.enable_x64(True):
        known = (
            inputs,
            outer_maxima(inputs, longest=4),
            jnp.asarray(ranks),
            jnp.full(2, -np.inf).at[HERE].set(best),
            jnp.int32(left),
            *every_row(),
        )
        return np.asarray(outer_bounds(*known, ops=ops, steps=ops)).T


def in_order(chains: Chains, rank: np.ndarray) -> np.ndarray:
    """Chains that are searched at their outermost step: of ORs alone, its rank is the highest."""
    pure = (chains.ops == UNION).all(1)
    return ~pure | (rank[chains.concepts[:, -1]] == rank[chains.concepts].max(1))


def effective(setting: Setting, chains: Chains) -> np.ndarray:
    """Chains whose last step is OR, or a filter that meets another concept: others do nothing.

    Nor do any filters where no two concepts meet.
    """
    inside, outside = gram(setting)
    overlap = inside + outside
    np.fill_diagonal(overlap, 0)
    meets = np.atleast_1d(overlap[:, setting.free].any(1))
    if not overlap[np.ix_(setting.free, setting.free)].any():
        return (chains.ops == UNION).all(1)
    return (chains.ops[:, -1] == UNION) | meets[chains.concepts[:, -1]]


def outer_of(chains: Chains, bounds: np.ndarray) -> np.ndarray:
    return bounds[chains.ops[:, -1], chains.concepts[:, -1]]


def check_outer(setting: Setting, rank: np.ndarray, left: int) -> None:
    whole = float(setting.case.neuron.size)
    longest = left + 1
    setting.chains(longest)
    bounds = [
        of_outer(setting, rank, best, left) for best in (np.inf, whole, most_w(setting, left))
    ]
    for length in range(2, longest + 1):
        chains = setting.chains(length)
        chains = chains.take(in_order(chains, rank) & effective(setting, chains))
        for bound in bounds:
            assert_bounded(chains, outer_of(chains, bound), setting, f"outer_bounds, left={left}")


def check_gains(setting: Setting) -> None:
    sub, ops = setting.sub, ops_of(setting.operators)
    sums = OverlapSums.of(SubproblemCache(setting.problem).overlaps.everywhere, 3)
    for left in (3, 4):
        gain = gains(sub.within.own, sums, setting.v, left, ops)
        chains, shorter = setting.chains(left), most_w(setting, left - 1)
        for k in range(left):
            bounds = shorter + gain[chains.concepts[:, k]]
            assert_bounded(chains, bounds, setting, f"gains of concept {k} of {left}")
