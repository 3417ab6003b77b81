"""Scores and bounds of a small table in one program, for one neuron and for several."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import N, any_case
from helpers.tight_helpers import each_subset, solve
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import Overlaps
from optexp_jax.bounds.tight.pair_bounds import pair_bounds
from optexp_jax.bounds.tight.root import FusedRoot, PreparedRoots, fused_alone
from optexp_jax.bounds.tight.rows import rows_of
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.bounds.tight.views import Views
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, OR, Operator
from optexp_jax.search.problem import Problem


@each_subset
@examples(5)
@given(seed=seeds)
def test_same_as_in_programs_of_their_own(operators: tuple[Operator, ...], seed: int):
    # Those are tested to be exact, or admissible; what they may be off by rounding is not.
    case, forms = any_case(np.random.default_rng(seed)), Forms.of(operators)
    overlaps = Overlaps(case.table, case.neuron)
    with jax.enable_x64(True):
        look = fused_alone(Problem(case.table, case.neuron, 3, operators), forms)
        regions, every = look.regions, jnp.arange(N, dtype=jnp.int32)
        rows = rows_of(regions)
        bounds = pair_bounds(regions, rows, jnp.zeros_like(every), every, forms=forms)
    best = max(np.asarray(look.scores.single).max(), np.asarray(look.scores.pairs).max())
    assert look.v == np.nextafter(float(best), 0.0)
    both = jax.tree.leaves((look.rows, look.bounds[0])), jax.tree.leaves((rows, bounds))
    for found, true in zip(*both, strict=True):
        rounding = 1e-13 * case.table.n_locations
        np.testing.assert_allclose(np.asarray(found), np.asarray(true), 1e-12, rounding)
    assert (np.asarray(regions.gram.inside) == np.asarray(overlaps.everywhere.inside)).all()
    assert (np.asarray(regions.gram.outside) == np.asarray(overlaps.everywhere.outside)).all()


@pytest.mark.parametrize(("top_k", "length", "used"), [(1, 3, True), (2, 3, False), (1, 4, False)])
def test_used_where_its_v_is_right(
    top_k: int, length: int, used: bool, monkeypatch: pytest.MonkeyPatch
):
    # With runners-up wanted the threshold is lower. In longer formulas light concepts matter.
    asked: list[Views] = []
    original = Views.of_fused

    def note(*args: Any) -> Views:
        asked.append(original(*args))
        return asked[-1]

    monkeypatch.setattr(Views, "of_fused", note)
    case = any_case(np.random.default_rng(3))
    ox.explain(case.table, case.neuron, ox.Optimal(length, top_k=top_k))
    assert bool(asked) == used


# Several neurons.


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
            assert_same(counted.fused, fused_alone(problem, Forms.of(DEFAULT_OPERATORS)))


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
