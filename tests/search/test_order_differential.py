"""Orders of nodes: the same result and the same proof in every one, against the oracle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.many_concepts import noisy, overlapping
from helpers.search_cases import seeds
from helpers.support import as_users_run_it, examples
from helpers.tight_cases import N, any_case
from hypothesis import given
from jaxtyping import Float64, Int64

import optexp_jax as ox
from optexp_jax.cli.values import parse_order
from optexp_jax.runs.settings import describe, rebuild
from optexp_jax.search.frontier import Frontier, Queued


class LongestFirst(ox.AbstractOrder):
    """An order of a user's own: nodes of longer formulas first, bounds in an odd order."""

    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        return np.round(upper * 1000) % 7 - shortest


ORDERS = (ox.BestFirst(), ox.DepthFirst(), ox.BreadthFirst(), LongestFirst())
each_order = pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)


@each_order
@pytest.mark.parametrize("length", [3, 4])
@examples(4)
@given(seed=seeds)
def test_same_result_as_by_enumeration(order: ox.AbstractOrder, length: int, seed: int):
    case = any_case(np.random.default_rng(seed), N)
    method = ox.Optimal(length, order=order, batch_size=2)
    with as_users_run_it():
        found = ox.explain(case.table, case.neuron, method)
        true = ox.explain(case.table, case.neuron, ox.Exhaustive(length))
    assert (found.formula, found.score, found.status) == (true.formula, true.score, "optimal")


@each_order
@examples(2)
@given(seed=seeds)
def test_published_bounds_in_every_order(order: ox.AbstractOrder, seed: int):
    case = any_case(np.random.default_rng(seed), N)
    bounds = ox.PaperBounds()
    with as_users_run_it():
        found = ox.explain(case.table, case.neuron, ox.Optimal(3, bounds=bounds, order=order))
        true = ox.explain(case.table, case.neuron, ox.Exhaustive(3))
    assert (found.formula, found.score, found.status) == (true.formula, true.score, "optimal")


@each_order
def test_runners_up_in_every_order(order: ox.AbstractOrder):
    rng = np.random.default_rng(4)
    table = overlapping(rng, 34, 60)
    neuron = noisy(rng, table, 3)
    with as_users_run_it():
        best = ox.explain(table, neuron, ox.Optimal(3, top_k=5))
        found = ox.explain(table, neuron, ox.Optimal(3, top_k=5, order=order, batch_size=3))
    assert [found.formula, *(each.formula for each in found.runners_up)] == [
        best.formula,
        *(each.formula for each in best.runners_up),
    ]


@each_order
def test_a_stopped_search_goes_on_in_its_order(order: ox.AbstractOrder):
    rng = np.random.default_rng(2)
    table = overlapping(rng, 34, 120)
    neuron = noisy(rng, table, 5)
    bounds = ox.TightBounds(beam=0)
    method = ox.Optimal(4, bounds=bounds, order=order, batch_size=1)
    with as_users_run_it():
        whole = ox.explain(table, neuron, method)
        found = ox.explain(table, neuron, replace(method, max_nodes=1))
        assert found.status == "feasible", "it stops after the root"
        assert found.upper_bound >= whole.iou
        other = ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]
        with pytest.raises(ValueError, match="another order"):
            ox.explain(table, neuron, replace(method, order=other), resume=found.state)
        found = ox.explain(table, neuron, method, resume=found.state)
    assert (found.formula, found.score, found.status) == (whole.formula, whole.score, "optimal")


@each_order
def test_the_upper_bound_is_that_of_all_that_waits(order: ox.AbstractOrder):
    rng = np.random.default_rng(0)
    frontier: Frontier[Any] = Frontier(order)
    waiting: list[float] = []
    for turn in range(60):
        upper = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], int(rng.integers(0, 7)))
        nodes = np.arange(len(upper)) + 100 * turn
        lengths = rng.integers(1, 4, len(upper))
        frontier.push(Queued(nodes, upper, np.zeros(len(upper), np.int64)), lengths)
        waiting += upper.tolist()
        if waiting and turn % 3:
            for value in frontier.pop(int(rng.integers(1, 5))).upper.tolist():
                waiting.remove(value)
        if turn % 20 == 19:
            frontier.prune(0.3)
            waiting = [value for value in waiting if value >= 0.3]
        assert frontier.upper == max(waiting, default=-np.inf)
        assert len(frontier) == len(waiting)


def ids_of(order: ox.AbstractOrder) -> list[int]:
    """The order in which five nodes of two turns come out, one at a time."""
    frontier: Frontier[Any] = Frontier(order)
    none = np.zeros(3, np.int64)
    frontier.push(Queued(np.array([0, 1, 2]), np.array([0.5, 0.9, 0.1]), none))
    frontier.push(Queued(np.array([3, 4]), np.array([0.6, 0.7]), none[:2]))
    return [int(frontier.pop(1).nodes[0]) for _ in range(5)]


def test_what_comes_first():
    assert ids_of(ox.BestFirst()) == [1, 4, 3, 0, 2]
    assert ids_of(ox.DepthFirst()) == [4, 3, 1, 0, 2]
    assert ids_of(ox.BreadthFirst()) == [1, 0, 2, 4, 3]


class NoKeys(LongestFirst):
    """An order that forgets a node."""

    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        return np.zeros(len(upper) - 1)


def test_orders_that_are_none():
    with (
        as_users_run_it(),
        pytest.raises(TypeError, match="order must be an order such as BestFirst"),
    ):
        ox.Optimal(order="depth-first")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="keys of NoKeys must be a number for each of 5 nodes"):
        Frontier(NoKeys()).push(Queued(np.arange(5), np.ones(5), np.zeros(5, np.int64)))


def test_orders_of_the_command_line_and_of_runs():
    assert parse_order("depth-first") == ox.DepthFirst()
    with pytest.raises(ValueError, match=r"not best-first, depth-first, breadth-first or module"):
        parse_order("depth")
    method = ox.Optimal(3, order=ox.BreadthFirst())
    assert rebuild(describe(method)) == method
