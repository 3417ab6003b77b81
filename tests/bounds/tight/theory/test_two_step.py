"""Bounds on pairs with two further steps, against all formulas that they must hold for."""

import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import (
    DIRECTED,
    N,
    Setting,
    some_setting,
)
from helpers.tight_checks import check_two_steps
from helpers.tight_helpers import (
    each_subset,
)
from hypothesis import given

import optexp_jax as ox
from optexp_jax.formulas.operators import Operator


@each_subset
@examples(8)
@given(seed=seeds)
def test_two_steps(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    check_two_steps(some_setting(rng, operators), rng.random(N) < rng.choice([0.2, 0.7, 1.0]))


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("v", [0.0, 0.25, 0.5, 1.0])
def test_two_steps_directed(name: str, v: float):
    setting = Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v)
    for light in (np.ones(N, bool), np.arange(N) > 0, np.arange(N) % 2 == 0):
        check_two_steps(setting, light)


@pytest.mark.parametrize("name", DIRECTED)
@each_subset
def test_two_steps_of_few_operators(operators: tuple[Operator, ...], name: str):
    # With few operators no bound hides behind that of another operator.
    for v, light in ((0.5, np.ones(N, bool)), (1.0, np.arange(N) % 4 == 0)):
        check_two_steps(Setting(DIRECTED[name], operators, (), v), light)
