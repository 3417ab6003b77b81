"""Corrected p-values: by hand, by plain loops, and how often noise passes them."""

import numpy as np
import pytest
from helpers.support import thorough
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.validation import family_p_values, holm, sequential_p_value


def plain_step_down(observed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    values = np.vstack([observed, draws])
    z = np.zeros_like(values)
    for unit in range(values.shape[1]):
        column = values[:, unit]
        if column.std() > 0:
            z[:, unit] = (column - column.mean()) / column.std()
    ranked = sorted(range(len(observed)), key=lambda unit: -z[0, unit])
    adjusted, lowest = np.empty(len(observed)), 0.0
    for rank, unit in enumerate(ranked):
        reached = sum(max(row[u] for u in ranked[rank:]) >= z[0, unit] for row in z[1:])
        lowest = max(lowest, (1 + reached) / (1 + len(draws)))
        adjusted[unit] = lowest
    return adjusted


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 12))
def test_equals_plain_loops(seed, n_units, n_draws):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (n_draws + 1, n_units)) / 8  # ties, and units that never vary
    found = family_p_values(values[0], values[1:])
    assert found.family_wise == pytest.approx(plain_step_down(values[0], values[1:]))
    assert (found.plain <= 1).all()
    assert (found.false_discovery >= found.plain - 1e-12).all()


def test_by_hand():
    """Two units of other sizes: the second alone is beyond its draws."""
    draws = np.array([[0.1, 0.01], [0.3, 0.02], [0.2, 0.01], [0.4, 0.02]])
    found = family_p_values([0.2, 0.09], draws)
    assert found.plain.tolist() == [4 / 5, 1 / 5]
    assert found.family_wise.tolist() == [4 / 5, 1 / 5]
    assert found.above_chance(0.2).tolist() == [False, True]


def correlated(rng: np.random.Generator, n_units: int, n_draws: int) -> np.ndarray:
    """IoUs of noise: units that share half of what moves them, of very different sizes."""
    shared = rng.normal(size=(n_draws + 1, 1))
    own = rng.normal(size=(n_draws + 1, n_units))
    return np.exp(0.5 * shared + own) * np.geomspace(1e-4, 1e-1, n_units)


def test_noise_passes_no_more_often_than_it_may():
    """Exchangeable rows: the share of families with any rejection at 0.05 stays at 0.05."""
    families = 1000 if thorough() else 200
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(families):
        values = correlated(rng, 60, 99)
        wrong += bool(family_p_values(values[0], values[1:]).above_chance().any())
    assert wrong / families <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / families)
    if thorough():
        assert wrong / families <= 0.065


def test_planted_units_are_found():
    values = correlated(np.random.default_rng(5), 60, 99)
    values[0, :3] *= 10_000
    found = family_p_values(values[0], values[1:]).above_chance()
    assert found[:3].all()


def test_holm_by_hand():
    assert holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])


def test_sequential_p_values():
    assert sequential_p_value(0, 99, 10) == 1 / 100
    assert sequential_p_value(10, 40, 10) == 10 / 40
    assert sequential_p_value(3, 99, 10) == 4 / 100
    for wrong in ((11, 40, 10), (5, 3, 10), (-1, 3, 10), (0, 3, 0)):
        with pytest.raises(ValueError, match="cannot be"):
            sequential_p_value(*wrong)


def test_draws_must_fit_the_units():
    for draws in (np.zeros((3, 4)), np.zeros((0, 2)), np.zeros(2)):
        with pytest.raises(ValueError, match="draw, unit"):
            family_p_values([0.1, 0.2], draws)
    with pytest.raises(ValueError, match="finite"):
        family_p_values([0.1, np.nan], np.zeros((3, 2)))
