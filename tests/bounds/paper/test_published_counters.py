"""Counters as the paper has them, with children that are nothing new, and work in vain."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.search_cases import ONE_BY_ONE, USUAL, seeds
from helpers.support import examples
from hypothesis import given

import optexp_jax as ox
from optexp_jax.explanation import SearchStats
from optexp_jax.methods.beam import beam as beam_module
from optexp_jax.methods.beam.candidates import new_candidates
from optexp_jax.testing import Case

GUIDES = {"quantity": ox.QuantityGuide(), "mmesh": ox.MMESHGuide(), "vanilla": None}
each_guide = pytest.mark.parametrize("guide", GUIDES.values(), ids=list(GUIDES))
PLAIN = ("visited", "expanded", "estimated")


def patches(n_concepts: int, seed: int = 0) -> tuple[ox.ConceptTable, np.ndarray]:
    """Disjoint concepts, each a few scattered squares, and a unit active on parts of them."""
    rng = np.random.default_rng(seed)
    n = int(np.ceil(np.sqrt(3 * n_concepts)))
    grid = rng.permutation(n * n).reshape(n, n) % n_concepts
    labels = np.stack([np.kron(np.roll(grid, k), np.ones((2, 2), int)) for k in range(3)])
    names = [f"n{k:04d}" for k in range(n_concepts)]
    table = ox.ConceptTable.from_masks(labels == np.arange(n_concepts)[:, None, None, None], names)
    return table, rng.random(labels.shape) < rng.uniform(0.2, 0.9, n_concepts)[labels]


def explain(table, unit, monkeypatch, guide, **settings) -> tuple[SearchStats, list[list]]:
    """The counters of a beam, and the formulas that it expanded, level by level."""
    expanded: list[list[ox.Formula]] = []

    def spy(members, left_out, operators):
        expanded.append([member.candidate.formula for member in members])
        return new_candidates(members, left_out, operators)

    monkeypatch.setattr(beam_module, "new_candidates", spy)
    method = ox.Beam(3, guide=guide, published_counters=True, **settings)
    return ox.explain(table, unit, method).stats, expanded


def children(table: ox.ConceptTable, formulas: list[ox.Formula]) -> int:
    """How many formulas come of joining every other concept with every operator."""
    return len(
        {
            formula.then(operator, name)
            for formula in formulas
            for operator in ox.DEFAULT_OPERATORS
            for name in table.names
            if name not in formula.concepts
        }
    )


SIZES = [19, 847, pytest.param(1198, marks=pytest.mark.slow)]


@each_guide
@pytest.mark.parametrize("n_concepts", SIZES)
def test_estimates_of_beams(n_concepts: int, guide, monkeypatch: pytest.MonkeyPatch):
    stats, _ = explain(*patches(n_concepts), monkeypatch, guide)
    assert stats.expanded == 15
    most = 30 * (n_concepts - 1) - 90 + 15 * (n_concepts - 2)
    # 10 atoms and 5 pairs; 45 ORs and 45 ANDs of atoms are there twice, and up to 10 triples.
    assert most == {19: 705, 847: 37965, 1198: 53760}[n_concepts]
    assert most - 10 <= stats.estimated <= most


@each_guide
@given(seed=seeds)
@examples(8)
def test_estimates_follow_from_what_was_expanded(guide, seed: int):
    rng = np.random.default_rng(seed)
    table, unit = patches(7, seed)
    # Concepts that miss the unit, so that the first beam is not full.
    unit &= ~np.isin(rng.integers(0, 7, unit.shape), rng.permutation(7)[: seed % 5])
    unit[0, 0, 0] = True
    with pytest.MonkeyPatch.context() as patch:
        stats, expanded = explain(table, unit, patch, guide)
    assert stats.expanded == sum(map(len, expanded))
    assert stats.estimated == sum(children(table, level) for level in expanded)
    if guide is None:
        assert stats.visited == stats.estimated


def test_guides_differ_as_published(monkeypatch: pytest.MonkeyPatch):
    # The spatial guide does not know that a concept is disjoint from a formula, and looks at it.
    table, _ = patches(19)
    # The unit fires on one concept and a little of the others: that concept AND NOT another is as
    # good as itself.
    rng = np.random.default_rng(0)
    first = table.mask(ox.Formula.concept("n0000"))
    unit = rng.random(first.shape) < np.where(first, 0.8, 0.05)
    stats = {name: explain(table, unit, monkeypatch, g)[0] for name, g in GUIDES.items()}
    assert stats["quantity"].visited < stats["mmesh"].visited < stats["vanilla"].visited
    plain = ox.explain(table, unit, ox.Beam(3, guide=GUIDES["mmesh"])).stats
    assert plain.estimated < stats["mmesh"].estimated / 3
    assert plain.visited < stats["mmesh"].visited


@pytest.mark.parametrize("n_concepts", [19])
def test_beams_find_no_less_by_counting(n_concepts: int):
    for seed in range(5):
        table, unit = patches(n_concepts, seed)
        plain, counted = (
            ox.explain(table, unit, ox.Beam(3, published_counters=on)) for on in (False, True)
        )
        # The quantity guide never looks at what is nothing new once the beam is full.
        assert plain.formula == counted.formula
        assert plain.stats.visited == counted.stats.visited


# The optimal search.


@examples(12, in_thorough=600)
@given(seed=seeds)
def test_counting_changes_nothing_else(seed: int):
    case = ONE_BY_ONE.case(seed)
    plain, counted = (
        ox.explain(case.table, case.neuron, ONE_BY_ONE.method(published_counters=on))
        for on in (False, True)
    )
    assert (plain.formula, plain.score) == (counted.formula, counted.score)
    assert plain.stats.expanded == counted.stats.expanded
    assert plain.stats.estimated <= counted.stats.estimated
    assert counted.stats.visited <= plain.stats.visited


def test_degenerate_children_count():
    # Disjoint concepts: by AND and AND NOT nothing is made, and the paper makes all of them.
    masks = np.eye(6, dtype=bool).repeat(6, axis=1).reshape(6, 3, 12)
    inside = np.tile([1, 1, 0, 1, 0, 1], 6).reshape(3, 12)
    case = Case(masks, inside, 1 - inside)
    settings = {"discards": False, "propagation": False}
    method = replace(ONE_BY_ONE, index_order=False).method
    plain, counted = (
        ox.explain(case.table, case.neuron, method(published_counters=on, **settings)).stats
        for on in (False, True)
    )
    assert plain.expanded == counted.expanded
    assert plain.estimated < counted.estimated
    # Every expansion makes a label of each concept that is not held: five or four.
    assert 4 * counted.expanded <= counted.estimated <= 5 * counted.expanded


def test_prefixes_are_not_visited():
    rng = np.random.default_rng(1)
    masks = rng.random((6, 3, 12)) < 0.4
    inside = (rng.random((3, 12)) < 0.4).astype(np.int64)
    case = Case(masks, inside, 1 - inside)
    plain, counted = (
        ox.explain(case.table, case.neuron, ONE_BY_ONE.method(published_counters=on)).stats
        for on in (False, True)
    )
    assert plain.visited > counted.visited > 0


# Work in vain.


@examples(12, in_thorough=600)
@given(seed=seeds)
def test_work_in_vain_is_part_of_the_counters(seed: int):
    case = USUAL.case(seed)
    one = ox.explain(case.table, case.neuron, ONE_BY_ONE.method())
    many = ox.explain(case.table, case.neuron, USUAL.method())
    assert many.formula == one.formula
    for counter in PLAIN:
        in_vain = getattr(many.stats.speculative, counter)
        assert 0 <= in_vain <= getattr(many.stats, counter)
        assert getattr(one.stats.speculative, counter) == 0
