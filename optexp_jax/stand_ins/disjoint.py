"""Scenes in which no two concepts share a location, as in Cityscapes and ADE20K-Full."""

from pathlib import Path

import numpy as np

from optexp_jax.concepts import ConceptTable, TableBuilder
from optexp_jax.stand_ins.mosaics import Grid, draw_bends, draw_cells
from optexp_jax.stand_ins.zipf import draw_all, zipf

BLOCK = 128
"""Samples that are drawn together."""
UNLABELLED = 0.1
"""Share of cells without a concept."""
SCENES = 12
"""Kinds of samples; each has favourites among the concepts."""


def disjoint_scenes(
    n_concepts: int = 19,
    n_samples: int = 500,
    *,
    size: int = 112,
    seed: int = 0,
    path: str | Path | None = None,
) -> ConceptTable:
    """Disjoint concepts of very different frequency over samples of `size` x `size` locations.

    19 concepts and 500 samples stand in for Cityscapes, 847 and 2000 for ADE20K-Full. With `path`
    the table is stored there as it is made.
    """
    rng = np.random.default_rng(seed)
    grid = Grid(size)
    favours = rng.dirichlet(np.maximum(zipf(n_concepts, 1.0) * n_concepts, 0.02), size=SCENES)
    common = zipf(n_concepts, 0.8)
    # Every concept occurs, if there are samples enough: these are put into some cell of a sample.
    ensured = draw_all(rng, n_concepts, n_samples, common)
    builder = TableBuilder([f"object-{k}" for k in range(n_concepts)], path=path)
    sets = [np.empty(0, np.int32), *(np.array([k], np.int32) for k in range(n_concepts))]
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        n_cells = rng.integers(6, 18, count)
        cells = draw_cells(rng, draw_bends(rng, count, grid), n_cells)
        for x in range(count):
            chances = 0.5 * favours[rng.integers(SCENES)] + 0.5 * common
            labels = 1 + rng.choice(n_concepts, size=int(n_cells[x]), p=chances)
            labels[rng.random(len(labels)) < UNLABELLED] = 0
            labels[rng.choice(cells[x])] = 1 + ensured[start + x]
            builder.add_sets(*_used(sets, grid.enlarge(labels[cells[x]])), (size, size))
    return builder.build()


def _used(sets: list[np.ndarray], members: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The sets that a sample has, and which of them each location holds."""
    present, ranks = np.unique(members, return_inverse=True)
    return [sets[k] for k in present.tolist()], ranks
