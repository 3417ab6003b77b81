"""Bounds on a last step after a third concept, against all formulas that they must hold for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import (
    N,
    Setting,
    assert_bounded,
    by_sets,
    ops_of,
    some_setting,
)
from helpers.tight_checks import last_steps_of
from helpers.tight_helpers import HERE, counted, each_subset, inputs_of
from hypothesis import example, given

from optexp_jax.bounds.tight.operator_set import DIFFERENCE, OPERATORS, UNION
from optexp_jax.bounds.tight.search.label_scores import SubproblemLabels, expand, longer_labels
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step, SubproblemCache
from optexp_jax.bounds.tight.theory.last_step import any_last_step
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima
from optexp_jax.formulas.operators import Operator


@each_subset
@examples(4)
@given(seed=seeds)
@example(seed=1876630)  # Two filters that are level, but not as compiled code rounds them.
def test_last_steps(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, operators)
    light = rng.random(N) < rng.choice([0.3, 1.0])
    pairs = setting.chains(2)
    sub, ops = setting.sub, ops_of(operators)
    inputs = inputs_of(setting, light)
    with jax.enable_x64(True):
        rows = row_maxima(inputs)
    some = rng.permutation(len(pairs))[:8]
    labels = Labels(pairs.concepts[some].astype(np.int32), pairs.ops[some].astype(np.int32))
    # Another label at the other subproblem, in the same calls.
    other = SubproblemCache(setting.problem).at(Prefix((Step(DIFFERENCE, N - 1),)))
    label = Labels(np.array([[0, 1]], np.int32), np.array([[UNION]], np.int32))
    elsewhere = SubproblemLabels(other, label)
    need = np.full(2, -np.inf)
    longer = [
        longer_labels(inputs, rows, part, need, ops)
        for part in expand([elsewhere, SubproblemLabels(sub, labels)], ops)
    ]
    for row in some.tolist():
        inner, op = pairs.concepts[row], int(pairs.ops[row, 0])
        bounds = np.full((3, N), -np.inf)
        for part in longer:
            mine = (part.labels.inner[:, :2] == inner).all(1) & (part.labels.ops[:, 0] == op)
            mine &= part.sub == HERE
            bounds[part.labels.ops[mine, 1], part.labels.inner[mine, 2]] = part.upper[mine]
        here = last_steps_of(setting, pairs, row, light)
        assert_bounded(here, bounds[here.ops[:, 1], here.concepts[:, 2]], setting, "longer_labels")


@pytest.mark.parametrize("last", [UNION, DIFFERENCE])
def test_two_last_steps_of_one_kind_are_what_they_can_be(last: int):
    # Of two level filters, or ORs, that share no extras, each does as much as the other.
    # What both filters take of the neuron is lost once.
    filters = by_sets(N, {"a": (10, 0), "b": (5, 0), "acd": (4, 0), "ac": (0, 20), "ad": (0, 20)})
    sources = by_sets(N, {"a": (10, 0), "b": (5, 1), "c": (3, 0), "d": (3, 0)})
    operator = OPERATORS[last]
    setting = Setting(sources if last == UNION else filters, (operator,), (), 0.5)
    pairs = setting.chains(2)
    pairs = pairs.take(np.flatnonzero((pairs.concepts == [0, 1]).all(1)))
    inputs, labels, ops = inputs_of(setting), counted(setting, pairs), ops_of(setting.operators)
    with jax.enable_x64(True):
        op = jnp.asarray(pairs.ops[:, 0], jnp.int32)
        found = np.asarray(any_last_step(inputs, row_maxima(inputs), labels, op, ops=ops))
    chains = last_steps_of(setting, pairs, 0, np.ones(N, bool))
    after_c = chains.take((chains.concepts[:, 2] == 2) & (chains.ops[:, 1] == last))
    assert found[0, last, 2] == pytest.approx(after_c.w(0.5).max(), abs=1e-10)
