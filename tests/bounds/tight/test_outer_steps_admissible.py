"""Bounds on outermost steps, against all formulas that they must hold for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import SUBSETS, seeds
from helpers.support import examples, thorough
from helpers.tight_cases import (
    DIRECTED,
    Chains,
    N,
    Setting,
    assert_bounded,
    forms_of,
    some_setting,
)
from helpers.tight_helpers import HERE, every_row, gram, most_w, of_pairs, pair_of, regions_of
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.tight.forms import UNION
from optexp_jax.bounds.tight.largest import largest, sum_of_largest
from optexp_jax.bounds.tight.outer import outer_bounds, outer_rows
from optexp_jax.formulas.operators import Operator


def of_outer(setting: Setting, rank: np.ndarray, best: float, left: int) -> np.ndarray:
    """`outer_bounds` of all steps, `[form, c]`."""
    regions, forms = regions_of(setting), forms_of(setting.operators)
    ranks = np.stack([rank[::-1], rank]).astype(np.int32)
    with jax.enable_x64(True):
        known = (
            regions,
            outer_rows(regions, longest=4),
            jnp.asarray(ranks),
            jnp.full(2, -np.inf).at[HERE].set(best),
            jnp.int32(left),
            *every_row(),
        )
        return np.asarray(outer_bounds(*known, forms=forms, steps=forms)).T


def in_order(chains: Chains, rank: np.ndarray) -> np.ndarray:
    """Chains that are searched at their outermost step: of ORs alone, its rank is the highest."""
    pure = (chains.forms == UNION).all(1)
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
        return (chains.forms == UNION).all(1)
    return (chains.forms[:, -1] == UNION) | meets[chains.concepts[:, -1]]


def outer_of(chains: Chains, bounds: np.ndarray) -> np.ndarray:
    return bounds[chains.forms[:, -1], chains.concepts[:, -1]]


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


@given(
    rows=st.integers(1, 4),
    values=st.lists(st.sampled_from([-np.inf, -2.5, 0.0, 1.0, 1.5, 3.0]), min_size=12, max_size=12),
    k=st.integers(1, 3),
)
@examples(20)
def test_largest_is_top_k(rows: int, values: list[float], k: int):
    with jax.enable_x64(True):
        matrix = jnp.asarray(values).reshape(rows, -1)
        expected = np.asarray(jax.lax.top_k(matrix, k)[0])
        np.testing.assert_array_equal(largest(matrix, k), expected)
        np.testing.assert_allclose(sum_of_largest(matrix, jnp.int32(k)), expected.sum(1))
