"""Searches over sets on tables where pruning is deep, against enumeration over masks."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import optexp_jax as ox
from optexp_jax.bench.mask_enumeration import MaskEnumeration


@dataclass(frozen=True)
class Middle:
    """A table between those that enumeration takes a moment for and real ones."""

    table: ox.ConceptTable
    neuron: ox.NeuronCounts


def middle_case(seed: int, n_concepts: int = 30) -> Middle:
    """Up to five concepts at a location."""
    rng = np.random.default_rng(seed)
    sets = [rng.permutation(n_concepts)[: rng.integers(1, 6)].tolist() for _ in range(150)]
    sizes = rng.integers(1, 60, 150)
    active = rng.binomial(sizes, rng.beta(0.3, 1.2, 150))
    names = [f"c{k:02d}" for k in range(n_concepts)]
    table = ox.ConceptTable.from_signatures(sets, sizes.tolist(), names)
    return Middle(table, ox.NeuronCounts.from_signatures(table, active.tolist()))


THIRTY = [pytest.param(30, 4, marks=pytest.mark.slow), pytest.param(30, 5, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("n_concepts", "length"), [(9, 5), (12, 5), (30, 3), *THIRTY])
@pytest.mark.parametrize("seed", range(2))
def test_every_length_against_enumeration_over_masks(n_concepts: int, length: int, seed: int):
    case = middle_case(seed, n_concepts)
    found = ox.explain(case.table, case.neuron, ox.Optimal(length, bounds=SETS))
    ious = [Fraction(o.intersection, o.union) for o in found.by_length]
    wanted = MaskEnumeration.of(case.table, length).highest(case.neuron)
    assert ious == [score.ratio for score in wanted]


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
