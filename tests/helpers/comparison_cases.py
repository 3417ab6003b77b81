"""Runs with given results, to compare."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optexp_jax as ox
from optexp_jax.methods import AbstractMethod
from optexp_jax.runs import Run, UnitResult
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.store import RunStore


def found(
    text: str | None,
    intersection: int,
    union: int,
    *,
    optimal: bool = False,
    upper_bound: float = 1.0,
) -> ox.Explanation:
    """A result: a beam's, unless it is said to be optimal."""
    return ox.Explanation(
        None if text is None else ox.Formula.parse(text),
        intersection,
        union,
        intersection / union if optimal else upper_bound,
        ox.Status.OPTIMAL if optimal else ox.Status.FEASIBLE,
    )


def stored_run(
    path: Path,
    results: Mapping[int, ox.Explanation | str | None],
    method: AbstractMethod | None = None,
    *,
    table: str = "the table",
    source: str = "the activations",
    inputs: Any = None,
) -> Run:
    """A run with these results; a text is the error of a unit that failed, None one not done."""
    method = ox.Beam(3) if method is None else method
    units = tuple(sorted(results))
    store = RunStore.create(path, Configuration(method, units, table, source), inputs)
    for unit, result in results.items():
        if isinstance(result, str):
            store.commit(UnitResult(unit, error=result))
        elif result is not None:
            store.commit(UnitResult(unit, result))
    store.close()
    return Run(path)
