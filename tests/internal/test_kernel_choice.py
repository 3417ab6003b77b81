"""The switch between kernels: scoped, in worker processes and threads, and in the statistics."""

import contextvars
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from helpers.run_cases import memory_layer, same, stored_layer

import optexp_jax as ox
from optexp_jax.internal.kernel_choice import (
    VARIABLE,
    chosen_kernels,
    prefers_host_kernels,
    used_kernels,
)
from optexp_jax.runs import DeviceThreads, LocalWorkers, explain_layer

METHODS = (ox.Optimal(2), ox.Beam(2, size=2))


def test_auto_follows_the_device(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen_kernels() == "auto"
    for backend, on_host in (("cpu", True), ("gpu", False), ("tpu", False)):
        device = SimpleNamespace(platform=backend)
        monkeypatch.setattr(jax, "local_devices", lambda device=device: [device])
        assert prefers_host_kernels() is on_host


def test_scopes_nest_and_end():
    before = chosen_kernels()
    with ox.kernels("device"):
        assert not prefers_host_kernels()
        with ox.kernels("host"):
            assert used_kernels() == "host"
            with pytest.raises(KeyError), ox.kernels("device"):
                raise KeyError
            assert used_kernels() == "host"
        assert used_kernels() == "device"
    assert chosen_kernels() == before


def test_a_scope_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "device")
    assert used_kernels() == "device"
    with ox.kernels("host"):
        assert used_kernels() == "host"
    monkeypatch.setenv(VARIABLE, "")
    assert chosen_kernels() == "auto"


def test_wrong_choices_say_what_to_pass(monkeypatch: pytest.MonkeyPatch):
    message = "must be one of auto, host, device; got 'gpu'"
    with pytest.raises(ValueError, match=message), ox.kernels("gpu"):
        pass
    monkeypatch.setenv(VARIABLE, "gpu")
    with pytest.raises(ValueError, match=f"{VARIABLE} {message}"):
        used_kernels()


@pytest.mark.parametrize("choice", ["host", "device"])
@pytest.mark.parametrize("method", METHODS, ids=["optimal", "beam"])
def test_statistics_tell_which_were_used(choice: str, method: ox.AbstractMethod):
    rng = np.random.default_rng(0)
    table = ox.ConceptTable.from_masks(rng.random((4, 2, 9)) < 0.5)
    with ox.kernels(choice):
        found = ox.explain(table, rng.random((2, 9)) < 0.5, method)
    assert found.stats.kernels == choice


@pytest.mark.parametrize("choice", ["host", "device"])
def test_threads_use_what_was_chosen_where_they_got_their_work(choice: str):
    layer = memory_layer(2)
    with ThreadPoolExecutor(2) as executor, ox.kernels(choice):
        # Whatever the threads are started in, the work says how it is done.
        contextvars.Context().run(executor.submit, chosen_kernels).result()
        many = ox.explain_many(
            layer.table, layer.counts(range(2)), ox.Optimal(2), executor=executor
        )
        assert [found.stats.kernels for found in many] == [choice] * 2


def test_runs_use_what_was_chosen_where_they_were_started(tmp_path: Path):
    layer = stored_layer(tmp_path, 2)
    runs = []
    for choice in ("host", "device"):
        with ox.kernels(choice), LocalWorkers(1) as processes, DeviceThreads() as threads:
            for k, executor in enumerate((None, processes, threads)):
                folder = tmp_path / f"{choice}{k}"
                run = explain_layer(folder, layer, ox.Optimal(2), executor=executor)
                for result in run.results:
                    assert result.explanation is not None
                    assert result.explanation.stats.kernels == choice
                runs.append(run)
    assert all(same(runs[0], other) for other in runs[1:])
