"""Where searches begin: alone, or with others prepared together."""

from typing import Any

import jax
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import N, any_case
from helpers.tight_helpers import solve
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.search.batch import SubproblemBatch
from optexp_jax.bounds.tight.search.root import PreparedRoots, fused_alone
from optexp_jax.bounds.tight.theory.fused_root import FusedRoot
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, OR, Operator
from optexp_jax.search.problem import Problem


@pytest.mark.parametrize(("top_k", "length", "used"), [(1, 3, True), (2, 3, False), (1, 4, False)])
def test_used_where_its_v_is_right(
    top_k: int, length: int, used: bool, monkeypatch: pytest.MonkeyPatch
):
    # With runners-up wanted the threshold is lower. In longer formulas light concepts matter.
    asked: list[SubproblemBatch] = []
    original = SubproblemBatch.of_fused

    def note(*args: Any) -> SubproblemBatch:
        asked.append(original(*args))
        return asked[-1]

    monkeypatch.setattr(SubproblemBatch, "of_fused", note)
    case = any_case(np.random.default_rng(3))
    ox.explain(case.table, case.neuron, ox.Optimal(length, top_k=top_k))
    assert bool(asked) == used


def some_units(rng: np.random.Generator, n: int) -> tuple[ox.ConceptTable, list[ox.NeuronCounts]]:
    sets = [np.flatnonzero(column).tolist() for column in rng.random((30, N)) < 0.4]
    table = ox.ConceptTable.from_signatures(sets, rng.integers(1, 50, 30), list("abcdef"))
    draws = rng.integers(0, 2, (n, 30))
    return table, [ox.NeuronCounts.from_signatures(table, active) for active in draws]


def assert_same(one: FusedRoot, other: FusedRoot) -> None:
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(left), np.asarray(right), 1e-12, 1e-9)


def problems_of(
    table: ox.ConceptTable, neurons: list[ox.NeuronCounts], operators: tuple[Operator, ...]
) -> list[Problem]:
    return [Problem(table, neuron, 3, operators) for neuron in neurons]


def test_several_neurons_in_one_call():
    table, neurons = some_units(np.random.default_rng(0), 3)
    problems = problems_of(table, neurons, DEFAULT_OPERATORS)
    prepared = PreparedRoots.of(problems, Tuning.of(N))
    for problem in problems:
        for _ in range(2):  # It is a value: whoever asks again gets the same.
            counted = prepared.counted(problem)
            assert counted is not None
            assert counted.fused is not None
            assert_same(counted.fused, fused_alone(problem, OperatorSet.of(DEFAULT_OPERATORS)))


def test_what_was_prepared_for_others_is_of_no_use():
    table, neurons = some_units(np.random.default_rng(0), 3)
    first, second, third = problems_of(table, neurons, DEFAULT_OPERATORS)
    prepared = PreparedRoots.of([first, second], Tuning.of(N))
    assert prepared.counted(third) is None
    assert prepared.counted(problems_of(table, neurons, (OR,))[0]) is None
    # Searches begin all the same.
    alone = ox.Optimal(3).search(table, neurons[2]).run(ox.Optimal(3).limits)
    found = ox.Optimal(3).search(table, neurons[2], prepared).run(ox.Optimal(3).limits)
    assert (found.formula, found.score) == (alone.formula, alone.score)


@examples(4)
@given(seed=seeds)
def test_explained_together_or_alone(seed: int):
    table, neurons = some_units(np.random.default_rng(seed), 11)
    methods = ox.Optimal(3), ox.Optimal(1), ox.Optimal(3, operators=(OR,), top_k=3)
    for method in methods:
        together = ox.explain_many(table, neurons, method)
        for neuron, found in zip(neurons, together, strict=True):
            alone = solve(table, neuron, method)
            assert (found.formula, found.score) == (alone.formula, alone.score)
            assert (found.status, found.runners_up) == (alone.status, alone.runners_up)
