"""The tight search at a size where nothing can be tried by hand: against plain enumeration."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.many_concepts import many_concepts, noisy, overlapping
from helpers.support import thorough
from helpers.tight_helpers import solve

import optexp_jax as ox
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.bounds.tight.search import warmup
from optexp_jax.internal.tracing import count_traces


def by_enumeration(table: ox.ConceptTable, neuron: ox.NeuronCounts, length: int) -> tuple[int, int]:
    """The best score of all formulas of at most so many concepts, over signatures."""
    masks = np.stack([table.signatures.membership(k) for k in range(table.n_concepts)])
    counts = np.stack([neuron.inside, neuron.outside], axis=1).astype(float)  # far below 2**53
    best = (0, 1)

    def offer(counted: np.ndarray) -> None:
        nonlocal best
        intersections, unions = counted[:, 0], counted[:, 1] + neuron.size
        row = int((intersections / unions).argmax())
        score = int(intersections[row]), int(unions[row])
        if score[0] * best[1] > best[0] * score[1]:
            best = score

    def joined(left: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Counts of `left∘x` for all operators and all x that a row of `left` does not have.

        A repeated concept would not only make a formula shorter: `((a AND NOT b) OR c) AND a` is no
        chain of distinct concepts.
        """
        own, alone = left @ counts, masks @ counts
        shared = np.stack(
            [(left * part) @ masks.T.astype(float) for part in counts.T], axis=2
        )  # [left, x, 2]
        own, alone = own[:, None], alone[None]
        found = np.stack([own + alone - shared, shared, own - shared], axis=1)  # [left, 3, x, 2]
        return np.moveaxis(found, 1, 2)[~used].reshape(-1, 2)

    def grow(left: np.ndarray, used: np.ndarray, steps: int) -> None:
        """Offer what one step makes of each mask, and then what more steps do."""
        offer(joined(left, used))
        if steps == 1:
            return
        row, x = np.nonzero(~used)
        wider = [left[row] | masks[x], left[row] & masks[x], left[row] & ~masks[x]]
        taken = used[row] | np.eye(len(masks), dtype=bool)[x]
        kept = np.unique(np.hstack([np.concatenate(wider), np.tile(taken, (3, 1))]), axis=0)
        for start in range(0, len(kept), 2**13):
            part = kept[start : start + 2**13]
            grow(part[:, : masks.shape[1]], part[:, masks.shape[1] :], steps - 1)

    offer(masks @ counts)
    if length > 1:
        grow(masks, np.eye(len(masks), dtype=bool), length - 1)
    return best


@pytest.mark.parametrize("as_large", [False, True])
def test_four_of_many_overlapping_concepts(as_large: bool, fresh_seed: int):
    # More of everything than fits one chunk, against plain enumeration.
    rng = np.random.default_rng(fresh_seed)
    table = overlapping(rng, 34, 120)
    for unit in range(10 if thorough() else 1):
        neuron = noisy(rng, table, n_sources=2 + unit % 6)
        found = solve(table, neuron, ox.Optimal(4), as_large)
        assert found.status == "optimal"
        assert found.score.ratio == Fraction(*by_enumeration(table, neuron, 4))


def test_forty_overlapping_concepts(fresh_seed: int):
    rng = np.random.default_rng(5)
    table = overlapping(rng, 40, 600)
    assert len(table.signatures) > 400
    first = None
    for unit in range(40 if thorough() else 4):
        neuron = noisy(rng, table, n_sources=2 + unit % 6)
        found = solve(table, neuron, ox.Optimal(3, bounds=TightBounds(beam=unit % 3)))
        assert found.score.ratio == Fraction(*by_enumeration(table, neuron, 3))
        assert found.status == "optimal"
        assert found.formula is not None
        held = table.holds(found.formula)
        assert int(neuron.inside[held].sum()) == found.intersection
        if first is None:  # Of this one it is known how much is left to be tried.
            first, rng = found, np.random.default_rng(fresh_seed)
    assert first is not None
    # The bounds leave next to nothing of the 530 000 formulas to be tried.
    assert first.stats.expanded < 1000


def test_long_formulas_of_disjoint_concepts():
    # The best unions are known; no step that changes nothing is followed.
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 10_000, 60)
    table = ox.ConceptTable.from_signatures([[k] for k in range(60)], sizes, n_locations=10**6)
    for n_active in (2, 5, 12):
        rates = np.zeros(60)
        rates[:n_active] = rng.uniform(0.3, 0.9, n_active)
        neuron = ox.NeuronCounts.from_signatures(table, rng.binomial(sizes, rates), uncovered=500)
        own = table.signatures.incidence.T @ np.stack([neuron.inside, table.sizes], 1)
        order = np.argsort(-own[:, 0] / own[:, 1])  # A union takes the densest concepts first.
        prefixes = [own[order[:k]].sum(0).tolist() for k in range(1, 9)]
        best = max(Fraction(i, neuron.size + size - i) for i, size in prefixes)
        found = solve(table, neuron, ox.Optimal(8))
        assert found.status == "optimal"
        assert found.score.ratio >= best
        assert found.stats.expanded < 100
        if n_active < 8:  # Then taking no more than these is best.
            assert found.score.ratio == best


@pytest.mark.parametrize("length", [3, 4])
def test_units_of_one_table_share_their_programs(length: int):
    rng = np.random.default_rng(11)
    table = overlapping(rng, 40, 600)
    method = ox.Optimal(length, bounds=TightBounds(beam=6))
    known = 0
    for unit in range(50):
        neuron = noisy(rng, table, n_sources=2 + unit % 6)
        solve(table, neuron, method)
        # The first few need every program there is.
        known = count_traces() if unit < 10 else known
    assert count_traces() == known


# Many concepts: what is compiled.


KINDS_OF_UNITS = ((3, 0.01), (1, 0.001), (0, 0.02), (12, 0.1), (2, 0.3))
"""Sources and noise: units that few concepts explain, or one, or nothing, or much."""


SEARCHES = {"3": (3, False), "4": (4, False), "disjoint": (5, True)}


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        *(("host", name) for name in SEARCHES),
        ("device", "3"),
        *(pytest.param("device", name, marks=pytest.mark.slow) for name in ("4", "disjoint")),
    ],
)
def test_the_first_unit_compiles_for_all(choice: str, name: str):
    length, disjoint = SEARCHES[name]
    rng = np.random.default_rng(length)
    table = many_concepts(rng, disjoint)
    with ox.kernels(choice):
        # However soon it is over.
        solve(table, noisy(rng, table, 1, 0.001), ox.Optimal(length))
        known = count_traces()
        for n_sources, noise in KINDS_OF_UNITS * (10 if thorough() else 1):
            neuron = noisy(rng, table, n_sources, noise)
            found = solve(table, neuron, ox.Optimal(length, time_limit=5.0))
            assert found.stats.compilations == 0
        assert count_traces() == known


def test_a_warm_up_that_was_stopped_goes_on(monkeypatch: pytest.MonkeyPatch):
    walked: list[bool] = []
    original = warmup._walk

    def note(*args: Any) -> None:
        walked.append(True)
        original(*args)

    monkeypatch.setattr(warmup, "_walk", note)
    rng = np.random.default_rng(0)
    # A number of concepts of its own: what was called for others does not count.
    table = many_concepts(rng, disjoint=False, n_concepts=272)
    neuron = noisy(rng, table, n_sources=3)
    stopped = solve(table, neuron, ox.Optimal(3, time_limit=1e-9))
    assert stopped.status == "feasible"
    assert not walked
    assert solve(table, neuron, ox.Optimal(3)).status == "optimal"
    warmed_up = len(walked)
    assert warmed_up > 1
    assert solve(table, neuron, ox.Optimal(3)).status == "optimal"
    assert len(walked) == warmed_up
