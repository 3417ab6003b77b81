"""What the tight search moves between host and device: all of it counted, and little of it."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.many_concepts import many_concepts, noisy, overlapping
from helpers.search_cases import seeds
from helpers.support import as_users_run_it, examples
from helpers.tight_helpers import solve
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.search.survivors import highest, survivors
from optexp_jax.bounds.tight.tuning import SURVIVORS_AT_ONCE
from optexp_jax.internal.transfers import Transfers, counted_transfers, fetch, fetch_all, put, run
from optexp_jax.search import Progress

A_TURN = 64 * 1024
"""Bytes that may come back in a turn after the root."""


def test_what_is_counted():
    @jax.jit
    def add(x: jax.Array, y: np.ndarray) -> jax.Array:
        return x + y

    with counted_transfers() as moved:
        (one,) = put(np.zeros(4, np.float32))
        assert (moved.up, moved.down) == (16, 0)
        both = run(add, one, np.ones(4, np.float32))
        assert (moved.up, moved.down) == (32, 0)
        with counted_transfers() as inner:
            np.testing.assert_array_equal(fetch(both), np.ones(4))
        assert (inner.up, inner.down) == (0, 16)
        fetch_all(both, one)
        fetch(np.zeros(3))  # It is there.
        assert (moved.up, moved.down) == (32, 32)


def test_arguments_go_up_by_run_alone():
    with jax.transfer_guard("disallow"), counted_transfers():
        with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
            jax.jit(jnp.negative)(np.zeros(3, np.float32))
        put(np.zeros(3, np.float32))


@pytest.mark.parametrize("shape", [(4, 3, 11), (4, 3, 2 * SURVIVORS_AT_ONCE)], ids=str)
@examples(10)
@given(seed=seeds)
def test_survivors_are_the_same_from_a_device(shape: tuple[int, ...], seed: int):
    rng = np.random.default_rng(seed)
    values = rng.choice([-np.inf, -1.0, 0.25, 0.5, 1.0], shape)
    need = rng.choice([-np.inf, 0.25, 0.5, 1.0, np.inf], 4, p=[0.1, 0.3, 0.2, 0.2, 0.2])
    expected = np.nonzero(values >= need[:, None, None])
    with jax.enable_x64(True):
        (there,) = put(values)
        for on_host in (True, False):
            found = survivors(there, need, on_host)
            np.testing.assert_array_equal(found.at, expected)
            np.testing.assert_array_equal(found.value, values[expected])


@examples(10)
@given(seed=seeds)
def test_the_highest_are_the_same_from_a_device(seed: int):
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.0, 0.0, 0.25, 0.5, 0.5, 1.0], (4, 3, 5))
    n_rows, k = int(rng.integers(1, 5)), int(rng.choice([1, 3, 50]))
    flat = values[:n_rows].reshape(-1)
    order = np.argsort(-flat, kind="stable")[:k]
    order = order[flat[order] > 0]
    with jax.enable_x64(True):
        (there,) = put(values)
        for on_host in (True, False):
            found = highest(there, n_rows, k, on_host)
            np.testing.assert_array_equal(found.value, flat[order])
            np.testing.assert_array_equal(np.ravel_multi_index(found.at, values.shape), order)


def by_turns(
    table: ox.ConceptTable, neuron: ox.NeuronCounts, length: int
) -> tuple[Transfers, list[int]]:
    """What a search with the device's kernels moves in all, and what comes back by turn."""
    back: list[int] = []
    with ox.kernels("device"), counted_transfers() as moved:

        def note(_: Progress) -> None:
            back.append(moved.down)

        method = ox.Optimal(length, callback=note)
        # Nothing moves that is not asked for by name. On a CPU this holds for what goes up.
        with as_users_run_it(), jax.transfer_guard("disallow"):
            found = ox.explain(table, neuron, method)
    assert found.status == "optimal"
    return moved, [*np.diff(back).tolist(), moved.down - back[-1]] if back else []


@pytest.mark.parametrize("length", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_little_comes_back(length: int):
    rng = np.random.default_rng(length)
    table = many_concepts(rng, disjoint=False)
    with ox.kernels("device"):  # Compiles, and moves the table.
        solve(table, noisy(rng, table, 1, 0.001), ox.Optimal(length))
    for n_sources, noise in ((3, 0.01), (12, 0.1)):
        moved, turns = by_turns(table, noisy(rng, table, n_sources, noise), length)
        # The Gram matrices alone are a megabyte, and a row of bounds for each label another.
        assert moved.down < 2**19
        assert moved.up < 2**19
        assert max(turns, default=0) <= A_TURN


def test_small_tables_move_nothing_uncounted():
    rng = np.random.default_rng(0)
    table = overlapping(rng, 40, 200)
    for length in (2, 3, 4):
        by_turns(table, noisy(rng, table, 3), length)


def test_nothing_is_fetched_but_by_name():
    # On a CPU a device's arrays are the host's, and no guard tells who looks at them.
    for path in (Path(ox.__file__).parent / "bounds" / "tight").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                assert name not in ("np.asarray", "jax.device_get", "jax.device_put"), path
