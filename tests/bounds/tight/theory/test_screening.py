"""Concepts that are left out at a subproblem, against all formulas that have them."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import DIRECTED, N, Setting, is_new, some_setting
from helpers.tight_checks import check_gains
from helpers.tight_helpers import each_subset, most_w
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.counts.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.operator_set import OPERATORS
from optexp_jax.bounds.tight.search.subproblem import Prefix, SubproblemCache
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.problem import Problem


@each_subset
@examples(8)
@given(seed=seeds)
def test_gains(operators: tuple[Operator, ...], seed: int):
    check_gains(some_setting(np.random.default_rng(seed), operators))


@pytest.mark.parametrize("name", DIRECTED)
def test_gains_directed(name: str):
    for v in (0.0, 0.25, 0.5, 1.0):
        check_gains(Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v))


@each_subset
@examples(8)
@given(seed=seeds)
def test_no_formula_of_interest_is_left_out(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, operators)
    left = N - len(setting.steps)
    chains = setting.chains(left)
    captured, size = setting.sub.captured(setting.v), setting.case.neuron.size
    # Formulas inside of the steps with one concept less; not all that there are, but those needed.
    shorter = captured + most_w(setting, left - 1)
    tuning = replace(Tuning.large(), few_concepts=1 / 8)
    sub = SubproblemCache(setting.problem, tuning).at(Prefix(setting.steps, shorter), setting.v)
    out = chains.take(np.flatnonzero(~sub.of_use[chains.concepts].all(1)))
    out = out.take(is_new(setting, out))
    total = captured + out.w(setting.v)
    assert (total < setting.v * size).all()
    assert sub.allowed.sum() == sub.of_use.sum()


def test_what_cannot_add_enough_is_left_out():
    # `a OR b` has W = 20 at v = 0.5, and c can add 1 at most.
    rows = {"a": (10, 0), "b": (10, 0), "c": (1, 0), "cd": (0, 9), "e": (0, 4), "f": (30, 60)}
    table = ox.ConceptTable.from_signatures(
        [["abcdef".index(letter) for letter in name] for name in rows],
        [sum(counts) for counts in rows.values()],
        list("abcdef"),
    )
    neuron = ox.NeuronCounts.from_signatures(table, [counts[0] for counts in rows.values()])
    problem = Problem(table, neuron, 3, OPERATORS)
    tuning = replace(Tuning.large(), few_concepts=0.34)
    sub = SubproblemCache(problem, tuning).at(Prefix((), 0.5 * neuron.size - 5), 0.5)
    # f has extras of its own that nothing covers; d and e could only take away what c and e have.
    assert sub.concepts.ids.tolist() == [0, 1]
    assert sub.concepts.size == 2


@pytest.mark.parametrize("few", [0.0, 0.5])
def test_concepts_numbered_anew(few: float):
    kept = np.zeros(10, bool)
    kept[[1, 4, 7, 8]] = True
    found = LocalConcepts.of(kept, few)
    if not few:
        assert found.is_everything
        np.testing.assert_array_equal(found.pick(np.arange(10)), np.arange(10))
        return
    assert found.size == 5
    assert found.ids.tolist() == [1, 4, 7, 8]
    assert found.number.tolist() == [5, 0, 5, 5, 1, 5, 5, 2, 3, 5]
    np.testing.assert_array_equal(found.pick(np.arange(10)[None]), [[1, 4, 7, 8, 0]])
    assert LocalConcepts.of(np.arange(10) < 6, few).is_everything
    assert LocalConcepts.of(np.zeros(10, bool), few).size == 5
