"""Limits of short formulas, against all of them."""

import numpy as np
from helpers.tight_cases import (
    N,
    some_setting,
)
from helpers.tight_checks import short
from helpers.tight_helpers import (
    HERE,
    inputs_of,
    most_w,
)

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import UNION


def test_limits_of_short_formulas(fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    for _ in range(30):
        setting = some_setting(rng, ox.DEFAULT_OPERATORS)
        light = rng.random(N) < 0.6
        limits = short(inputs_of(setting, light), setting, 0.0)
        singles, pairs = setting.chains(1), setting.chains(2)
        some = light[singles.concepts[:, 0]]
        unions = light[pairs.concepts].all(1) & (pairs.ops[:, 0] == UNION)
        rounding = 2.0**-40 * (setting.counts[0] + setting.v * setting.counts[1]).sum()
        for limit, highest in (
            (limits.light, singles.take(some).w(setting.v).max(initial=-np.inf)),
            (limits.light_union, pairs.take(unions).w(setting.v).max(initial=-np.inf)),
            (limits.two, most_w(setting, 2)),
        ):
            np.testing.assert_allclose(float(limit[HERE]), highest, rtol=0, atol=rounding)
