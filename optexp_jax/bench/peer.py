"""The released code of earlier work, `compositional-explanations`, run to be compared with.

It runs in a process of its own, which is sent one search at a time and is killed when a search
takes longer than its budget.
"""

import json
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from jaxtyping import Bool

from optexp_jax.bench.machine import installed_version
from optexp_jax.bench.peer_server import PeerFormula
from optexp_jax.bench.turns import OverBudgetError
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.internal.memory import available_memory

PACKAGE = "compositional-explanations"
NOT_INSTALLED = f'{PACKAGE} is not installed (pip install "optexp-jax[bench]"); ours runs alone.'
NOT_RUN = "not run"
"""How the reason begins of a search that was never begun: nothing is known about its time."""
COPIES = 4
"""How often the masks are held at once: here, in the peer, and twice while they are passed on."""

PeerSearch = Literal["optimal", "beam"]


def peer_version() -> str | None:
    """The installed version, or None."""
    return installed_version(PACKAGE)


@dataclass(frozen=True)
class PeerRun:
    """One search of the peer."""

    seconds: float
    formula: PeerFormula | None
    peak_bytes: int
    """The most memory that its process held so far, beside the masks."""


class Peer:
    """A process that runs the peer's searches on one dataset; a context manager."""

    def __init__(
        self,
        table: ConceptTable,
        bitmaps: Sequence[Bool[np.ndarray, "samples *location"]],
        *,
        length: int,
        beam_size: int,
        threads: int = 1,
    ):
        self._table, self._bitmaps = table, tuple(bitmaps)
        self._folder = tempfile.TemporaryDirectory(prefix="optexp-bench-")
        self._settings = {"length": length, "beam_size": beam_size, "threads": threads}
        self._process: subprocess.Popen[str] | None = None
        self._gave_up: set[PeerSearch] = set()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, unit: int, search: PeerSearch, budget: float) -> PeerRun:
        """Run a search; OverBudgetError when it does not end within the budget in seconds.

        A search that did not end on one unit is not tried on another.
        """
        if search in self._gave_up:
            raise OverBudgetError("not tried again after a unit that it did not end on")
        process = self._process or self._start()
        reply = _ask(process, {"unit": unit, "search": search}, budget)
        if reply is None:
            self._stop()
            self._gave_up.add(search)
            raise OverBudgetError(f"stopped after {budget:g} s")
        return PeerRun(**reply)

    def _start(self) -> subprocess.Popen[str]:
        self._write_data()
        command = [sys.executable, "-m", "optexp_jax.bench.peer_server"]
        self._process = subprocess.Popen(
            [*command, self._folder.name, json.dumps(self._settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if _ask(self._process, {}, None) is None:
            raise RuntimeError("the peer's process ended before it was ready")
        return self._process

    def _write_data(self) -> None:
        path = Path(self._folder.name) / "data.npz"
        if path.exists():
            return
        table = self._table
        needed = table.n_concepts * table.n_locations
        if not self._bitmaps or COPIES * needed > available_memory():
            raise OverBudgetError(f"{NOT_RUN}: its masks would be {needed / 1e9:,.1f} GB")
        np.savez(
            path,
            masks=np.stack([table.mask(name) for name in table.names]),
            bitmaps=np.stack(self._bitmaps),
            disjoint=table.disjoint,
        )

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _ask(
    process: subprocess.Popen[str], question: dict[str, Any], budget: float | None
) -> dict[str, Any] | None:
    """The process's answer, or None when none comes in time."""
    stdin, stdout = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
    stdin.write(json.dumps(question) + "\n")
    stdin.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        if not selector.select(budget):
            return None
    answer = stdout.readline()
    if not answer:
        raise RuntimeError(f"the peer's process failed, exit code {process.wait()}")
    return json.loads(answer)


def score_peer(
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    formula: PeerFormula | None,
) -> Score:
    """The exact score of a formula of the peer's, counted on the masks."""
    if formula is None:
        return Score(0, int(bitmap.sum()))
    mask = _peer_mask(table, formula)
    return Score(int((mask & bitmap).sum()), int((mask | bitmap).sum()))


def name_peer(table: ConceptTable, formula: PeerFormula | None) -> str | None:
    """A formula of the peer's in words, as it stands."""
    match formula:
        case None:
            return None
        case int():
            return table.names[formula]
        case ["not", inner]:
            return f"NOT {name_peer(table, inner)}"
        case _:
            operator, left, right = formula
            return f"({name_peer(table, left)} {operator.upper()} {name_peer(table, right)})"


def _peer_mask(table: ConceptTable, formula: PeerFormula) -> Bool[np.ndarray, "samples *location"]:
    match formula:
        case int():
            return table.mask(table.names[formula])
        case ["not", inner]:
            return ~_peer_mask(table, inner)
        case _:
            operator, left, right = formula
            join = np.logical_or if operator == "or" else np.logical_and
            return join(_peer_mask(table, left), _peer_mask(table, right))
