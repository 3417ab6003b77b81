"""Bounds on pairs with two further steps, against all formulas that they must hold for."""

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
    forms_of,
    is_new,
    some_setting,
)
from helpers.tight_helpers import (
    HERE,
    each_subset,
    every_row,
    gram,
    most_w,
    of_chunk,
    pair_of,
    pairs_once,
    regions_of,
)
from hypothesis import example, given

import optexp_jax as ox
from optexp_jax.bounds.tight.expanded import LabelsAt, expand
from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.labels import Labels
from optexp_jax.bounds.tight.last_steps import longer_labels
from optexp_jax.bounds.tight.place import Places, Spot, Step
from optexp_jax.bounds.tight.region import BoundInputs
from optexp_jax.bounds.tight.rows import rows_of
from optexp_jax.bounds.tight.short_formulas import ShortFormulaBounds, short_formulas
from optexp_jax.bounds.tight.two_steps import refined_two_steps, step_rows, two_step_bounds
from optexp_jax.formulas.operators import Operator


def in_light_run(chains: Chains, light: np.ndarray) -> np.ndarray:
    """Whether all concepts of the ORs that a chain of four ends in are light."""
    unions = chains.forms == UNION
    run = [unions[:, k:].all(1) for k in range(3)]  # the step that adds each concept but the first
    members = np.column_stack([run[0], *run])
    return np.all(light[chains.concepts] | ~members, axis=1)


def later(setting: Setting, chains: Chains, light: np.ndarray) -> np.ndarray:
    """Which chains of four concepts the bounds of their first two must hold for."""
    form, a, b = pair_of(chains)
    x, y = chains.concepts[:, 2], chains.concepts[:, 3]
    middle, last = chains.forms[:, 1], chains.forms[:, 2]
    i, e = gram(setting)
    both = i - setting.v * e
    filters = (chains.forms == DIFFERENCE).all(1)
    return (
        pairs_once(chains)
        & (last != INTERSECTION)
        & ((middle != INTERSECTION) | ((last == UNION) & (form != DIFFERENCE)))
        & ((last != UNION) | in_light_run(chains, light))
        & (~filters | (both[a, b] <= np.minimum(both[a, x], both[a, y])))
    )


def short(regions: BoundInputs, setting: Setting, three: float) -> ShortFormulaBounds:
    with jax.enable_x64(True):
        limits = short_formulas(regions, forms=forms_of(setting.operators))
        return replace(limits, three=jnp.full(2, three))


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
    # With few operators no bound hides behind that of another form.
    for v, light in ((0.5, np.ones(N, bool)), (1.0, np.arange(N) % 4 == 0)):
        check_two_steps(Setting(DIRECTED[name], operators, (), v), light)


def check_two_steps(setting: Setting, light: np.ndarray) -> None:
    chains = setting.chains(4)
    must = chains.take(later(setting, chains, light))
    must = must.take(is_new(setting, must))
    regions, forms = regions_of(setting, light), forms_of(setting.operators)
    for three in (np.inf, most_w(setting, 3)):
        limits = short(regions, setting, three)
        with jax.enable_x64(True):
            rows = rows_of(regions)
            more = step_rows(regions, rows)
            known = regions, rows, more, limits
            coarse = np.asarray(two_step_bounds(*known, *every_row(), forms=forms))
        pair = pair_of(must)
        assert_bounded(must, coarse.transpose(1, 0, 2)[pair], setting, "two_step_bounds")
        if len(must):
            refined = of_chunk(partial(refined_two_steps, regions, rows, limits), setting, must)
            assert_bounded(must, refined, setting, "refined_two_steps")


def test_limits_of_short_formulas(fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    for _ in range(30):
        setting = some_setting(rng, ox.DEFAULT_OPERATORS)
        light = rng.random(N) < 0.6
        limits = short(regions_of(setting, light), setting, 0.0)
        singles, pairs = setting.chains(1), setting.chains(2)
        some = light[singles.concepts[:, 0]]
        unions = light[pairs.concepts].all(1) & (pairs.forms[:, 0] == UNION)
        rounding = 2.0**-40 * (setting.counts[0] + setting.v * setting.counts[1]).sum()
        for limit, highest in (
            (limits.light, singles.take(some).w(setting.v).max(initial=-np.inf)),
            (limits.light_union, pairs.take(unions).w(setting.v).max(initial=-np.inf)),
            (limits.two, most_w(setting, 2)),
        ):
            np.testing.assert_allclose(float(limit[HERE]), highest, rtol=0, atol=rounding)


@each_subset
@examples(4)
@given(seed=seeds)
@example(seed=1876630)  # Two filters that are level, but not as compiled code rounds them.
def test_last_steps(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, operators)
    light = rng.random(N) < rng.choice([0.3, 1.0])
    pairs, chains = setting.chains(2), setting.chains(4)
    place, forms = setting.place, forms_of(operators)
    regions = regions_of(setting, light)
    with jax.enable_x64(True):
        rows = rows_of(regions)
    inside, outside = gram(setting)
    own = np.diagonal(inside) - setting.v * np.diagonal(outside)
    some = rng.permutation(len(pairs))[:8]
    labels = Labels(pairs.concepts[some].astype(np.int32), pairs.forms[some].astype(np.int32))
    # Another label at the other place, in the same calls.
    other = Places(setting.problem).at(Spot((Step(DIFFERENCE, N - 1),)))
    label = Labels(np.array([[0, 1]], np.int32), np.array([[UNION]], np.int32))
    elsewhere = LabelsAt(other, label)
    need = np.full(2, -np.inf)
    longer = [
        longer_labels(regions, rows, part, need, forms)
        for part in expand([elsewhere, LabelsAt(place, labels)], forms)
    ]
    for row in some.tolist():
        inner, form, held = pairs.concepts[row], int(pairs.forms[row, 0]), pairs.masks[row]
        i, e = setting.counts
        bounds = np.full((3, N), -np.inf)
        for part in longer:
            mine = (part.labels.inner[:, :2] == inner).all(1) & (part.labels.forms[:, 0] == form)
            mine &= part.place == HERE
            bounds[part.labels.forms[mine, 1], part.labels.inner[mine, 2]] = part.upper[mine]
        columns = setting.case.columns & held
        here = chains.take((chains.concepts[:, :2] == inner).all(1) & (chains.forms[:, 0] == form))
        removed = columns @ i - setting.v * (columns @ e)
        x, y = here.concepts[:, 2], here.concepts[:, 3]
        middle, last = here.forms[:, 1], here.forms[:, 2]
        must = (
            (last != INTERSECTION)
            & ((middle != INTERSECTION) | ((last == UNION) & (form != DIFFERENCE)))
            & ((last != UNION) | in_light_run(here, light))
            & ((middle != DIFFERENCE) | (last != DIFFERENCE) | (removed[x] <= removed[y]))
            & ((middle != UNION) | (last != UNION) | ((own - removed)[x] >= (own - removed)[y]))
        )
        here = here.take(must)
        assert_bounded(
            here, bounds[here.forms[:, 1], here.concepts[:, 2]], setting, "longer_labels"
        )
