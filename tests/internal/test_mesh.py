"""Batches over several devices, forced on the host: really split, the same results bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
import jax, numpy as np
import optexp_jax as ox
from optexp_jax.internal import mesh
from helpers.run_cases import memory_layer

n_devices = int(sys.argv[1])
assert mesh.batch_devices() == n_devices
spread = mesh.split_batch(np.zeros((64, 3), np.int32))
if n_devices > 1:
    shards = spread.addressable_shards
    assert len({shard.device for shard in shards}) == n_devices
    assert {shard.data.shape for shard in shards} == {(64 // n_devices, 3)}
layer = memory_layer(2)
names = layer.table.names
formulas = [ox.Formula((a, b), (op,)) for a in names for b in names if a != b
            for op in ox.DEFAULT_OPERATORS]
found = []
for counts in layer.counts(range(2)):
    scores = ox.iou_many(layer.table, counts, formulas)
    found.append([scores.intersections.tolist(), scores.extras.tolist()])
    for method in (ox.Optimal(3, top_k=2), ox.Optimal(2, bounds=ox.PaperBounds()), ox.Beam(3)):
        best = ox.explain(layer.table, counts, method)
        found.append([str(best), best.upper_bound.hex(), best.stats.visited, best.stats.estimated])
with jax.default_device(jax.devices()[-1]):
    assert mesh.batch_devices() == 1
print(json.dumps(found))
"""


def results(n_devices: int) -> object:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n_devices)],
        env={**os.environ, "XLA_FLAGS": flags},
        cwd=Path(__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_four_devices_give_what_one_gives():
    assert results(4) == results(1)
