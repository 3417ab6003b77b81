"""The released code of earlier work, `compositional-explanations`, run to be compared with.

It runs in a process of its own, which is sent one search at a time and is killed when a search
takes longer than its budget. Started as a script, this file is that process.
"""

import contextlib
import io
import json
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from jaxtyping import Bool

from optexp_jax import ConceptTable, Score

PACKAGE = "compositional-explanations"

PeerSearch = Literal["optimal", "beam"]

PeerFormula = int | list[Any]
"""A concept's index, or `["or" | "and", left, right]`, or `["not", formula]`."""


def peer_version() -> str | None:
    """The installed version, or None."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class PeerRun:
    """One search of the peer."""

    seconds: float
    formula: PeerFormula | None


class Peer:
    """A process that runs the peer's searches on one dataset; a context manager."""

    def __init__(
        self,
        table: ConceptTable,
        bitmaps: list[Bool[np.ndarray, "samples height width"]],
        *,
        length: int,
        beam_size: int,
        threads: int,
    ):
        self._folder = tempfile.TemporaryDirectory()
        self._settings = {"length": length, "beam_size": beam_size, "threads": threads}
        self._process: subprocess.Popen[str] | None = None
        np.savez(
            Path(self._folder.name) / "data.npz",
            masks=np.stack([table.mask(name) for name in table.names]),
            bitmaps=np.stack(bitmaps),
            disjoint=table.disjoint,
        )

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, unit: int, search: PeerSearch, budget: float) -> PeerRun | None:
        """Run a search, or None when it does not end within the budget in seconds."""
        process = self._process or self._start()
        reply = _ask(process, {"unit": unit, "search": search}, budget)
        if reply is None:
            self._stop()
            return None
        return PeerRun(**reply)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, self._folder.name, json.dumps(self._settings)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if _ask(self._process, {}, None) is None:
            raise RuntimeError("the peer's process ended before it was ready")
        return self._process

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
    bitmap: Bool[np.ndarray, "samples height width"],
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


def _peer_mask(
    table: ConceptTable, formula: PeerFormula
) -> Bool[np.ndarray, "samples height width"]:
    match formula:
        case int():
            return table.mask(table.names[formula])
        case ["not", inner]:
            return ~_peer_mask(table, inner)
        case _:
            operator, left, right = formula
            join = np.logical_or if operator == "or" else np.logical_and
            return join(_peer_mask(table, left), _peer_mask(table, right))


def _serve(folder: Path, settings: dict[str, int]) -> None:
    """Answer questions from stdin until there are no more."""
    import torch
    from compositional_explanations import (  # pyright: ignore[reportMissingImports]
        beam,
        optimal,
    )

    torch.set_num_threads(settings["threads"])
    answers = sys.stdout
    data = np.load(folder / "data.npz")
    # It takes a mask as [sample, location].
    masks = [torch.from_numpy(mask.reshape(len(mask), -1)) for mask in data["masks"]]
    bitmaps = [torch.from_numpy(bitmap.reshape(len(bitmap), -1)) for bitmap in data["bitmaps"]]
    shared = {
        "masks": masks,
        "disjoint_info": torch.from_numpy(data["disjoint"]),
        "length": settings["length"],
        "device": torch.device("cpu"),
        # What it computes once for a dataset is kept there, as our table is.
        "cache_dir": str(folder / "cache"),
    }

    def answer(content: dict[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    for line in sys.stdin:
        question = json.loads(line)
        if not question:
            answer({})
            continue
        bitmap = bitmaps[question["unit"]]
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            if question["search"] == "optimal":
                found = optimal.compute_optimal_explanations(bitmaps=bitmap, **shared)
            else:
                found = beam.compute_beam_explanations(
                    bitmaps=bitmap, beam_size=settings["beam_size"], **shared
                )
            seconds = time.perf_counter() - start
        answer({"seconds": seconds, "formula": None if found is None else _plain(found)})


def _plain(formula: Any) -> PeerFormula:
    """A formula object of the peer's as plain data."""
    match type(formula).__name__:
        case "Leaf":
            return int(formula.val)
        case "Not":
            return ["not", _plain(formula.val)]
        case name:
            return [name.lower(), _plain(formula.left), _plain(formula.right)]


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), json.loads(sys.argv[2]))
