"""Which files and functions of the package a search enters: how much there is to read.

    python scripts/search_trace.py            length 3 on 400 concepts
    python scripts/search_trace.py 4 --list   length 4, with their names

Counted with `sys.setprofile`, on the second of two units: the first one warms up. Functions that
are compiled are entered when they are first called, so they are counted with the first unit.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import optexp_jax as ox

PACKAGE = str(Path(ox.__file__).parent)
N_CONCEPTS, N_GROUPS = 400, 4


def photographs(rng: np.random.Generator) -> ox.ConceptTable:
    """Four concepts at each location, of a hundred each."""
    size = N_CONCEPTS // N_GROUPS
    drawn = (size * rng.random((4 * N_CONCEPTS, N_GROUPS)) ** 2).astype(int)
    sets = (drawn + np.arange(N_GROUPS) * size).tolist()
    names = [f"c{k}" for k in range(N_CONCEPTS)]
    return ox.ConceptTable.from_signatures(sets, rng.integers(1, 10_000, len(sets)), names)


def unit(rng: np.random.Generator, table: ox.ConceptTable) -> ox.NeuronCounts:
    """A unit that fires at much of three concepts, and at some other locations."""
    rate = np.full(len(table.signatures), 0.01)
    for k in rng.permutation(table.n_concepts)[:3].tolist():
        rate[table.signatures.membership(k)] = rng.random()
    rows = table.given_rows
    assert rows is not None
    counts = np.zeros(len(rows), np.int64)
    first = np.unique(rows, return_index=True)[1]
    counts[first] = rng.binomial(table.sizes, rate)[np.unique(rows)]
    return ox.NeuronCounts.from_signatures(table, counts)


def entered(work: Callable[[], object]) -> set[CodeType]:
    """The functions of the package that some work calls; not bodies of classes and modules."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.add(code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {code for code in found if code.co_name != "<module>" and code.co_flags & 0x2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("length", nargs="?", type=int, default=3)
    parser.add_argument("--list", action="store_true", help="also print their names")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    table = photographs(rng)
    method = ox.Optimal(given.length)
    units = [unit(rng, table) for _ in range(2)]
    cold = entered(lambda: ox.explain(table, units[0], method))
    warm = entered(lambda: ox.explain(table, units[1], method))
    for name, codes in (("second unit", warm), ("both units", cold | warm)):
        files = {code.co_filename for code in codes}
        tight = {path for path in files if "/bounds/tight/" in path}
        print(f"{name}: {len(files)} files ({len(tight)} of bounds/tight), {len(codes)} functions")
    if given.list:
        for line in sorted(
            f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}" for code in cold | warm
        ):
            print(line)


if __name__ == "__main__":
    main()
