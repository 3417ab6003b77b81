"""Data of all of Broden's scale and make, generated directly as signatures: without a map.

63 000 samples of 112x112 locations; about 1200 concepts in scene, object, part, material, texture
and colour groups; a region has a scene, an object of that scene, perhaps parts, materials or a
texture, and a colour. Neurons respond to a dozen concepts with noise, or are of the kinds that
are hard to explain.
"""

from dataclasses import dataclass

import numpy as np

from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts

N_LOCATIONS = 63_000 * 112 * 112
GROUPS = {"scene": 468, "object": 400, "part": 200, "material": 30, "texture": 47, "colour": 11}


@dataclass(frozen=True)
class CountedUnit:
    """A neuron and what kind of neuron it is."""

    kind: str
    counts: NeuronCounts


def counted_broden(seed: int = 0, n_regions: int = 950_000) -> ConceptTable:
    """About 400 000 signatures over 1156 concepts."""
    rng = np.random.default_rng(seed)
    offsets = dict(zip(GROUPS, np.cumsum([0, *GROUPS.values()]), strict=False))
    names = [f"{group}-{k}" for group, size in GROUPS.items() for k in range(size)]
    categories = [group for group, size in GROUPS.items() for _ in range(size)]

    def zipf(size: int, exponent: float) -> np.ndarray:
        weights = 1 / np.arange(1, size + 1) ** exponent
        return weights / weights.sum()

    def given(conditions: np.ndarray, n_values: int, choices: int, exponent: float) -> np.ndarray:
        """A value for each row: every condition has a few favourites of its own."""
        favourites = rng.choice(
            n_values, size=(int(conditions.max()) + 1, choices), p=zipf(n_values, 0.8)
        )
        pick = rng.choice(choices, size=len(conditions), p=zipf(choices, exponent))
        return favourites[conditions, pick]

    scene = rng.choice(GROUPS["scene"], size=n_regions, p=zipf(GROUPS["scene"], 0.9))
    obj = given(scene, GROUPS["object"], 40, 0.7)
    part = given(obj, GROUPS["part"], 8, 0.5)
    second_part = given(obj, GROUPS["part"], 8, 0.3)
    material = given(obj, GROUPS["material"], 4, 1.0)
    texture = rng.choice(GROUPS["texture"], size=n_regions)
    colour = given(obj, GROUPS["colour"], 11, 0.6)
    present = {
        "scene": (scene, rng.random(n_regions) < 0.8),
        "object": (obj, rng.random(n_regions) < 0.93),
        "part": (part, rng.random(n_regions) < 0.35),
        "part ": (second_part, rng.random(n_regions) < 0.1),
        "material": (material, rng.random(n_regions) < 0.25),
        "texture": (texture, rng.random(n_regions) < 0.03),
        "colour": (colour, rng.random(n_regions) < 0.97),
    }
    columns = np.stack(
        [
            np.where(there, values + offsets[group.strip()], -1)
            for group, (values, there) in present.items()
        ],
        axis=1,
    )
    columns[columns[:, 3] == columns[:, 2], 3] = -1  # the same part twice
    columns.sort(axis=1)
    kept = columns >= 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(1))])
    raw = rng.lognormal(0.0, 1.8, n_regions)
    sizes = np.maximum(1, (raw / raw.sum() * N_LOCATIONS * 0.98)).astype(np.int64)
    return ConceptTable.from_signatures(
        (indptr, columns[kept]), sizes, names, n_locations=N_LOCATIONS, categories=categories
    )


def counted_ade20k(seed: int = 0, n_concepts: int = 847) -> ConceptTable:
    """Disjoint concepts of very different sizes over 2000 samples of 112x112."""
    rng = np.random.default_rng(seed)
    n_locations = 2000 * 112 * 112
    raw = rng.lognormal(0.0, 2.0, n_concepts)
    sizes = np.maximum(1, raw / raw.sum() * n_locations * 0.9).astype(np.int64)
    return ConceptTable.from_signatures(
        [[k] for k in range(n_concepts)], sizes, n_locations=n_locations
    )


def counted_streets(seed: int = 0, n_samples: int = 468) -> ConceptTable:
    """Like CamVid with colours and positions: 28 concepts, about 700 signatures.

    A location has one of eleven classes or none, one of eleven colours, and its thirds downwards
    and across.
    """
    rng = np.random.default_rng(seed)
    groups = {"class": 11, "colour": 11, "row": 3, "column": 3}
    names = [f"{group}-{k}" for group, size in groups.items() for k in range(size)]
    categories = [group for group, size in groups.items() for _ in range(size)]
    n_locations = n_samples * 112 * 112
    classes = rng.dirichlet(np.full(12, 0.6), size=3)  # of each third from the top down
    colours = rng.dirichlet(np.full(11, 0.15), size=12)
    shares = classes.T[:, None, :, None] * colours[:, :, None, None] * np.full((1, 1, 3, 3), 1 / 9)
    sizes = rng.poisson(shares * rng.lognormal(0.0, 0.5, shares.shape) * n_locations)
    kind, colour, row, column = (part.reshape(-1) for part in np.indices(sizes.shape))
    there = np.flatnonzero(sizes.reshape(-1) > 30)
    sets = [
        [
            *([int(kind[k])] if kind[k] < 11 else []),
            11 + int(colour[k]),
            22 + int(row[k]),
            25 + int(column[k]),
        ]
        for k in there
    ]
    return ConceptTable.from_signatures(
        sets, sizes.reshape(-1)[there], names, categories=categories
    )


def counted_unit(table: ConceptTable, seed: int, kind: str = "mixed") -> CountedUnit:
    """A neuron of a kind: mixed, weak, random, broad or dominant."""
    rng = np.random.default_rng(seed)
    incidence = table.signatures.incidence
    covered = table.concept_sizes
    frequent = np.flatnonzero(covered > np.quantile(covered, 0.5))
    chosen = rng.choice(frequent, size=12, replace=False)
    weights = np.zeros(table.n_concepts)
    weights[chosen] = rng.normal(0.5, 1.0, 12)
    share = 0.005
    if kind == "weak":
        weights *= 0.15
    if kind == "broad":
        share = 0.2
    if kind == "dominant":
        weights *= 0.2
        weights[chosen[np.argmin(abs(covered[chosen] - 0.01 * covered.max()))]] = 6.0
    if kind == "random":
        weights[:] = 0.0
    noise = 0.35 if kind != "random" else 1.5
    drive = incidence @ weights + rng.normal(0, noise, len(table.signatures))
    rate = np.exp(np.clip(2.5 * drive, -20, 20))
    # The scale that makes the wanted share of locations active.
    low, high = 1e-12, 1e3
    sizes = table.sizes
    for _ in range(80):
        middle = np.sqrt(low * high)
        active = (sizes * np.minimum(1, rate * middle)).sum()
        low, high = (middle, high) if active < share * table.n_locations else (low, middle)
    active = rng.binomial(sizes, np.minimum(1, rate * low))
    rows = table.given_rows
    assert rows is not None
    first = np.unique(rows, return_index=True)
    inside = np.zeros(len(rows), np.int64)
    inside[first[1]] = active[first[0]]
    uncovered = int(active[0]) if 0 not in first[0] else 0
    return CountedUnit(kind, NeuronCounts.from_signatures(table, inside, uncovered=uncovered))
