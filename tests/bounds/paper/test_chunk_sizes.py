"""Chunks by bytes: what an expansion takes follows the setting, and results do not depend on it."""

from typing import Any

import numpy as np
import pytest
from helpers.search_cases import DEFAULT, USUAL, Bucket, seeds
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.paper import chunk_sizes, estimator
from optexp_jax.bounds.paper.chunk_sizes import LIVE, ChunkSize, chunk_rows, expansion_chunk
from optexp_jax.bounds.paper.estimator import Estimator
from optexp_jax.bounds.paper.nodes import SAMPLED, PaperNodes
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem

KERNELS = {"host": True, "device": False}
each_kernel = pytest.mark.parametrize("on_host", KERNELS.values(), ids=list(KERNELS))


@each_kernel
@given(
    n_concepts=st.integers(1, 2000),
    n_samples=st.integers(1, 10**5),
    batch_size=st.integers(1, 1024),
    bits=st.integers(0, 40),
    itemsize=st.sampled_from([4, 8]),
)
def test_chunks_fit(on_host, n_concepts, n_samples, batch_size, bits, itemsize):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_sizes, "prefers_host_kernels", lambda: on_host)
        rows = chunk_rows(n_samples, batch_size, 2**bits, itemsize)
        chunk = expansion_chunk(n_concepts, n_samples, batch_size, 2**bits, itemsize)
    assert 1 <= rows <= batch_size
    assert rows == 1 or rows * n_samples * itemsize * LIVE <= 2**bits
    assert 1 <= chunk.nodes <= batch_size
    assert 1 <= chunk.concepts <= n_concepts
    # Several nodes only with all of their children; no less than one child.
    assert chunk.nodes == 1 or chunk.concepts == n_concepts
    size = chunk.nodes * chunk.concepts * n_samples * itemsize * LIVE
    assert chunk.nodes * chunk.concepts == 1 or size <= 2**bits
    if not on_host and chunk.nodes < batch_size:
        # Nor much less than there is room for.
        assert 2 * (chunk.nodes + 1) * (chunk.concepts + 1) * n_samples * itemsize * LIVE > 2**bits


N_CONCEPTS, N_SAMPLES, BATCH = 24, 100, 64


class Compiled(Exception):
    """Ends an expansion before it is computed."""


def temporaries(chunk_bytes: int, on_host: bool) -> tuple[ChunkSize, int]:
    """The chunk of a per-sample expansion, and the bytes that its program takes besides results."""
    rng = np.random.default_rng(0)
    table = ox.ConceptTable.from_masks(rng.random((N_CONCEPTS, N_SAMPLES, 4)) < 0.2)
    neuron = table.count(rng.random((N_SAMPLES, 4)) < 0.3)
    chains = np.full((2, BATCH, 3), -1, np.int32)
    chains[0, :, 0] = 0
    nodes = PaperNodes(*chains, *np.zeros((3, BATCH), np.int32))
    seen: list[tuple[ChunkSize, int]] = []
    program: Any = estimator.expand_nodes

    def compile_only(*args: Any, chunk: ChunkSize, **more: Any) -> None:
        memory = program.lower(*args, chunk=chunk, **more).compile().memory_analysis()
        seen.append((chunk, memory.temp_size_in_bytes - 2 * memory.output_size_in_bytes))
        raise Compiled

    with as_users_run_it(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_sizes, "prefers_host_kernels", lambda: on_host)
        patch.setattr(estimator, "expand_nodes", compile_only)
        problem = Problem(table, neuron, 3, DEFAULT)
        space = Estimator(problem, ox.PublishedVectors(), BATCH, Clock(), chunk_bytes)
        options = {"index_order": True, "final": False, "published_counters": False}
        with pytest.raises(Compiled):
            space.expand(nodes, space.known(nodes), SAMPLED, 0.0, **options)
    return seen[0]


def test_temporaries_follow_the_setting():
    everything = BATCH * N_CONCEPTS * N_SAMPLES * 4
    settings = (2**18, 2**21, 2**30)
    sizes = [temporaries(setting, on_host=False) for setting in settings]
    few, some, whole = sizes
    assert (few[0].nodes, few[0].concepts < N_CONCEPTS) == (1, True)
    assert (1 < some[0].nodes < BATCH, some[0].concepts) == (True, N_CONCEPTS)
    assert whole[0] == ChunkSize(BATCH, N_CONCEPTS)
    assert whole[1] > 10 * everything  # what it took before
    assert few[1] < some[1] < whole[1]
    for setting, (_, taken) in zip(settings, sizes, strict=True):
        assert taken <= setting


def test_a_small_setting_holds_on_a_cpu_too():
    chunk, taken = temporaries(2**18, on_host=True)
    assert chunk.concepts < N_CONCEPTS
    assert taken <= 2**18


# One child at a time, or a few; the others have programs of their own, too.
@pytest.mark.parametrize(
    ("aggregated_first", "chunk_bytes"),
    [
        (True, 1),
        (False, 3000),
        pytest.param(True, 3000, marks=pytest.mark.slow),
        pytest.param(False, 1, marks=pytest.mark.slow),
    ],
)
@examples(3, in_thorough=100)
@given(seed=seeds)
def test_results_do_not_depend_on_it(aggregated_first: bool, chunk_bytes: int, seed: int):
    bucket = Bucket(USUAL.n_concepts, 3, 3, aggregated_first=aggregated_first)
    case = bucket.case(seed)
    usual, small = (
        ox.explain(case.table, case.neuron, method)
        for method in (bucket.method(), bucket.method(chunk_bytes=chunk_bytes))
    )
    assert (small.formula, small.score) == (usual.formula, usual.score)
    for counter in ("visited", "expanded", "estimated", "updated", "speculative"):
        assert getattr(small.stats, counter) == getattr(usual.stats, counter)


@pytest.mark.parametrize("wrong", [0, -1, True])
def test_it_must_be_a_number_of_bytes(wrong: Any):
    with pytest.raises(ValueError, match="chunk_bytes"):
        ox.PaperBounds(chunk_bytes=wrong)
