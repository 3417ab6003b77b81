"""Bounds on outermost steps, against all formulas that they must hold for."""

import numpy as np
import pytest
from helpers.search_cases import SUBSETS, seeds
from helpers.support import examples, thorough
from helpers.tight_cases import (
    DIRECTED,
    N,
    Setting,
    assert_bounded,
    some_setting,
)
from helpers.tight_checks import check_outer, of_outer, outer_of
from helpers.tight_helpers import of_pairs, pair_of
from hypothesis import given

import optexp_jax as ox
from optexp_jax.formulas.operators import Operator

OUTER = [
    pytest.param(subset, left, id=f"{'+'.join(o.name for o in subset)}-{left}")
    for subset in SUBSETS
    for left in (2, 3, 4)
    if thorough() or left == 3 or len(subset) == 3
]


@pytest.mark.parametrize(("operators", "left"), OUTER)
@examples(5)
@given(seed=seeds)
def test_outer_steps(operators: tuple[Operator, ...], left: int, seed: int):
    rng = np.random.default_rng(seed)
    check_outer(some_setting(rng, operators), rng.permutation(N), left)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("left", [2, 3])
def test_outer_steps_directed(name: str, left: int):
    for v in (0.0, 0.25, 0.5, 1.0):
        setting = Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v)
        check_outer(setting, np.arange(N), left)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("operators", SUBSETS, ids=str)
def test_outer_steps_of_few_operators(operators: tuple[Operator, ...], name: str):
    check_outer(Setting(DIRECTED[name], operators, (), 0.5), np.arange(N), 3)


def test_a_source_outside_the_filter_keeps_its_share():
    # Naive class bounds for `(a AND NOT d) OR b` are 17.5 at most, but its W is 20.
    setting = Setting(DIRECTED["outside the filter"], ox.DEFAULT_OPERATORS, (), 0.5)
    chains = setting.chains(3)
    row = [chains.text(k) for k in range(len(chains))].index("a AND NOT d OR b")
    assert chains.w(0.5)[row] == 20
    one = chains.take(np.array([row]))
    assert_bounded(one, of_pairs(setting)[pair_of(one)], setting, "pair_bounds")
    for left in (2, 3, 4):
        bounds = of_outer(setting, np.arange(N), np.inf, left)
        assert_bounded(one, outer_of(one, bounds), setting, "outer_bounds")
