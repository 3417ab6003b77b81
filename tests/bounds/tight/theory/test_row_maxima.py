"""Maxima over the rows of the Gram matrices, and what they are made of, against plain numpy."""

import jax
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import N, some_setting
from helpers.tight_helpers import HERE, gram, inputs_of
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima, two_step_maxima


@examples(15)
@given(seed=seeds)
def test_maxima_over_every_other_concept(seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, ox.DEFAULT_OPERATORS)
    light = rng.random(N) < 0.6
    inputs = inputs_of(setting, light)
    with jax.enable_x64(True):
        found, more = row_maxima(inputs), two_step_maxima(inputs, row_maxima(inputs))
    i, e = (part.astype(float) for part in gram(setting))
    ve = setting.v * e
    own = i.diagonal() - ve.diagonal()
    rounding = 2.0**-38 * (setting.counts[0] + setting.v * setting.counts[1]).sum()

    def most(values: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Over the other concepts z that are free, for every a."""
        kept = np.zeros((N, N), bool)
        kept[:, setting.free] = True
        kept &= ~np.eye(N, dtype=bool)
        if among is not None:
            kept &= among[None, :]
        return np.where(kept, values, -np.inf).max(1)

    removed = most(ve)
    expected = {
        "removed": removed,
        "gain": most(ve - i),
        "common": most(i),
        "half": most(i - ve / 2),
        "added": most(own[None, :] + ve),
        "union": most(own[:, None] + own[None, :] - (i - ve)),
        "fresh": most(own[None, :] - (i - ve) + removed[None, :]),
    }
    for name, values in expected.items():
        here = np.asarray(getattr(found, name))[HERE]
        np.testing.assert_allclose(here, values, rtol=1e-9, atol=rounding, err_msg=name)
    further = {
        "light_added": most(own[None, :] + ve, light),
        "light_fresh": most(own[None, :] + ve + removed[None, :], light),
        "removed_twice": most(ve + removed[None, :]),
        "gained_twice": most(ve - i + removed[None, :]),
        "kept": most((own + expected["gain"])[None, :] + ve),
    }
    for name, values in further.items():
        here = np.asarray(getattr(more, name))[HERE]
        np.testing.assert_allclose(here, values, rtol=1e-9, atol=rounding, err_msg=name)
    meets = most(i + e) > 0
    np.testing.assert_array_equal(np.asarray(found.meets)[HERE], meets)


@pytest.mark.parametrize("ties", [False, True])
def test_two_largest_overlaps(ties: bool):
    rng = np.random.default_rng(int(ties))
    for _ in range(10):
        setting = some_setting(rng, ox.DEFAULT_OPERATORS)
        with jax.enable_x64(True):
            found = np.asarray(row_maxima(inputs_of(setting)).two_removed)[HERE]
        _, e = gram(setting)
        for a in setting.free.tolist():
            others = [setting.v * e[a, z] for z in setting.free.tolist() if z != a]
            two = sum(sorted(others)[-2:])
            np.testing.assert_allclose(found[a], two if others else -np.inf, rtol=1e-9, atol=1e-9)
