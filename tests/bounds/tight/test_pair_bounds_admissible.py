"""Bounds on pairs and a third concept, against all formulas that they must hold for."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import (
    DIRECTED,
    Chains,
    N,
    Setting,
    assert_bounded,
    by_sets,
    forms_of,
    groups,
    is_new,
    some_setting,
)
from helpers.tight_helpers import (
    each_subset,
    every_row,
    gram,
    of_chunk,
    of_pairs,
    pair_of,
    pairs_once,
    regions_of,
)
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.pair_bounds import pair_bounds
from optexp_jax.bounds.tight.rows import rows_of
from optexp_jax.bounds.tight.short_formulas import short_formulas
from optexp_jax.bounds.tight.triple_bounds import triple_bounds
from optexp_jax.bounds.tight.two_steps import step_rows, two_step_bounds
from optexp_jax.formulas.operators import Operator


def of_triples(setting: Setting, chains: Chains) -> np.ndarray:
    """`triple_bounds` of the first two concepts of each chain."""
    return of_chunk(partial(triple_bounds, regions_of(setting)), setting, chains)


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
    form, a, b = pair_of(chains)
    x, last = chains.concepts[:, 2], chains.forms[:, 1]
    share = shares(setting)
    i, e = gram(setting)
    both = i - setting.v * e
    smallest = share[x] <= np.minimum(share[a], share[b])
    return (
        pairs_once(chains)
        & (smallest | (form != UNION) | (last != UNION))
        & ((both[a, b] <= both[a, x]) | (form != DIFFERENCE) | (last != DIFFERENCE))
        & ((form != DIFFERENCE) | (last != INTERSECTION))
    )


def best_of_groups(number: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """For each chain the highest bound over all ways to write it."""
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, bounds)
    return highest[number]


@each_subset
@examples(12)
@given(seed=seeds)
def test_pairs(operators: tuple[Operator, ...], seed: int):
    check_pairs(some_setting(np.random.default_rng(seed), operators))


@pytest.mark.parametrize("name", DIRECTED)
@each_subset
def test_pairs_directed(operators: tuple[Operator, ...], name: str):
    # With few operators no bound hides behind that of another form.
    for v in (0.0, 0.25, 0.5, 0.65, 1.0):
        check_pairs(Setting(DIRECTED[name], operators, (), v))


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


@each_subset
@examples(8)
@given(seed=seeds)
def test_triples(operators: tuple[Operator, ...], seed: int):
    # These hold for every third concept, in any order, whether the pair is proper or not.
    setting = some_setting(np.random.default_rng(seed), operators)
    chains = setting.chains(3)
    chains = chains.take((chains.forms[:, 0] != DIFFERENCE) | (chains.forms[:, 1] != INTERSECTION))
    assert_bounded(chains, of_triples(setting, chains), setting, "triple_bounds")


def test_pair_bounds_do_bite():
    # With three concepts that overlap in pairs at most, the bounds of triples are what they attain.
    case = by_sets(N, {"a": (9, 0), "ab": (0, 4), "b": (6, 0), "c": (5, 1)})
    setting = Setting(case, ox.DEFAULT_OPERATORS, (), 0.5)
    chains = setting.chains(3)
    exact = chains.w(0.5).max()
    assert exact == 9 + 6 + 5 - 0.5 * 5
    assert of_triples(setting, chains).max() == pytest.approx(exact, rel=1e-12)
    assert of_pairs(setting).max() < 1.5 * exact


def test_pairs_without_a_third_concept():
    setting = Setting(DIRECTED["nested"], ox.DEFAULT_OPERATORS, (), 0.5)
    forms, every = forms_of(setting.operators), every_row()
    with jax.enable_x64(True):
        regions = replace(regions_of(setting), allowed=jnp.zeros((2, N), bool))
        rows, limits = rows_of(regions), short_formulas(regions, forms=forms)
        more = step_rows(regions, rows)
        for found in (
            pair_bounds(regions, rows, *every, forms=forms),
            two_step_bounds(regions, rows, more, limits, *every, forms=forms),
        ):
            assert (np.asarray(found) == -np.inf).all()
