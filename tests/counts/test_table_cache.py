"""The cache of what is made once a table: one object for all threads, gone with the table."""

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import optexp_jax as ox
from optexp_jax.bounds.tight.counts.pair_index import pair_index
from optexp_jax.counts import overlaps
from optexp_jax.counts.device_table import device_neuron, device_table
from optexp_jax.counts.table_cache import per_neuron, per_process, per_table
from optexp_jax.methods.beam import beam
from optexp_jax.methods.beam.guides import host_quantities
from optexp_jax.methods.beam.guides.mmesh import concept_shapes
from optexp_jax.methods.beam.guides.pairs import table_pairs

WAIT = 60.0
"""Seconds after which a test that hangs fails."""


class Made:
    """Something that a weak reference can point to."""


def small_table(seed: int = 0) -> ox.ConceptTable:
    rng = np.random.default_rng(seed)
    return ox.ConceptTable.from_masks(rng.random((4, 3, 5, 5)) < 0.4)


def neuron_of(table: ox.ConceptTable) -> ox.NeuronCounts:
    return table.count(np.random.default_rng(1).random((3, 5, 5)) < 0.5)


def test_made_once_a_table_whatever_it_holds():
    calls: list[int] = []

    @per_table
    def made(table: ox.ConceptTable) -> Made | None:
        """What it is for."""
        calls.append(table.n_concepts)
        return Made() if len(calls) == 1 else None

    first, equal = small_table(), small_table()
    assert made(first) is made(first)
    assert made(equal) is None
    assert made(equal) is None, "None is a value, too"
    assert len(calls) == 2, "equal tables are two tables"
    assert (made.__name__, made.__doc__) == ("made", "What it is for.")


def test_further_arguments_tell_values_of_a_table_apart():
    made = per_table(lambda table, size, *, kind="a": [size, kind])
    table = small_table()
    assert made(table, 1) is made(table, 1)
    assert made(table, 1) is not made(table, 2)
    assert made(table, 1, kind="b") == [1, "b"]
    assert made(table, 1) == [1, "a"]


def test_done_once_a_process_when_it_is_done():
    calls: list[tuple[str, bool]] = []

    @per_process
    def work(kind: str, done: bool) -> bool:
        calls.append((kind, done))
        return done

    for kind, done in (("a", False), ("a", True), ("a", True), ("b", True), ("b", False)):
        work(kind, done)
    assert calls == [("a", False), ("a", True), ("b", True)]


def test_entries_die_with_their_table():
    made = per_table(lambda table: Made())
    of_neuron = per_neuron(lambda table, neuron: Made())
    table = small_table()
    neuron = neuron_of(table)
    values = [weakref.ref(made(table)), weakref.ref(of_neuron(table, neuron))]
    gc.collect()
    assert all(value() is not None for value in values)
    del neuron
    gc.collect()
    assert [value() is None for value in values] == [False, True]
    del table
    gc.collect()
    assert values[0]() is None


USES: list[Callable[[ox.ConceptTable], object]] = [
    pair_index,
    device_table,
    lambda table: device_table(table).membership,
    lambda table: device_neuron(table, neuron_of(table)),
    beam._concepts_of,
    concept_shapes,
    table_pairs,
    lambda table: table_pairs(table).device,
    host_quantities._table_sums,
    overlaps._holders,
    lambda table: ox.explain(table, neuron_of(table), ox.Optimal(3)),
    lambda table: ox.explain(table, neuron_of(table), ox.Optimal(3, bounds=ox.PaperBounds())),
    lambda table: ox.explain(table, neuron_of(table), ox.Beam(3)),
    lambda table: ox.explain(table, neuron_of(table), ox.Beam(3, guide=ox.MMESHGuide())),
]


@pytest.mark.parametrize("use", USES)
def test_nothing_that_is_made_of_a_table_keeps_it_alive(use: Callable[[ox.ConceptTable], object]):
    table = small_table()
    use(table)
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None


def test_two_threads_get_one_value():
    calls: list[Made] = []
    begun, both_ask = threading.Event(), threading.Event()

    @per_table
    def made(table: ox.ConceptTable) -> Made:
        begun.set()
        assert both_ask.wait(WAIT)
        calls.append(Made())
        return calls[-1]

    table = small_table()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(made, table)
        assert begun.wait(WAIT)
        second = pool.submit(made, table)
        # The second cannot have its value before the first has made it.
        with pytest.raises(TimeoutError):
            second.result(0.05)
        both_ask.set()
        assert first.result(WAIT) is second.result(WAIT)
    assert len(calls) == 1


def test_many_threads_at_once_get_one_value():
    n = 8
    for _ in range(20):
        calls: list[Made] = []

        def make(table: ox.ConceptTable, calls: list[Made] = calls) -> Made:
            calls.append(Made())
            return calls[-1]

        made, table, barrier = per_table(make), small_table(), threading.Barrier(n)

        def ask(made=made, table=table, barrier=barrier) -> Made:  # type: ignore[no-untyped-def]
            barrier.wait(WAIT)
            return made(table)

        with ThreadPoolExecutor(n) as pool:
            values = [future.result(WAIT) for future in [pool.submit(ask) for _ in range(n)]]
        assert len(calls) == 1
        assert all(value is values[0] for value in values)


def test_other_tables_and_other_functions_do_not_wait():
    begun, go_on = threading.Event(), threading.Event()
    slow_table, other_table = small_table(), small_table(1)

    @per_table
    def slow(table: ox.ConceptTable) -> Made:
        if table is slow_table:
            begun.set()
            assert go_on.wait(WAIT)
        return Made()

    quick = per_table(lambda table: Made())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(slow, slow_table)
        assert begun.wait(WAIT)
        slow(other_table)
        quick(slow_table)
        go_on.set()
        assert isinstance(waiting.result(WAIT), Made)


def test_nothing_is_kept_of_what_raised():
    raised = [KeyboardInterrupt(), MemoryError()]

    @per_table
    def made(table: ox.ConceptTable) -> Made:
        if raised:
            raise raised.pop()
        return Made()

    table = small_table()
    with pytest.raises(MemoryError):
        made(table)
    with pytest.raises(KeyboardInterrupt):
        made(table)
    assert made(table) is made(table)


def test_a_function_that_asks_for_itself_fails_and_does_not_hang():
    @per_table
    def made(table: ox.ConceptTable) -> object:
        return made(table)

    with pytest.raises(RecursionError):
        made(small_table())
