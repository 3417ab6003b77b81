"""Bounds on pairs and a third concept, against all formulas that they must hold for."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import (
    DIRECTED,
    N,
    Setting,
    assert_bounded,
    by_sets,
    ops_of,
    some_setting,
)
from helpers.tight_checks import check_pairs, of_triples
from helpers.tight_helpers import (
    each_subset,
    every_row,
    inputs_of,
    of_pairs,
)
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION
from optexp_jax.bounds.tight.theory.one_step import pair_bounds
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima, two_step_maxima
from optexp_jax.bounds.tight.theory.short import short_formulas
from optexp_jax.bounds.tight.theory.two_step import two_step_bounds
from optexp_jax.formulas.operators import Operator


@each_subset
@examples(12)
@given(seed=seeds)
def test_pairs(operators: tuple[Operator, ...], seed: int):
    check_pairs(some_setting(np.random.default_rng(seed), operators))


@pytest.mark.parametrize("name", DIRECTED)
@each_subset
def test_pairs_directed(operators: tuple[Operator, ...], name: str):
    # With few operators no bound hides behind that of another operator.
    for v in (0.0, 0.25, 0.5, 0.65, 1.0):
        check_pairs(Setting(DIRECTED[name], operators, (), v))


@each_subset
@examples(8)
@given(seed=seeds)
def test_triples(operators: tuple[Operator, ...], seed: int):
    # These hold for every third concept, in any order, whether the pair is proper or not.
    setting = some_setting(np.random.default_rng(seed), operators)
    chains = setting.chains(3)
    chains = chains.take((chains.ops[:, 0] != DIFFERENCE) | (chains.ops[:, 1] != INTERSECTION))
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
    ops, every = ops_of(setting.operators), every_row()
    with jax.enable_x64(True):
        inputs = replace(inputs_of(setting), allowed=jnp.zeros((2, N), bool))
        rows, limits = row_maxima(inputs), short_formulas(inputs, ops=ops)
        more = two_step_maxima(inputs, rows)
        for found in (
            pair_bounds(inputs, rows, *every, ops=ops),
            two_step_bounds(inputs, rows, more, limits, *every, ops=ops),
        ):
            assert (np.asarray(found) == -np.inf).all()
