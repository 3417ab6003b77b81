"""Plain enumeration finds what the oracle finds."""

import numpy as np
import pytest
from helpers.support import thorough

import optexp_jax as ox
from optexp_jax.bench import enumeration
from optexp_jax.bench.enumeration import enumerate_best
from optexp_jax.bench.turns import OverBudgetError


def case(rng: np.random.Generator, n_concepts: int) -> tuple[ox.ConceptTable, ox.NeuronCounts]:
    n_locations = int(rng.integers(4, 60))
    masks = rng.random((n_concepts, 1, n_locations)) < rng.uniform(0.05, 0.6, (n_concepts, 1, 1))
    bitmap = rng.random((1, n_locations)) < rng.uniform(0.05, 0.7)
    bitmap[0, 0] = True
    table = ox.ConceptTable.from_masks(masks)
    return table, table.count(bitmap)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_it_is_the_oracles_optimum(fresh_seed: int, length: int):
    rng = np.random.default_rng(fresh_seed)
    for _ in range(40 if thorough() else 4):
        table, counts = case(rng, int(rng.integers(1, 6)))
        best = ox.explain(table, counts, ox.Exhaustive(length))
        assert enumerate_best(table, counts, length).ratio == best.score.ratio


def test_blocks_do_not_matter(fresh_seed: int, monkeypatch: pytest.MonkeyPatch):
    table, counts = case(np.random.default_rng(fresh_seed), 5)
    whole = enumerate_best(table, counts, 3)
    monkeypatch.setattr(enumeration, "BLOCK_BYTES", 1)
    assert enumerate_best(table, counts, 3) == whole


def test_it_gives_up_when_it_would_exceed_its_budget():
    table, counts = case(np.random.default_rng(0), 5)
    with pytest.raises(OverBudgetError, match="at the pace"):
        enumerate_best(table, counts, 3, budget=0.0)


def test_prefixes_are_as_many_as_are_counted():
    table, _ = case(np.random.default_rng(0), 5)
    for length in (1, 2, 3, 4):
        found = list(enumeration._prefixes(table, length))
        assert len(found) == enumeration._count_prefixes(5, length)
