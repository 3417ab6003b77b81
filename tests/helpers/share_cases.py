"""Problems for the tests of the search over sets by shares, and plain counts of their cells."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from helpers.tight_cases import any_case, flat, tiny_unit
from optexp_jax.bounds.tight.shares.cell_counts import CellCounter, CellCounts
from optexp_jax.bounds.tight.shares.occurring import (
    DirectedPairs,
    OccurringLevels,
    occurring_sets,
)
from optexp_jax.testing import Case, random_case

FEW = 7
"""Concepts of cases of which all sets are looked at."""


def crowded(rng: np.random.Generator, n_concepts: int, columns: int | None = None) -> Case:
    """Signatures of many concepts, some concepts nested, equal or empty, some counts 0."""
    columns = int(rng.integers(4, 40)) if columns is None else columns
    masks = rng.random((n_concepts, columns)) < rng.choice([0.15, 0.4, 0.7])
    for k in range(n_concepts):
        kind, other = rng.random(), int(rng.integers(n_concepts))
        if kind < 0.1:
            masks[k] = masks[other]
        elif kind < 0.2:
            masks[k] &= masks[other]
        elif kind < 0.25:
            masks[k] = False
    high = int(rng.choice([3, 10, 1000]))
    inside, outside = rng.integers(0, high, (2, columns)) * (rng.random((2, columns)) < 0.8)
    inside[0] += not inside.any()
    return flat(masks, inside, outside)


def some_case(rng: np.random.Generator, n_concepts: int = FEW) -> Case:
    kind = rng.integers(5)
    if kind == 0:
        return any_case(rng, n_concepts)
    if kind == 1:
        return tiny_unit(rng, n_concepts)
    if kind == 2:
        return random_case(rng, n_concepts, int(rng.integers(1, 4)))
    return crowded(rng, n_concepts)


def plain_cells(case: Case, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Active locations and others of each cell of each set, `[set, cell]`; cell 0 left empty."""
    n = sets.shape[1]
    found = np.zeros((2, len(sets), 2**n), np.int64)
    for column in range(case.columns.shape[1]):
        cell = (case.columns[sets, column] * (1 << np.arange(n))).sum(1)
        rows = np.arange(len(sets))
        found[0, rows, cell] += case.inside.reshape(-1)[column]
        found[1, rows, cell] += case.outside.reshape(-1)[column]
    found[:, :, 0] = 0
    return found[0], found[1]


def highest_functions(case: Case, sets: np.ndarray, v: float) -> np.ndarray:
    """U of each set."""
    inside, outside = plain_cells(case, sets)
    return np.maximum(inside - v * outside, 0.0).sum(1)


def all_sets(concepts: np.ndarray, n: int) -> np.ndarray:
    return np.array(list(combinations(concepts.tolist(), n)), np.int64).reshape(-1, n)


@dataclass(frozen=True, eq=False)
class Looked:
    """A case as the search looks at it, with some concepts in."""

    case: Case
    levels: OccurringLevels
    counts: CellCounts
    pairs: DirectedPairs
    kept: np.ndarray


def look(
    rng: np.random.Generator, case: Case, n: int, chosen: np.ndarray, most: int | None = None
) -> Looked:
    """Some of the other concepts are candidates; `most` limits which sets are listed."""
    table = case.table
    levels = occurring_sets(table, n) if most is None else occurring_sets(table, n, most)
    kept = rng.random(table.n_concepts) < rng.choice([0.7, 1.0])
    kept[chosen] = False
    counts = CellCounter(table, case.neuron, levels.pairs).count(chosen.astype(np.int32))
    return Looked(case, levels, counts, levels.pairs.directed.among(kept), kept)


def slack(looked: Looked, v: float) -> float:
    """Room for rounding, as the search has it."""
    inside, outside = looked.counts.whole.sum(0)
    return 2.0**-40 * float(inside + v * outside)
