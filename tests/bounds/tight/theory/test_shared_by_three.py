"""What a label and two concepts share, and the bounds on last steps that follow from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import Chains, N, Setting, assert_bounded, by_sets, ops_of, some_setting
from helpers.tight_checks import last_steps_of
from helpers.tight_helpers import (
    HERE,
    counted,
    each_subset,
    gram,
    inputs_of,
    shared_by_labels,
)
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.theory.last_step import last_steps_after
from optexp_jax.bounds.tight.theory.shared_by_three import LabelOverlaps, shared_by_three
from optexp_jax.formulas.operators import Operator

A, B, C, D = range(4)


def limits(setting: Setting, pairs: Chains, x: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most W of what each pair shares with x and every y."""
    rows = jnp.full(len(pairs), HERE, jnp.int32), jnp.full(len(pairs), x, jnp.int32)
    inputs, own = inputs_of(setting), shared_by_labels(setting, pairs)
    with jax.enable_x64(True):
        inside, outside = (
            LabelOverlaps(jnp.asarray(own[side][:, None], float), jnp.asarray(own[side + 2], float))
            for side in range(2)
        )
        found = shared_by_three(inside, outside, inputs.rows(*rows), rows[1])
    return np.asarray(found.low), np.asarray(found.high)


def after(setting: Setting, pairs: Chains, step: int, light: np.ndarray) -> np.ndarray:
    """`last_steps_after` of every pair and every x, `[pair, x]`."""
    inputs, labels, n = inputs_of(setting, light), counted(setting, pairs), len(pairs)
    every = np.repeat(np.arange(n, dtype=np.int32), N), np.tile(np.arange(N, dtype=np.int32), n)
    with jax.enable_x64(True):
        known = inputs, labels, jnp.asarray(pairs.ops[:, 0], jnp.int32)
        rows = map(jnp.asarray, every)
        found = last_steps_after(*known, *rows, step=step, ops=ops_of(setting.operators))
    return np.asarray(found).reshape(n, N)


@examples(15)
@given(seed=seeds)
def test_limits_hold_what_three_share(seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, ox.DEFAULT_OPERATORS)
    pairs, columns, (i, e) = setting.chains(2), setting.case.columns, setting.counts
    pairs = pairs.take(rng.permutation(len(pairs))[:4])
    x = int(rng.choice(setting.free))
    low, high = limits(setting, pairs, x)
    held = pairs.masks[:, None] & columns[x] & columns[None]
    exact = held @ i - setting.v * (held @ e)
    # They are not rounded outward: the W that they stand next to makes room for that.
    room = 2.0**-48 * (held @ i + setting.v * (columns @ e))
    assert (low <= exact + room).all()
    assert (exact <= high + room).all()


@each_subset
@examples(3)
@given(seed=seeds)
def test_last_steps_after_each_concept(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, operators)
    light = rng.random(N) < rng.choice([0.3, 1.0])
    pairs = setting.chains(2)
    pairs = pairs.take(np.arange(6) % len(pairs))  # one shape for all
    bounds = [after(setting, pairs, step, light) for step in (UNION, INTERSECTION, DIFFERENCE)]
    for row in range(len(pairs)):
        here = last_steps_of(setting, pairs, row, light)
        found = np.array(bounds)[here.ops[:, 1], row, here.concepts[:, 2]]
        assert_bounded(here, found, setting, "last_steps_after")


# Where one of P, x and y lies in another one, or two of them are apart, nothing is left unknown.
# In each, a and b are the pair, c is x, d is y.
SETTLED = {
    "x in P": {"ac": (3, 2), "a": (5, 1), "b": (4, 6), "acd": (2, 7), "d": (1, 3), "bd": (2, 1)},
    "y in P": {"ad": (3, 2), "a": (5, 1), "b": (4, 6), "acd": (2, 7), "c": (1, 3), "bc": (2, 1)},
    "P in x": {"abc": (9, 2), "ac": (5, 1), "bc": (4, 6), "abcd": (2, 7), "d": (1, 3), "c": (2, 1)},
    "P in y": {"abd": (9, 2), "ad": (5, 1), "bd": (4, 6), "abcd": (2, 7), "c": (1, 3), "d": (2, 1)},
    "x in y": {"acd": (3, 4), "a": (5, 1), "b": (4, 6), "abcd": (2, 7), "d": (1, 3), "cd": (2, 1)},
    "y in x": {"acd": (3, 4), "a": (5, 1), "b": (4, 6), "abcd": (2, 7), "c": (1, 3), "cd": (2, 1)},
    "x and y apart": {"ac": (3, 2), "ab": (5, 1), "b": (4, 6), "ad": (2, 7), "d": (1, 3)},
}


@pytest.mark.parametrize("name", SETTLED)
@pytest.mark.parametrize("v", [0.0, 0.25, 0.5, 1.0])
def test_what_is_settled_is_exact(name: str, v: float):
    setting = Setting(by_sets(N, SETTLED[name]), ox.DEFAULT_OPERATORS, (), v)
    pairs = setting.chains(2)
    pairs = pairs.take(np.flatnonzero((pairs.concepts == [A, B]).all(1)))
    low, high = limits(setting, pairs, C)
    columns, (i, e) = setting.case.columns, setting.counts
    held = pairs.masks & columns[C] & columns[D]
    exact = held @ i - v * (held @ e)
    np.testing.assert_array_equal(low[:, D], exact)
    np.testing.assert_array_equal(high[:, D], exact)
    light = np.ones(N, bool)
    for step in (UNION, INTERSECTION, DIFFERENCE):
        bounds = after(setting, pairs, step, light)[:, C]
        for row in range(len(pairs)):
            here = last_steps_of(setting, pairs, row, light)
            here = here.take((here.concepts[:, 2] == C) & (here.ops[:, 1] == step))
            if len(here):
                assert bounds[row] == pytest.approx(here.w(v).max(), abs=1e-10)


def test_limits_of_both_sides_are_the_tightest():
    # P = a OR b, with 10 active locations of 10 and 8 of 12 extras in c, and 6 and 6 in d.
    rows = {"a": (0, 2), "ac": (4, 4), "bcd": (6, 4), "bd": (0, 2), "cd": (2, 1), "d": (1, 0)}
    setting = Setting(by_sets(N, rows), (ox.OR,), (), 0.5)
    pairs = setting.chains(2)
    pairs = pairs.take(np.flatnonzero((pairs.concepts == [A, B]).all(1)))
    low, high = limits(setting, pairs, C)
    i, e = gram(setting)
    assert (i[C, D], e[C, D]) == (8, 5)
    # P lies in c inside the neuron, so that all of its 6 with d are shared. Of the extras of P,
    # 12, at least 8 + 6 − 12 = 2 are in both; c has 9, so at least 8 + 5 − 9 = 4; at most 5 are.
    assert low[0, D] == 6 - 0.5 * 5
    assert high[0, D] == 6 - 0.5 * 4


@pytest.mark.parametrize("name", ["all is shared", "nothing is shared"])
@pytest.mark.parametrize("operators", [ox.DEFAULT_OPERATORS, (ox.AND_NOT,)], ids=["all", "AND NOT"])
def test_what_is_unknown_is_taken_at_its_best(operators: tuple[Operator, ...], name: str):
    # With few operators no bound hides behind that of another operator.
    # The pairs of sets say the same of more or less than P, c and d share here.
    most = {"a": (9, 3), "acd": (4, 4), "c": (3, 3), "d": (3, 3), "b": (1, 0)}
    least = {"a": (9, 3), "ac": (4, 4), "ad": (4, 4), "cd": (4, 4), "b": (1, 0)}
    rows = most if name == "all is shared" else least
    setting = Setting(by_sets(N, rows), operators, (), 0.5)
    pairs, light = setting.chains(2), np.ones(N, bool)
    pairs = pairs.take(np.flatnonzero((pairs.concepts == [A, B]).all(1)))
    bounds = [after(setting, pairs, step, light) for step in (UNION, INTERSECTION, DIFFERENCE)]
    for row in range(len(pairs)):
        here = last_steps_of(setting, pairs, row, light)
        found = np.array(bounds)[here.ops[:, 1], row, here.concepts[:, 2]]
        assert_bounded(here, found, setting, "last_steps_after")
