"""Filters that remove nothing of a part: which they are, and the order of results they decide."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.strategies import ALL_OPERATORS, XOR
from helpers.support import examples
from helpers.tie_order import plain_unverified, tie_key
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.counts.unverified import unverified_steps
from optexp_jax.methods.oracle import count_unverified, enumerate_formulas

NAMES = ("c", "a", "d", "b")


def table_of(sets: list[str], sizes: list[int] | None = None) -> ox.ConceptTable:
    """A table of locations, each with the concepts whose letters it is given as."""
    return ox.ConceptTable.from_signatures(
        [[NAMES.index(letter) for letter in held] for held in sets],
        [1] * len(sets) if sizes is None else sizes,
        NAMES,
    )


def steps(table: ox.ConceptTable, text: str) -> list[str]:
    formula = ox.Formula.parse(text, operators=(*ox.DEFAULT_OPERATORS, XOR))
    return [str(step) for step in unverified_steps(table, formula)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a OR b) AND NOT c", ["AND NOT c removes nothing of a"]),
        ("(b AND NOT c) OR a", []),
        ("(a OR b) AND c", []),
        ("(b OR c) AND d", ["AND d removes nothing of b", "AND d removes nothing of c"]),
        ("a AND NOT c", []),  # before the first OR: a shorter formula says the same
        ("(b AND c) AND NOT a", []),
        ("((b AND c) OR a) AND NOT d", ["AND NOT d removes nothing of a"]),
        ("a XOR c", ["XOR c removes nothing of a"]),
        ("b XOR c", []),
    ],
)
def test_which_they_are(text: str, expected: list[str]):
    assert steps(table_of(["a", "bcd", "cd", "bd"]), text) == expected


def test_the_core_is_one_part():
    # b and c meet d, but not where they meet each other.
    table = table_of(["bc", "bd", "cd", "ad", "a"])
    assert steps(table, "((b AND c) OR a) AND NOT d") == ["AND NOT d removes nothing of b AND c"]


def test_locations_that_are_not_there_do_not_count():
    text = "(a OR b) AND NOT c"
    sets = ["a", "ac", "bc", "b"]
    assert steps(table_of(sets), text) == []
    assert steps(table_of(sets, [1, 0, 1, 1]), text) == ["AND NOT c removes nothing of a"]


@dataclass(frozen=True)
class Cells:
    """Cells with the concepts they hold, and their active and inactive locations."""

    masks: np.ndarray
    inside: np.ndarray
    outside: np.ndarray

    @property
    def locations(self) -> list[dict[str, bool]]:
        there = np.flatnonzero(self.inside + self.outside)
        return [{n: bool(self.masks[k, x]) for k, n in enumerate(NAMES)} for x in there]

    @property
    def table(self) -> ox.ConceptTable:
        sets = [np.flatnonzero(column).tolist() for column in self.masks.T]
        return ox.ConceptTable.from_signatures(sets, self.inside + self.outside, NAMES)

    @property
    def neuron(self) -> ox.NeuronCounts:
        return ox.NeuronCounts.from_signatures(self.table, self.inside)


KINDS = ([0], [1], [1, 2], [2], [0, 1], [])
"""Concepts of cells in which the first and the third of them never meet, but the others do."""


def cells(seed: int) -> Cells:
    """Concepts that seldom meet, and a neuron that is a formula of them: many are level."""
    rng = np.random.default_rng(seed)
    masks, order = rng.random((4, 6)) < 0.3, rng.permutation(4)
    if rng.random() < 0.7:
        for x, held in enumerate(KINDS):
            masks[order[:3], x] = np.isin(np.arange(3), held)
    sizes = rng.integers(0, 3, 6) if rng.random() < 0.3 else np.ones(6, np.int64)
    first, second, third = masks[order[:3]]
    held = (first | second) & ~third if rng.random() < 0.7 else (first | second) & third
    inside = np.where(held, sizes, 0)
    if not inside.any():
        sizes = np.maximum(sizes, 1)
        inside[0] = sizes[0]
    return Cells(masks, inside, sizes - inside)


def best_by_hand(case: Cells, length: int, operators: tuple[ox.Operator, ...]) -> ox.Formula | None:
    size, best, found = int(case.inside.sum()), Fraction(0), []
    for scored in enumerate_formulas(case.masks, case.inside, case.outside, length, operators):
        for row in range(len(scored.intersections)):
            ratio = Fraction(int(scored.intersections[row]), size + int(scored.extras[row]))
            if ratio > best:
                best, found = ratio, []
            if ratio == best > 0:
                found.append(scored.formula(row, NAMES, operators))
    return min(found, key=lambda formula: tie_key(formula, case.locations), default=None)


@pytest.mark.parametrize(
    "method",
    [
        ox.Exhaustive(3),
        ox.Optimal(3),
        ox.Optimal(3, bounds=ox.PaperBounds(), batch_size=8),
        ox.Exhaustive(3, operators=(ox.OR, ox.AND_NOT, XOR)),
        ox.Optimal(3, operators=(ox.OR, ox.AND_NOT, XOR), batch_size=8),
    ],
    ids=["oracle", "tight", "published", "oracle, XOR", "published, XOR"],
)
@examples(40, in_thorough=1000)
@given(seed=seeds)
def test_results_have_the_fewest(method: ox.Exhaustive | ox.Optimal, seed: int):
    case = cells(seed)
    found = ox.explain(case.table, case.neuron, method)
    assert found.formula == best_by_hand(case, 3, method.operators)
    if found.formula is not None:
        assert len(found.unverified) == plain_unverified(found.formula, case.locations)


def test_the_cases_tell_orders_apart():
    """In a good share of them the smallest name is not the one with the fewest."""
    differ = 0
    for seed in range(60):
        case = cells(seed)
        found = ox.explain(case.table, case.neuron, ox.Optimal(3, top_k=2))
        differ += any(other < found.formula for other in found.equivalents)
    assert differ >= 5


@examples(100)
@given(seed=seeds, order=st.permutations(NAMES), codes=st.lists(st.integers(0, 4), min_size=3))
def test_three_ways_to_count_agree(seed: int, order: list[str], codes: list[int]):
    case = cells(seed)
    formula = ox.Formula(tuple(order), tuple(ALL_OPERATORS[code] for code in codes[:3]))
    expected = plain_unverified(formula, case.locations)
    assert len(unverified_steps(case.table, formula)) == expected
    there = case.inside + case.outside > 0
    held = {name: mask & there for name, mask in zip(NAMES, case.masks, strict=True)}
    assert count_unverified(formula, held) == expected


def test_equal_formulas_have_equal_steps():
    table = table_of(["a", "bc", "cd", "bd"])
    for names in permutations("abcd"):
        for operators in permutations([ox.OR, ox.OR, ox.AND_NOT]):
            formula = ox.Formula(names, operators)
            assert unverified_steps(table, formula) == unverified_steps(table, formula.canonical)


def test_equivalents_come_in_the_same_order():
    table = ox.ConceptTable.from_signatures(
        [[0], [1], [1, 2], [2]], [10, 10, 5, 10], ["ball_pit", "flower", "dining"]
    )
    neuron = ox.NeuronCounts.from_signatures(table, [9, 9, 0, 0])
    for bounds in (ox.TightBounds(), ox.PaperBounds()):
        found = ox.explain(table, neuron, ox.Optimal(3, bounds=bounds, top_k=2))
        assert str(found.formula) == "((flower AND NOT dining) OR ball_pit)"
        assert [str(f) for f in found.equivalents] == ["((ball_pit OR flower) AND NOT dining)"]


def test_a_beam_keeps_its_order_and_tells_the_step():
    table = ox.ConceptTable.from_signatures(
        [[0], [1], [1, 2], [2]], [10, 10, 5, 10], ["ball_pit", "flower", "dining"]
    )
    neuron = ox.NeuronCounts.from_signatures(table, [9, 9, 0, 0])
    found = ox.explain(table, neuron, ox.Beam(3))
    assert str(found.formula) == "((ball_pit OR flower) AND NOT dining)"
    (step,) = found.unverified
    assert (step.operator, step.concept, step.part) == (ox.AND_NOT, "dining", ("ball_pit",))
