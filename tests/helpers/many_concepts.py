"""Tables of dozens and hundreds of concepts, and neurons on them."""

import numpy as np

import optexp_jax as ox


def overlapping(rng: np.random.Generator, n_concepts: int, n_rows: int) -> ox.ConceptTable:
    """Concept sets as photographs have them: a scene, some objects, parts of them, a colour."""
    scenes, objects, parts = 6, 14, 10
    colours = n_concepts - scenes - objects - parts
    whole = rng.integers(objects, size=parts)  # the object that a part belongs to
    usual = rng.random((scenes, objects)) ** 3
    sets = []
    for _ in range(n_rows):
        scene = int(rng.integers(scenes))
        held = np.flatnonzero(rng.random(objects) < usual[scene] * 0.5)
        own = [k for k in range(parts) if whole[k] in held and rng.random() < 0.4]
        rows = [scene, *(scenes + held), *(scenes + objects + np.array(own, int))]
        if rng.random() < 0.8:
            rows.append(scenes + objects + parts + int(rng.integers(colours)))
        sets.append([int(k) for k in rows if rng.random() < 0.95])
    sizes = (rng.pareto(1.2, n_rows) * 100 + 1).astype(np.int64)
    return ox.ConceptTable.from_signatures(sets, sizes)


def noisy(
    rng: np.random.Generator, table: ox.ConceptTable, n_sources: int, noise: float = 0.01
) -> ox.NeuronCounts:
    """A neuron that fires at half of the locations of a few concepts, and at some others."""
    chosen = rng.permutation(table.n_concepts)[:n_sources]
    rate = np.full(len(table.signatures), noise)
    for k in chosen.tolist():
        rate[table.signatures.membership(k)] = rng.random()
    active = rng.binomial(table.sizes, rate)
    rows = table.given_rows
    assert rows is not None
    counts = np.zeros(len(rows), np.int64)
    counts[np.unique(rows, return_index=True)[1]] = active[np.unique(rows)]
    return ox.NeuronCounts.from_signatures(table, counts)


def many_concepts(
    rng: np.random.Generator, disjoint: bool, n_concepts: int = 264
) -> ox.ConceptTable:
    """More concepts than a small table has, one or four at each location."""
    groups = 1 if disjoint else 4
    drawn = rng.integers(n_concepts // groups, size=(4 * n_concepts, groups))
    sets = (drawn + np.arange(groups) * (n_concepts // groups)).tolist()
    return ox.ConceptTable.from_signatures(
        sets, rng.integers(1, 10_000, len(sets)), [f"c{k}" for k in range(n_concepts)]
    )
