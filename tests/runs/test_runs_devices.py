"""Several devices in one process, forced on the host: the same results bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.run_cases import same, stored_layer

import optexp_jax as ox
from optexp_jax.runs import DeviceThreads, Run, explain_layer

METHODS = {"optimal": ox.Optimal(length=2, top_k=2), "beam": ox.Beam(length=2, size=3)}
SCRIPT = """
import json, sys, threading
import jax, jax.numpy as jnp
from optexp_jax.runs import DeviceThreads, explain_layer
from optexp_jax.runs.layers import StoredLayer
from runs.test_runs_devices import METHODS

n_devices, layer, folder = json.loads(sys.argv[1])
assert len(jax.devices()) == n_devices
layer = StoredLayer(*layer)
with DeviceThreads() as executor:
    barrier = threading.Barrier(n_devices)

    def where():
        barrier.wait(60)
        return [str(device) for device in jnp.ones(3).devices()]

    used = [future.result() for future in [executor.submit(where) for _ in range(n_devices)]]
    assert sorted(used) == [[str(device)] for device in jax.devices()], used
    for name in sys.argv[2:]:
        explain_layer(f"{folder}/{name}", layer, METHODS[name], executor=executor)
# One search at a time, with all devices there.
explain_layer(f"{folder}/plain", layer, METHODS["optimal"])
"""


def check_devices(folder: Path, n_devices: int, n_units: int, *names: str) -> None:
    layer = stored_layer(folder, n_units)
    settings = [n_devices, [layer.table, layer.activations, layer.range], str(folder)]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(settings), *names],
        env={**os.environ, "XLA_FLAGS": flags},
        cwd=Path(__file__).parents[1],
        check=True,
    )
    for name in names:
        whole = explain_layer(folder / f"{name}-here", layer, METHODS[name])
        assert same(Run(folder / name), whole)
    assert same(Run(folder / "plain"), Run(folder / "optimal-here"))


def test_two_devices_find_what_one_finds(tmp_path: Path):
    check_devices(tmp_path, 2, 4, "optimal")


@pytest.mark.slow
def test_four_devices_find_what_one_finds(tmp_path: Path):
    check_devices(tmp_path, 4, 12, *METHODS)


def test_there_must_be_a_device():
    with pytest.raises(ValueError, match="at least one device"):
        DeviceThreads([])
