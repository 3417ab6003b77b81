"""Tables of very many concepts: what they would take is said, and time limits hold."""

import time
from dataclasses import replace

import numpy as np
import pytest
from helpers.support import as_users_run_it

import optexp_jax as ox
from optexp_jax.bounds.tight.counts import pair_index
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.bounds.tight.search import root
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.internal import memory
from optexp_jax.internal.memory import TooLargeError, available_memory, require_memory
from optexp_jax.search.problem import Problem


def sparse_table(n_concepts: int, seed: int = 0) -> tuple[ox.ConceptTable, NeuronCounts]:
    """Signatures of one to four random concepts, and a unit that is active at some of them."""
    rng = np.random.default_rng(seed)
    sets = [np.unique(rng.integers(0, n_concepts, k)) for k in rng.integers(1, 5, 3 * n_concepts)]
    sizes = rng.integers(1, 50, len(sets))
    inside = rng.binomial(sizes, 0.5) * (rng.random(len(sets)) < 0.3)
    names = [f"c{k}" for k in range(n_concepts)]
    table = ox.ConceptTable.from_signatures([row.tolist() for row in sets], sizes, names)
    return table, NeuronCounts.from_signatures(table, inside)


def test_what_a_hundred_thousand_concepts_would_take():
    table, neuron = sparse_table(100_000)
    for method in (ox.Optimal(3), ox.Optimal(3, time_limit=1.0)):
        started = time.monotonic()
        with pytest.raises(TooLargeError, match=r"100000 concepts.* at most 46340.*select.*NetDis"):
            ox.explain(table, neuron, method)
        assert time.monotonic() - started < 5
    assert ox.explain(table, neuron, ox.NetDissect()).iou > 0


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch):
    table, neuron = sparse_table(300)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    message = r"300 concepts.* would take about 0\.0 GB of memory, and 0\.0 GB are free\. Choose"
    with pytest.raises(TooLargeError, match=message):
        ox.explain(table, neuron, ox.Optimal(2))
    monkeypatch.setattr(memory, "available_memory", lambda: 10**5)
    with pytest.raises(TooLargeError, match=r"which of 300 concepts meet would take"):
        ox.explain(table, neuron, ox.Optimal(2, bounds=ox.PaperBounds()))


def test_the_memory_that_there_is(tmp_path, monkeypatch: pytest.MonkeyPatch):
    free = available_memory()
    assert 10**8 < free < 2**50
    require_memory(1000, "A thing", "No.")
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500000\n")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert available_memory() == 3_500_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() > 3_000_000
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert available_memory() > 3_000_000


class InTurn(TightBounds):
    """The tight bounds, with pairs scored a part at a time."""

    def tuning(self, problem: Problem) -> Tuning:
        return replace(super().tuning(problem), rows_at_once=16)


def test_an_unfinished_beginning_goes_on(monkeypatch: pytest.MonkeyPatch):
    """Stopped before the pairs are scored, after that, and not at all: the same optimum."""
    table, neuron = sparse_table(220)
    whole = ox.explain(table, neuron, ox.Optimal(3, bounds=InTurn()))
    assert whole.status == "optimal"
    method = ox.Optimal(3, bounds=InTurn(), time_limit=1e-9)
    stopped = ox.explain(table, neuron, method)
    assert (stopped.status, stopped.upper_bound) == ("feasible", 1.0)
    assert stopped.stats.stopped_by is ox.StoppedBy.TIME_LIMIT
    single = ox.explain(table, neuron, ox.NetDissect())
    assert stopped.iou >= single.iou  # what a beam on the host finds
    again = ox.explain(table, neuron, method, resume=stopped.state)
    assert again.status == "feasible"
    found = ox.explain(table, neuron, replace(method, time_limit=None), resume=again.state)
    assert (found.formula, found.status) == (whole.formula, "optimal")
    # The time runs out as soon as the pairs are scored: one node stands for all that is longer.
    monkeypatch.setattr(root, "_highest_in_turn", _and_then_expires())
    stopped = ox.explain(table, neuron, replace(method, time_limit=60.0))
    assert (stopped.status, stopped.upper_bound) == ("feasible", 1.0)
    assert stopped.intersection * single.union >= single.intersection * stopped.union
    monkeypatch.undo()
    found = ox.explain(table, neuron, replace(method, time_limit=None), resume=stopped.state)
    assert (found.formula, found.status) == (whole.formula, "optimal")


def _and_then_expires():
    score = root._highest_in_turn

    def highest(of_rows, n_concepts, clock, at_once):
        found = score(of_rows, n_concepts, clock, at_once)
        clock.time_limit = 0.0
        return found

    return highest


def test_pairs_in_turn_are_those_at_once():
    table, neuron = sparse_table(200, seed=1)
    at_once = ox.explain(table, neuron, ox.Optimal(2, top_k=5))
    in_turn = ox.explain(table, neuron, ox.Optimal(2, bounds=InTurn(), top_k=5))
    assert in_turn.formula == at_once.formula
    assert in_turn.runners_up == at_once.runners_up


def test_numbers_of_pairs_fit():
    assert pair_index.MOST_CONCEPTS**2 < 2**31 <= (pair_index.MOST_CONCEPTS + 1) ** 2


@pytest.mark.slow
def test_a_time_limit_holds_with_ten_thousand_concepts():
    table, neuron = sparse_table(10_000)
    with as_users_run_it():
        started = time.monotonic()
        found = ox.explain(table, neuron, ox.Optimal(3, time_limit=5.0))
        seconds = time.monotonic() - started
    print(f"10 000 concepts, time limit 5 s: back after {seconds:.1f} s")
    assert found.status == "feasible"
    assert found.iou > 0
    assert seconds < 20
