"""The most memory that one method holds for one unit, in a process of its own.

It is the rise of the resident size from after the data is opened to the peak: compiled programs and
what the method makes, but neither the interpreter nor the libraries nor the data.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optexp_jax.bench.contenders import (
    PEER_BEAM,
    PEER_OPTIMAL,
    BenchQuestion,
    contenders,
)
from optexp_jax.bench.data import BenchData, BenchUnit
from optexp_jax.bench.peer import Peer, PeerSearch
from optexp_jax.bench.resident import forget_peak, peak_bytes, resident_bytes
from optexp_jax.bench.turns import OverBudgetError, compiled
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.runs.shared import open_shared_table, share_table

PEER_SEARCH: dict[str, PeerSearch] = {PEER_OPTIMAL: "optimal", PEER_BEAM: "beam"}


@dataclass(frozen=True)
class MemoryTask:
    """What the process is to run: a method on a unit of a table."""

    table: str
    unit: str
    method: str
    length: int
    beam_size: int
    budget: float


class MemoryProbe:
    """Measures methods on the first unit of a dataset; a context manager, for its files."""

    def __init__(self, data: BenchData, question: BenchQuestion):
        self._data, self._question = data, question
        self._folder = tempfile.TemporaryDirectory(prefix="optexp-bench-")
        folder = Path(self._folder.name)
        self._table = share_table(data.table, folder)
        self._unit = folder / "unit.npy"
        counts = data.units[0].counts
        np.save(self._unit, np.stack([counts.active_patches, counts.active_counts]))

    def __enter__(self) -> "MemoryProbe":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def peak(self, method: str) -> int | None:
        """Bytes; None if the method does not end within its budget."""
        if method in PEER_SEARCH:
            return self._peak_of_peer(PEER_SEARCH[method])
        question = self._question
        task = MemoryTask(
            str(self._table),
            str(self._unit),
            method,
            question.length,
            question.beam_size,
            question.budget,
        )
        done = subprocess.run(
            [sys.executable, "-m", "optexp_jax.bench.memory", json.dumps(dataclasses.asdict(task))],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return json.loads(done.stdout)

    def _peak_of_peer(self, search: PeerSearch) -> int | None:
        question, unit = self._question, self._data.units[0]
        bitmaps = [] if unit.bitmap is None else [unit.bitmap]
        settings = {"length": question.length, "beam_size": question.beam_size}
        with Peer(self._data.table, bitmaps, **settings) as peer:
            try:
                return peer.run(0, search, question.budget).peak_bytes
            except OverBudgetError:
                return None


def measure(task: MemoryTask) -> int | None:
    """Run a method in this process, which should do nothing else."""
    question = BenchQuestion(task.length, task.beam_size, task.budget)
    table = open_shared_table(Path(task.table))
    counts = NeuronCounts.from_patches(table, *np.load(task.unit))
    data = BenchData("", "", table, (BenchUnit(counts),))
    forget_peak()
    before = resident_bytes()
    found: dict[str, Callable[[], object]] = {
        each.name: each.on(0)
        for each in contenders(data, question, None)
        if each.name == task.method
    }
    try:
        compiled(found[task.method])
    except OverBudgetError:
        return None
    return max(0, peak_bytes() - before)


if __name__ == "__main__":
    print(json.dumps(measure(MemoryTask(**json.loads(sys.argv[1])))))
