"""Bounds and results as the library computes them, and the quantities that settle the order."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optexp_jax as ox
from helpers.search_cases import SUBSETS
from helpers.support import as_users_run_it
from helpers.tight_cases import (
    Chains,
    N,
    Setting,
    ops_of,
)
from optexp_jax.bounds.tight.counts.device_labels import LabelCounts
from optexp_jax.bounds.tight.counts.gram import stack_grams
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.bounds.tight.operator_set import DIFFERENCE
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step, SubproblemCache
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.exact_scores import CountedLabels
from optexp_jax.bounds.tight.theory.one_step import highest_pair_bounds, pair_bounds
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima
from optexp_jax.bounds.tight.tuning import PAIR_CHUNK, Tuning
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import OracleResult, best_formula
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case

each_subset = pytest.mark.parametrize(
    "operators", SUBSETS, ids=lambda subset: "+".join(o.name for o in subset)
)


HERE = 1
"""The setting's subproblem among those of `inputs_of`."""


def inputs_of(setting: Setting, light: np.ndarray | None = None) -> BoundInputs:
    """The setting's subproblem, and before it another one that must not make a difference."""
    other = SubproblemCache(setting.problem).at(Prefix((Step(DIFFERENCE, N - 1),)))
    subs = [other, setting.sub]
    light = np.ones(N, bool) if light is None else light
    with jax.enable_x64(True):
        return BoundInputs(
            stack_grams([sub.gram for sub in subs]),
            jnp.asarray(np.stack([sub.allowed for sub in subs])),
            jnp.asarray(np.stack([~light, light])),
            jnp.array([abs(1 - setting.v), setting.v]),
        )


def every_row() -> tuple[jax.Array, jax.Array]:
    """All concepts of the setting's subproblem."""
    return jnp.full(N, HERE, jnp.int32), jnp.arange(N, dtype=jnp.int32)


def of_pairs(setting: Setting) -> np.ndarray:
    """`pair_bounds` of all pairs, `[operator, a, b]`."""
    inputs, ops = inputs_of(setting), ops_of(setting.operators)
    with jax.enable_x64(True):
        rows = row_maxima(inputs)
        found = np.asarray(pair_bounds(inputs, rows, *every_row(), ops=ops))
        highest = np.asarray(highest_pair_bounds(inputs, rows, ops=ops))[HERE]
    np.testing.assert_allclose(highest, found.max(2), rtol=1e-12, atol=1e-12)
    return found.transpose(1, 0, 2)


def of_chunk(bound: Callable[..., jax.Array], setting: Setting, chains: Chains) -> np.ndarray:
    """A bound of given pairs, for the first two concepts of each chain."""
    codes, which = np.unique(
        np.column_stack([chains.ops[:, 0], chains.concepts[:, :2]]), axis=0, return_inverse=True
    )
    padded = np.zeros((PAIR_CHUNK, 4), np.int32)  # the shape that the search uses
    padded[: len(codes), 0] = HERE
    padded[: len(codes), 1:] = codes
    with jax.enable_x64(True):
        columns = (jnp.asarray(column) for column in padded.T)
        return np.asarray(bound(*columns, ops=ops_of(setting.operators)))[which.reshape(-1)]


def gram(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    masks = setting.case.columns.astype(np.int64)
    inside, outside = setting.counts
    return (masks * inside) @ masks.T, (masks * outside) @ masks.T


def shared_by_labels(setting: Setting, labels: Chains) -> tuple[np.ndarray, ...]:
    """What labels have inside the neuron and outside, and what they share with every concept."""
    columns = setting.case.columns.astype(np.int64)
    own = [labels.masks @ part for part in setting.counts]
    return *own, *[(labels.masks * part) @ columns.T for part in setting.counts]


def counted(setting: Setting, labels: Chains) -> CountedLabels:
    """Labels of the setting's subproblem as the bounds take them."""
    with jax.enable_x64(True):
        counts = LabelCounts(*map(jnp.asarray, shared_by_labels(setting, labels)))
        inner = jnp.asarray(labels.concepts, jnp.int32)
        return CountedLabels(jnp.full(len(labels), HERE, jnp.int32), inner, counts)


def pair_of(chains: Chains) -> tuple[np.ndarray, ...]:
    return chains.ops[:, 0], chains.concepts[:, 0], chains.concepts[:, 1]


def pairs_once(chains: Chains) -> np.ndarray:
    """Symmetric pairs in the one order that they are bounded in."""
    op, a, b = pair_of(chains)
    return (op == DIFFERENCE) | (a < b)


def most_w(setting: Setting, length: int) -> float:
    """The highest W of a formula of at most so many concepts: the tightest `best` there can be.

    Rounded up, as bounds are that build on others; less than the search does.
    """
    parts = [setting.chains(k) for k in range(1, length + 1)]
    v, share = setting.v, 2.0**-45
    return max(
        float((part.w(v) + share * (part.i + v * part.e)).max(initial=0.0)) for part in parts
    )


class LargeTables(TightBounds):
    """The tight bounds, as they are made of many concepts, on tables of any size."""

    def tuning(self, problem: Problem) -> Tuning:
        return Tuning.large()


def solve(
    table: ox.ConceptTable, neuron: ox.NeuronCounts, method: ox.Optimal, as_large: bool = False
) -> ox.Explanation:
    """The result of a search over chains; `as_large` has it do what it does with many concepts."""
    bounds = method.bounds
    if isinstance(bounds, TightBounds):
        kind = LargeTables if as_large else TightBounds
        method = replace(method, bounds=kind(beam=bounds.beam, way="chains"))
    with as_users_run_it():
        return ox.explain(table, neuron, method)


def oracle(
    case: Case, length: int, operators: tuple[Operator, ...] = ox.DEFAULT_OPERATORS
) -> OracleResult:
    counts = case.inside.reshape(-1), case.outside.reshape(-1)
    return best_formula(case.columns, *counts, case.names, length, operators)


def assert_optimal(found: ox.Explanation, true: OracleResult, neuron_size: int) -> None:
    assert found.formula == true.formula
    assert found.intersection == true.intersection
    assert found.union == neuron_size + true.extras
    assert found.status == "optimal"
    assert found.upper_bound == found.iou
    assert found.gap == 0
