"""Layers for tests of runs: small, generated, in memory or on disk."""

import functools
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import optexp_jax as ox
from optexp_jax.activations import ActivationStore
from optexp_jax.bounds.base import Prepared
from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table
from optexp_jax.runs import BitmapUnits, Observer, Run, UnitResult
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.record import Counts
from optexp_jax.runs.store import FILE, RunStore
from optexp_jax.runs.task import UnitProgress
from optexp_jax.search.driver import AbstractSpace
from optexp_jax.search.problem import Problem

NAMES = ("sky", "sea", "boat", "sand", "bird", "rock", "tree")
SHAPE = (10, 6, 6)  # samples, rows, columns


@functools.cache
def small_table() -> ConceptTable:
    rng = np.random.default_rng(7)
    rows, columns = np.ogrid[: SHAPE[1], : SHAPE[2]]
    masks = np.zeros((len(NAMES), *SHAPE), bool)
    for mask in masks:
        for sample in mask:
            if rng.random() < 0.7:
                top, left = rng.integers(0, 5, 2)
                height, width = rng.integers(1, 5, 2)
                sample |= (
                    (rows >= top)
                    & (rows < top + height)
                    & (columns >= left)
                    & (columns < left + width)
                )
    return ConceptTable.from_masks(masks, NAMES)


@functools.cache
def responses(n_units: int, seed: int = 0) -> np.ndarray:
    """Activations `[sample, unit, row, column]`: masks of two or three concepts, and noise."""
    rng = np.random.default_rng(seed)
    table = small_table()
    masks = np.stack([table.mask(name) for name in NAMES])
    found = np.empty((SHAPE[0], n_units, *SHAPE[1:]), np.float32)
    for unit in range(n_units):
        a, b, c = rng.permutation(len(NAMES))[:3]
        held = (masks[a] | masks[b], masks[a] & masks[b], masks[a] & ~masks[b])[unit % 3]
        held = held & ~masks[c] if unit % 2 else held
        found[:, unit] = held + 0.45 * rng.standard_normal(SHAPE)
    return found


def memory_layer(n_units: int, seed: int = 0) -> BitmapUnits:
    return BitmapUnits(small_table(), np.moveaxis(responses(n_units, seed), 1, 0) > 0.5)


def stored_layer(folder: Path, n_units: int, seed: int = 0) -> StoredLayer:
    """The same on disk, thresholded in the same place."""
    small_table().save(folder / "table.zarr")
    ActivationStore.from_array(folder / "layer.zarr", responses(n_units, seed))
    return StoredLayer(str(folder / "table.zarr"), str(folder / "layer.zarr"), "range:0.5:")


def shapes_layer(folder: Path, n_units: int, n_scenes: int = 40) -> StoredLayer:
    """Units over the generated scenes of the `shapes` dataset, with coarse maps."""
    spec = DatasetSpec.parse(f"shapes:n={n_scenes},seed=3")
    table = build_table(spec.open(), folder / "table.zarr", mask_shape=(28, 28), spec=spec)
    rng = np.random.default_rng(n_units)
    common = np.argsort(-table.concept_sizes)[:12]
    masks = np.stack([table.mask(table.names[k]) for k in common])
    cells = masks.reshape(len(common), table.n_samples, 7, 4, 7, 4).mean(axis=(3, 5))
    pairs = rng.integers(0, len(common), (n_units, 2))
    noise = 0.2 * rng.standard_normal((n_units, table.n_samples, 7, 7))
    found = np.maximum(cells[pairs[:, 0]], cells[pairs[:, 1]]) + noise
    ActivationStore.from_array(folder / "layer.zarr", np.moveaxis(found, 0, 1))
    return StoredLayer(str(folder / "table.zarr"), str(folder / "layer.zarr"), "quantile:0.05")


TESTS = Path(__file__).resolve().parents[1]

# A process that was started in the background ignores Ctrl-C, and so do those that it starts.
COMMAND_LINE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from optexp_jax.cli.__main__ import main
sys.exit(main())
"""


def start_explaining(layer: StoredLayer, run: Path, *options: str) -> subprocess.Popen[str]:
    """`optexp explain` in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-c", COMMAND_LINE, "explain"),
            *("--table", layer.table, "--activations", layer.activations, "--range", layer.range),
            *("--run", str(run), *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # For SlowBounds, and for the package where it is not installed.
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
    )


class SlowBounds(ox.AbstractBounds):
    """Bounds with which a unit takes long enough to be interrupted."""

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> AbstractSpace[Any]:
        time.sleep(0.1)
        return ox.TightBounds().open(problem, batch_size)


def rows_without_times(text: str) -> list[dict[str, object]]:
    """The units of a JSON export, without what depends on the process that did them."""
    units = json.loads(text)["units"]
    changing = {"seconds", "search_seconds", "compilations"}
    return [{key: unit[key] for key in unit if key not in changing} for unit in units]


def forged(run: Run, folder: Path, forge: Callable[[RunStore], object]) -> Run:
    """A copy of a run, changed by somebody who knows how it is stored."""
    copy = folder / "copy"
    copy.mkdir()
    with sqlite3.connect(run.path / FILE) as source, sqlite3.connect(copy / FILE) as target:
        source.backup(target)
    source.close()
    target.close()
    store = RunStore.open(copy)
    forge(store)
    store.close()
    return Run(copy)


def damaged(run: Run, folder: Path, change: Callable[[dict[str, Any]], object]) -> Run:
    """A copy of a run with something changed in the result of unit 1, checksums and all."""

    def forge(store: RunStore) -> None:
        results = {result.unit: result for result in store.results()}
        changed = json.loads(json.dumps(results[1].to_json()))
        change(changed["explanation"])
        store._connection.execute("UPDATE units SET state = 'waiting' WHERE unit = 1")
        assert store.commit(UnitResult.from_json(changed))

    return forged(run, folder, forge)


METHOD = ox.Optimal(length=2, top_k=2)


def same(one: Run, other: Run) -> bool:
    pairs = zip(one.results, other.results, strict=True)
    return all(a.same_finding(b) for a, b in pairs)


class Told(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[int] = []
        self.progress: list[UnitProgress] = []
        self.counts: list[Counts] = []

    def begin(self, counts: Counts) -> None:
        self.counts.append(counts)

    def unit_started(self, unit: int) -> None:
        self.started.append(unit)

    def unit_progress(self, progress: UnitProgress) -> None:
        self.progress.append(progress)

    def unit_finished(self, result: UnitResult, counts: Counts) -> None:
        self.finished.append(result.unit)
        self.counts.append(counts)


def finished(folder: Path) -> int:
    try:
        return Run(folder).counts.finished
    except ValueError:  # it has not begun yet
        return 0


def wait_for(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Until something is so, while the process runs; not forever."""
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
