"""The process that runs searches of `compositional-explanations`, one a question from stdin.

It imports neither JAX nor the rest of this package, so that its memory is the peer's own.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from optexp_jax.bench.resident import forget_peak, peak_bytes, resident_bytes

PeerFormula = int | list[Any]
"""A concept's index, or `["or" | "and", left, right]`, or `["not", formula]`."""


def serve(folder: Path, settings: dict[str, int]) -> None:
    """Answer questions until there are no more."""
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
    forget_peak()
    before = resident_bytes()
    shared: dict[str, Any] = {
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
        answer(
            {
                "seconds": seconds,
                "formula": None if found is None else _plain(found),
                "peak_bytes": max(0, peak_bytes() - before),
            }
        )


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
    serve(Path(sys.argv[1]), json.loads(sys.argv[2]))
