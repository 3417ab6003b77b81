"""`explain_many` on executors: threads and processes, in order, taking no more than it needs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.run_cases import memory_layer

import optexp_jax as ox
from optexp_jax.runs import LocalWorkers
from optexp_jax.runs.many import IN_FLIGHT

METHOD = ox.NetDissect()


def without_times(found: ox.Explanation) -> tuple[object, ...]:
    return found.formula, found.score, found.upper_bound, found.status, found.runners_up


def test_threads_and_processes_give_what_one_gives():
    layer = memory_layer(6)
    wanted = [without_times(ox.explain(layer.table, each, METHOD)) for each in layer.bitmaps]
    with ThreadPoolExecutor(2) as threads, LocalWorkers(1, threads=1) as processes:
        for executor in (threads, processes):
            found = ox.explain_many(layer.table, layer.bitmaps, METHOD, executor=executor)
            assert [without_times(each) for each in found] == wanted


def test_neurons_are_taken_as_they_are_needed():
    layer = memory_layer(12)
    taken: list[int] = []

    def neurons():
        for unit, bitmap in enumerate(layer.bitmaps):
            taken.append(unit)
            yield bitmap

    with ThreadPoolExecutor(2) as executor:
        found = ox.explain_many(layer.table, neurons(), METHOD, executor=executor)
        next(found)
        assert len(taken) <= IN_FLIGHT * 2
        found.close()  # pyright: ignore[reportAttributeAccessIssue]


def test_a_neuron_that_never_fires_is_an_error(tmp_path: Path):
    layer = memory_layer(2)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="never fires"):
        list(ox.explain_many(layer.table, layer.bitmaps & False, METHOD, executor=executor))
