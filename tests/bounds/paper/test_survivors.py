"""Children that reach the threshold: two kernels that agree, and how little is moved."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import BUCKETS, USUAL, Bucket, seeds
from helpers.support import as_users_run_it, examples, thorough
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.paper import chunk_sizes, survivors
from optexp_jax.bounds.paper.path import IMPOSSIBLE
from optexp_jax.bounds.paper.survivors import FIRST_PAGE, FURTHER_PAGE, survivors_of


@contextmanager
def on_the_device() -> Generator[None]:
    """As on an accelerator."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (survivors, chunk_sizes):
            patch.setattr(module, "prefers_host_kernels", lambda: False)
        yield


def random_bounds(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Many equal ones, some impossible."""
    upper = rng.integers(0, rng.choice([2, 10, 1000]), shape) / 7
    return np.where(rng.random(shape) < rng.choice([0.0, 0.5, 0.999]), IMPOSSIBLE, upper)


SHAPES = [(1, 1, 1), (3, 5, 4), (2, 16, 2), (16, 100, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@examples(25)
@given(seed=seeds, share=st.sampled_from([0.0, 0.5, 1.0]), data=st.data())
def test_both_kernels_find_the_same(shape: tuple[int, ...], seed: int, share: float, data):
    rng = np.random.default_rng(seed)
    upper = random_bounds(rng, shape)
    threshold = max(0.0, float(np.quantile(upper, share)))
    n_nodes = data.draw(st.integers(1, shape[0]))
    with jax.enable_x64(True):
        moved = jnp.asarray(upper)
    device = survivors_of(moved, n_nodes, threshold, on_host=False)
    host = survivors_of(moved, n_nodes, threshold, on_host=True)
    expected = np.flatnonzero(upper[:n_nodes].reshape(-1) >= threshold)
    for found in (device, host):
        assert found.position.tolist() == expected.tolist()
        assert found.upper.tolist() == upper.reshape(-1)[expected].tolist()


@pytest.mark.parametrize("count", [0, 1, FIRST_PAGE, FIRST_PAGE + 1, FIRST_PAGE + FURTHER_PAGE, -1])
def test_pages_begin_and_end_where_they_should(count: int):
    shape = (16, 100, 4)
    upper = np.full(np.prod(shape), IMPOSSIBLE)
    where = np.sort(np.random.default_rng(0).permutation(len(upper))[:count])
    upper[where] = np.arange(len(where))
    with jax.enable_x64(True):
        found = survivors_of(jnp.asarray(upper.reshape(shape)), 16, 0.0, on_host=False)
    assert found.position.tolist() == where.tolist()
    assert found.upper.tolist() == list(range(len(where)))


# Every one has programs of its own, for the best formula and for several.
SOME_BUCKETS = BUCKETS if thorough() else (USUAL,)
SEVERAL = [1, 3] if thorough() else [1]


@examples(20, in_thorough=1000)
@given(bucket=st.sampled_from(SOME_BUCKETS), seed=seeds, top_k=st.sampled_from(SEVERAL))
def test_searches_are_the_same(bucket: Bucket, seed: int, top_k: int):
    case = bucket.case(seed)
    method = ox.Optimal(
        bucket.length,
        bounds=bucket.method().bounds,
        operators=bucket.operators,
        batch_size=bucket.batch_size,
        top_k=top_k,
    )
    host = ox.explain(case.table, case.neuron, method)
    with on_the_device():
        device = ox.explain(case.table, case.neuron, method)
    assert (device.formula, device.score) == (host.formula, host.score)
    assert device.runners_up == host.runners_up
    for counter in ("visited", "expanded", "estimated", "updated", "speculative"):
        assert getattr(device.stats, counter) == getattr(host.stats, counter)


@dataclass
class Moved:
    """Bytes that came to the host, turn by turn."""

    turns: list[int] = field(default_factory=list)
    now: int = 0

    def end_turn(self, _: object) -> None:
        self.turns.append(self.now)
        self.now = 0


@contextmanager
def count_moved() -> Generator[Moved]:
    """Counts what arrays bring when they are read, in each of the ways in which they are."""
    moved, reading = Moved(), False

    def counted(read: Any) -> Any:
        def note(what: Any, *args: Any, **more: Any) -> Any:
            nonlocal reading
            if reading:  # one way leads through another
                return read(what, *args, **more)
            reading = True
            try:
                arrays = [part for part in jax.tree.leaves(what) if isinstance(part, jax.Array)]
                moved.now += sum(part.nbytes for part in arrays)
                return read(what, *args, **more)
            finally:
                reading = False

        return note

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((np, "asarray"), (np, "array"), (jax, "device_get")):
            patch.setattr(module, name, counted(getattr(module, name)))
        yield moved


def many_concepts(n_concepts: int) -> tuple[ox.ConceptTable, np.ndarray]:
    """Two layers of labels, some frequent and most rare, and a unit that fires on three of them."""
    rng = np.random.default_rng(0)
    half = n_concepts // 2
    labels = np.stack([rng.zipf(1.3, (20, 6, 6)) % half for _ in range(2)])
    layers = np.kron(labels, np.ones((1, 1, 2, 2), int)) + np.array([0, half])[:, None, None, None]
    layers[1] = np.roll(layers[1], 1, axis=1)
    masks = (layers == np.arange(n_concepts)[:, None, None, None, None]).any(1)
    common = np.argsort(-masks.sum((1, 2, 3)))[[1, 3, 2, 5]]
    unit = masks[common[0]] | masks[common[1]] | (masks[common[2]] & masks[common[3]])
    noise = rng.random((2, *unit.shape))
    return ox.ConceptTable.from_masks(masks), (unit & (noise[0] < 0.8)) | (noise[1] < 0.01)


BUDGET = 64_000


@pytest.mark.parametrize("n_concepts", [300, pytest.param(1156, marks=pytest.mark.slow)])
def test_little_is_moved_in_a_turn(n_concepts: int, monkeypatch: pytest.MonkeyPatch):
    table, unit = many_concepts(n_concepts)
    survived: list[int] = []
    find = survivors.survivors_of

    def note(*args: Any) -> survivors.HostSurvivors:
        found = find(*args)
        survived.append(len(found.position))
        return found

    monkeypatch.setattr("optexp_jax.bounds.paper.estimator.survivors_of", note)
    with as_users_run_it(), on_the_device(), count_moved() as moved:
        method = ox.Optimal(3, bounds=ox.PaperBounds(), callback=moved.end_turn)
        found = ox.explain(table, unit, method)
    moved.end_turn(None)
    turns = moved.turns[1:]  # after the root
    # The bounds of all children of one full batch would take more than the whole search.
    assert found.stats.expanded > 512
    assert sum(turns) < 512 * n_concepts * 4 * 8
    # What survives is moved in pages; all else keeps to the budget, turn by turn.
    pages = [-(-max(count - FIRST_PAGE, 0) // FURTHER_PAGE) for count in survived]
    assert sum(turns) <= BUDGET * len(turns) + 12 * FURTHER_PAGE * sum(pages)
    few = len(turns) - sum(n > 0 for n in pages)
    assert sorted(turns)[few - 1] <= BUDGET
    assert few > len(turns) / 2
