"""Both ways to go about a table are really taken, and lead to the same."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.many_concepts import noisy, overlapping
from helpers.tight_helpers import LargeTables

import optexp_jax as ox
from optexp_jax.bounds.tight.search import branching, root, space
from optexp_jax.bounds.tight.tuning import FUSED_CELLS, SMALL_TABLE, Tuning

SEEN = (
    (root, "fused_root"),
    (root, "score_pairs"),
    (branching, "highest_bounds"),
    (branching, "two_step_bounds"),
    (space, "warm_up"),
)
"""Programs that only one of both calls, or both do."""


def calls_of(
    method: ox.Optimal, monkeypatch: pytest.MonkeyPatch
) -> tuple[ox.Explanation, set[str]]:
    """The result of a search, and what it called."""
    called: set[str] = set()

    def noted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return original(*args, **kwargs)

        return call

    rng = np.random.default_rng(2)
    table = overlapping(rng, 34, 120)
    neuron = noisy(rng, table, n_sources=3)
    with monkeypatch.context() as patch:
        for module, name in SEEN:
            patch.setattr(module, name, noted(name, getattr(module, name)))
        found = ox.explain(table, neuron, method)
    return found, called


def test_small_and_large_tables_take_their_own_ways(monkeypatch: pytest.MonkeyPatch):
    small, of_small = calls_of(ox.Optimal(4, bounds=ox.TightBounds(way="chains")), monkeypatch)
    large, of_large = calls_of(ox.Optimal(4, bounds=LargeTables()), monkeypatch)
    assert {"fused_root", "two_step_bounds"} <= of_small
    assert not of_small & {"score_pairs", "highest_bounds", "warm_up"}
    assert {"score_pairs", "highest_bounds", "two_step_bounds"} <= of_large
    assert not of_large & {"fused_root", "warm_up"}
    assert (small.formula, small.score, small.status) == (large.formula, large.score, large.status)


def test_tuning_goes_by_the_number_of_concepts():
    assert Tuning.of(int(FUSED_CELLS**0.5)).fused_root
    assert not Tuning.of(int(FUSED_CELLS**0.5) + 1).fused_root
    below, above = Tuning.of(SMALL_TABLE), Tuning.of(SMALL_TABLE + 1)
    assert (below.warms_up, above.warms_up) == (False, True)
    assert (below.few_concepts, above.few_concepts) == (0.0, 1 / 8)
    assert (below.short_beam, above.short_beam) == (0, 6)
    large = replace(above, warms_up=False, few_concepts=1 / 2, small_subproblem=0, fetched_cells=0)
    large = replace(large, sets_cells=0, shortest_by_shares=99)
    assert Tuning.large() == large
