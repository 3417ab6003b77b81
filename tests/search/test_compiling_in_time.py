"""Limits on searches that have to compile first: no program is begun when the time is over."""

from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.explanation import StoppedBy
from optexp_jax.internal import tracing
from optexp_jax.internal.tracing import (
    CompilationDeferredError,
    compiling_while,
    count_traces,
    note_trace,
)
from optexp_jax.search import AbstractSpace, Expansion, Incumbent
from optexp_jax.search.clock import Clock
from optexp_jax.search.host_beam import host_beam
from optexp_jax.search.problem import Problem

XOR = ox.Operator("XOR", p=True, q=True, r=False)


def test_what_is_refused_is_compiled_later():
    @jax.jit
    def program(x: jax.Array) -> jax.Array:
        note_trace("program")
        return 2 * x

    before = count_traces()
    with compiling_while(lambda: False), pytest.raises(CompilationDeferredError):
        program(jnp.ones(3))
    assert count_traces() == before
    with compiling_while(lambda: True):
        program(jnp.ones(3))
    with compiling_while(lambda: False):
        assert program(jnp.ones(3)).sum() == 6  # it is there
    assert count_traces() == before + 1


def unseen_sizes(n_concepts: int, seed: int) -> tuple[ox.ConceptTable, ox.NeuronCounts]:
    rng = np.random.default_rng(seed)
    held = rng.random((40, n_concepts)) < 0.2
    sizes = rng.integers(1, 50, len(held))
    sets = [np.flatnonzero(row).tolist() for row in held]
    names = [f"c{k}" for k in range(n_concepts)]
    table = ox.ConceptTable.from_signatures(sets, sizes, names)
    return table, ox.NeuronCounts.from_signatures(table, rng.binomial(sizes, rng.random(40)))


def check_stopped(
    table: ox.ConceptTable, neuron: ox.NeuronCounts, stopped: ox.Explanation, method: ox.Optimal
) -> None:
    """A search without time to compile has something to say, and comes to its end later."""
    wanted = ox.Exhaustive(method.length).run(table, neuron)
    assert stopped.stats.stopped_by is StoppedBy.TIME_LIMIT
    assert stopped.status == "feasible"
    assert stopped.formula is not None
    assert stopped.iou <= wanted.iou <= stopped.upper_bound
    assert stopped.score == ox.iou(table, neuron, stopped.formula)
    found = ox.explain(table, neuron, method, resume=stopped.state)
    assert found.status == "optimal"
    assert found.formula == wanted.formula
    assert found.score == wanted.score


def test_a_search_without_time_for_its_first_program(monkeypatch: pytest.MonkeyPatch):
    table, neuron = unseen_sizes(97, 0)  # no other test has programs of this size
    begun = count_traces()
    with monkeypatch.context() as patch:
        patch.setattr(Clock, "expired", property(lambda _: True))
        stopped = ox.explain(table, neuron, ox.Optimal(2, time_limit=100.0))
    assert count_traces() == begun
    assert stopped.upper_bound == 1
    check_stopped(table, neuron, stopped, ox.Optimal(2))


class LateProgram(ox.AbstractBounds):
    """Tight bounds that have one more program to compile with the first nodes."""

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: object = None
    ) -> AbstractSpace[Any]:
        space = ox.TightBounds().open(problem, batch_size)
        expand = space.expand

        def compile_first(batch: Any, incumbent: Incumbent) -> Expansion[Any]:
            note_trace("late")
            return expand(batch, incumbent)

        space.expand = compile_first
        return space


def test_a_search_without_time_for_a_later_program(monkeypatch: pytest.MonkeyPatch):
    table, neuron = unseen_sizes(9, 3)
    method = ox.Optimal(4, bounds=LateProgram())
    ox.explain(table, neuron, method)  # all is compiled
    root = ox.explain(table, neuron, ox.Optimal(4, gap=100.0))
    with monkeypatch.context() as patch:
        patch.setattr(tracing, "_may_compile", ContextVar("never", default=lambda: False))
        patch.setattr("optexp_jax.search.driver.compiling_while", lambda _: nullcontext())
        stopped = ox.explain(table, neuron, method)
    assert stopped.upper_bound == root.upper_bound < 1
    check_stopped(table, neuron, stopped, method)


@examples(40)
@given(
    case=cases(),
    length=st.integers(1, 4),
    operators=st.sampled_from([ox.DEFAULT_OPERATORS, (ox.OR,), (XOR, ox.AND)]),
)
def test_formulas_found_without_compiling_are_scored_exactly(
    case: Case, length: int, operators: tuple[ox.Operator, ...]
):
    if not case.neuron.size:
        return
    with as_users_run_it():
        before = tracing._traces.total()
        found = host_beam(Problem(case.table, case.neuron, length, operators))
        assert tracing._traces.total() == before
        single = ox.explain(case.table, case.neuron, ox.NetDissect())
    assert bool(found) == (single.formula is not None)
    if found:
        assert found[0].score.ratio == single.score.ratio
    for candidate in found:
        assert len(candidate.formula) <= length
        assert set(candidate.formula.operators) <= set(operators)
        mask = case.mask(candidate.formula)
        inside, union = (mask & case.bitmap).sum(), (mask | case.bitmap).sum()
        assert (candidate.score.intersection, candidate.score.union) == (inside, union)
