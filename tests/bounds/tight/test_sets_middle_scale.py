"""Searches over sets on tables where pruning is deep, against enumeration over masks."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import optexp_jax as ox


@dataclass(frozen=True)
class Middle:
    """A table between those that enumeration takes a moment for and real ones."""

    table: ox.ConceptTable
    neuron: ox.NeuronCounts
    held: np.ndarray
    """`[concept, signature]`, as they were drawn."""
    active: np.ndarray
    sizes: np.ndarray


def middle_case(seed: int, n_concepts: int = 30) -> Middle:
    """Up to five concepts at a location."""
    rng = np.random.default_rng(seed)
    sets = [rng.permutation(n_concepts)[: rng.integers(1, 6)].tolist() for _ in range(150)]
    sizes = rng.integers(1, 60, 150)
    active = rng.binomial(sizes, rng.beta(0.3, 1.2, 150))
    names = [f"c{k:02d}" for k in range(n_concepts)]
    table = ox.ConceptTable.from_signatures(sets, sizes.tolist(), names)
    held = np.array([[k in s for s in sets] for k in range(n_concepts)])
    neuron = ox.NeuronCounts.from_signatures(table, active.tolist())
    return Middle(table, neuron, held, active, sizes)


def highest_by_masks(case: Middle, length: int) -> list[Fraction]:
    """The highest IoU by length, by plain enumeration over distinct masks and concept sets.

    The last step needs no masks: counts of `P ∩ x` do.
    """
    n, size = len(case.held), int(case.active.sum())
    # Sums below 2**53 are exact in float64.
    counts = np.stack([case.active, case.sizes - case.active]).astype(np.float64)
    held = case.held.astype(np.float64)
    own = counts @ held.T
    best = [Fraction(0)] * length

    def note(level: int, inside: np.ndarray, extras: np.ndarray) -> None:
        k = int((inside / (size + extras)).argmax())
        found = Fraction(int(inside.reshape(-1)[k]), size + int(extras.reshape(-1)[k]))
        best[level] = max(best[level], found)

    note(0, *own)
    masks, used = case.held, np.eye(n, dtype=bool)
    for level in range(1, length):
        grown: list[tuple[np.ndarray, np.ndarray]] = []
        for start in range(0, len(masks), 2000):
            some, taken = masks[start : start + 2000], used[start : start + 2000]
            both = np.stack([(some * part) @ held.T for part in counts])
            left = np.stack([some @ part for part in counts])[:, :, None]
            for joined in (left + own[:, None] - both, both, left - both):
                note(level, *np.where(taken, 0, joined))
            if level < length - 1:
                row, concept = np.nonzero(~taken)
                right, sets = case.held[concept], taken[row]
                sets[np.arange(len(row)), concept] = True
                for mask in (some[row] | right, some[row] & right, some[row] & ~right):
                    grown.append(distinct(mask, sets))
        if grown:
            masks, used = distinct(*(np.concatenate(part) for part in zip(*grown, strict=True)))
    return [max(best[: k + 1]) for k in range(length)]


def distinct(masks: np.ndarray, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each mask once for each set of concepts; those that hold nowhere are of no use."""
    rows = np.packbits(np.column_stack([masks, sets]), axis=1)
    keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").reshape(-1)
    first = np.unique(keys, return_index=True)[1]
    first = first[masks[first].any(1)]
    return masks[first], sets[first]


THIRTY = [pytest.param(30, 4, marks=pytest.mark.slow), pytest.param(30, 5, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("n_concepts", "length"), [(9, 5), (12, 5), (30, 3), *THIRTY])
@pytest.mark.parametrize("seed", range(2))
def test_every_length_against_enumeration_over_masks(n_concepts: int, length: int, seed: int):
    case = middle_case(seed, n_concepts)
    found = ox.explain(case.table, case.neuron, ox.Optimal(length, bounds=SETS))
    ious = [Fraction(o.intersection, o.union) for o in found.by_length]
    assert ious == highest_by_masks(case, length)


SETS = ox.TightBounds(way="sets")


def test_thirty_concepts_take_the_same_way_as_all_sets_solved():
    case = middle_case(0)
    table, neuron = case.table, case.neuron
    quick = ox.explain(table, neuron, ox.Optimal(4, bounds=ox.TightBounds(way="sets")))
    slow = ox.explain(table, neuron, ox.Optimal(4, bounds=ox.TightBounds(way="enumeration")))
    assert (quick.formula, quick.score) == (slow.formula, slow.score)
    assert quick.by_length == slow.by_length
    assert quick.stats.expanded < slow.stats.expanded / 20


def test_several_units_are_counted_together():
    table = middle_case(1).table
    rng = np.random.default_rng(2)
    neurons = [
        ox.NeuronCounts.from_signatures(table, rng.integers(0, 2, 150).tolist()) for _ in range(3)
    ]
    method = ox.Optimal(4)
    together = list(method.run_together(table, neurons))
    for neuron, found in zip(neurons, together, strict=True):
        alone = ox.explain(table, neuron, method)
        assert (found.formula, found.score) == (alone.formula, alone.score)
        assert found.stats.way is not None
        assert found.stats.way.startswith("sets")


def test_stops_in_time_and_goes_on():
    case = middle_case(3)
    table, neuron = case.table, case.neuron
    whole = ox.explain(table, neuron, ox.Optimal(4))
    stopped = ox.explain(table, neuron, ox.Optimal(4, time_limit=1e-9))
    assert stopped.status == "feasible"
    assert stopped.formula is not None
    assert stopped.upper_bound >= whole.iou
    resumed = ox.explain(table, neuron, ox.Optimal(4), resume=stopped.state)
    assert (resumed.formula, resumed.score, resumed.status) == (
        whole.formula,
        whole.score,
        "optimal",
    )
