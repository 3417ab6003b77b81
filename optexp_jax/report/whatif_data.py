"""Data of the what-if editor: signatures of a layer, counts of a unit, maps of the shown samples.

The page computes exact counts of any formula from it. Arrays are numbers of 7 bits a byte as
base64, inside plain scripts: a page from disk can load nothing else.
"""

import base64
import functools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.pictures import signature_grid

FORMAT = 1
MOST_LOCATIONS = 2**63
"""Sums of the page are exact below this."""
DELTAS, BITS = 0, 1
"""How the signatures of a concept are written: as steps from one to the next, or one bit each."""

# What could end a script element; lone halves of characters are escaped by JSON itself.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def layer_data(
    table: ConceptTable, operators: Sequence[Operator] = DEFAULT_OPERATORS
) -> dict[str, Any]:
    """What the pages of a layer share: concepts, operators, signatures and their sizes."""
    if table.n_locations >= MOST_LOCATIONS:
        raise ValueError(f"The editor counts fewer than 2**63 locations; got {table.n_locations}.")
    n = len(table.signatures)
    holders = table.signatures.holders
    parts: list[bytes] = []
    for concept in range(table.n_concepts):
        found = holders.indices[holders.indptr[concept] : holders.indptr[concept + 1]]
        parts.append(_postings(np.sort(found), n))
    return {
        "format": FORMAT,
        "table": table.fingerprint,
        "names": [_name(name) for name in table.names],
        "operators": [
            {"name": operator.name, "bits": [int(operator.p), int(operator.q), int(operator.r)]}
            for operator in check_operators(operators)
        ],
        "signatures": n,
        "total": str(table.n_locations),
        "sizes": _text(varints(table.sizes)),
        "postings": _text(b"".join(parts)),
        "ends": np.cumsum([len(part) for part in parts]).tolist(),
        "printable": _text(varints(np.diff(_printable_edges(), prepend=0))),
    }


def unit_data(
    table: ConceptTable,
    counts: NeuronCounts,
    unit: int,
    explanation: Explanation,
    *,
    length: int | None = None,
) -> dict[str, Any]:
    """What the page of a unit has for itself; `length` is the most concepts that were searched."""
    counts.require_table(table)
    active = np.flatnonzero(counts.inside)
    formula = explanation.formula
    return {
        "format": FORMAT,
        "table": table.fingerprint,
        "unit": unit,
        "size": str(counts.size),
        "at": _text(varints(np.diff(active, prepend=0))),
        "inside": _text(varints(counts.inside[active])),
        "best": {
            "formula": None if formula is None else str(formula),
            "intersection": str(explanation.intersection),
            "union": str(explanation.union),
            "optimal": explanation.status is Status.OPTIMAL,
        },
        "length": length,
    }


def sample_data(table: ConceptTable, sample: int) -> dict[str, Any]:
    """The signature of each location of a sample, for all pages that show it."""
    grid = signature_grid(table, sample)
    ids, local = np.unique(grid.reshape(-1), return_inverse=True)
    starts = np.flatnonzero(np.diff(local, prepend=-1))
    runs = np.stack([local[starts], np.diff(starts, append=len(local))], axis=1)
    return {
        "rows": grid.shape[0],
        "columns": grid.shape[1],
        "ids": ids.tolist(),
        "runs": _text(varints(runs.reshape(-1))),
    }


def write_layer(path: Path, data: dict[str, Any]) -> None:
    """A layer's script."""
    _write(path, "window.optexpWhatIfLayer", data)


def write_unit(path: Path, data: dict[str, Any]) -> None:
    """A unit's script."""
    _write(path, "window.optexpWhatIfUnit", data)


def write_sample(path: Path, sample: int, data: dict[str, Any]) -> None:
    """A sample's script; the editor looks for `SAMPLE.js` in a folder of its own."""
    into = f"(window.optexpWhatIfSamples = window.optexpWhatIfSamples || {{}})[{sample}]"
    _write(path, into, data)


def varints(values: Integer[np.ndarray, " n"]) -> bytes:
    """Whole numbers, 7 bits a byte, the lowest first; the last byte of each is below 128."""
    if values.size and int(values.min()) < 0:
        raise ValueError(f"Counts must not be negative; got {values.min()}.")
    left = values.astype(np.uint64)
    length = np.ones(len(left), np.int64)
    for k in range(1, 10):
        length += left >= np.uint64(1 << 7 * k)
    start = np.cumsum(length) - length
    found = np.zeros(int(length.sum()), np.uint8)
    for k in range(int(length.max(initial=0))):
        here = length > k
        byte = (left[here] >> np.uint64(7 * k)) & np.uint64(127)
        more = (length[here] > k + 1).astype(np.uint64) * np.uint64(128)
        found[start[here] + k] = (byte | more).astype(np.uint8)
    return found.tobytes()


def _postings(members: Integer[np.ndarray, " members"], n: int) -> bytes:
    """The signatures that hold a concept, ascending, in the shorter of two ways."""
    deltas = varints(np.diff(members, prepend=0))
    if len(deltas) <= -(-n // 8):
        return bytes([DELTAS]) + deltas
    bits = np.zeros(n, np.bool_)
    bits[members] = True
    return bytes([BITS]) + np.packbits(bits, bitorder="little").tobytes()


@functools.cache
def _printable_edges() -> Integer[np.ndarray, " edges"]:
    """Where characters begin and cease to be printable, to this version of Python."""
    printable = np.array([chr(code).isprintable() for code in range(sys.maxunicode + 1)])
    return np.flatnonzero(np.diff(printable, prepend=False))


def _name(name: str) -> str | list[int]:
    """A name; its code points, if it holds halves of characters, which JSON could join."""
    return list(map(ord, name)) if any(0xD800 <= ord(c) < 0xE000 for c in name) else name


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _write(path: Path, name: str, data: dict[str, Any]) -> None:
    text = json.dumps(data, separators=(",", ":")).translate(_UNSAFE)
    path.write_text(f"{name} = {text};\n", encoding="ascii")
