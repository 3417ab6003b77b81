"""The oracle, against a plainer one: recursion, Python bools, exact fractions."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from helpers.strategies import BUT, XOR, Case, WeightedCase, cases, farey_case, weighted_cases
from helpers.support import examples
from helpers.tie_order import tie_key
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, AND_NOT, DEFAULT_OPERATORS, OR, Operator
from optexp_jax.methods import oracle
from optexp_jax.methods.oracle import OracleResult, best_formula, count_formulas, enumerate_formulas

TRUTH = {
    OR: {(True, True), (True, False), (False, True)},
    AND: {(True, True)},
    AND_NOT: {(True, False)},
    XOR: {(True, False), (False, True)},
    BUT: {(False, True)},
}


Chain = tuple[tuple[str, ...], tuple[Operator, ...]]


def chains(
    names: tuple[str, ...], length: int, operators: tuple[Operator, ...], start: Chain = ((), ())
) -> Iterator[Chain]:
    """Every chain of 1 to `length` distinct concepts that begins with `start`, by recursion."""
    concepts, steps = start
    if concepts:
        yield start
    if len(concepts) < length:
        for name in names:
            if name not in concepts:
                for operator in operators if concepts else (None,):
                    longer = (*concepts, name), steps if operator is None else (*steps, operator)
                    yield from chains(names, length, operators, longer)


def holds(concepts: tuple[str, ...], steps: tuple[Operator, ...], here: dict[str, bool]) -> bool:
    """Whether a chain holds at one location, by its truth tables."""
    value = here[concepts[0]]
    for name, operator in zip(concepts[1:], steps, strict=True):
        value = (value, here[name]) in TRUTH[operator]
    return value


def plain_optimum(
    names: tuple[str, ...],
    columns: list[tuple[dict[str, bool], int, int]],
    length: int,
    operators: tuple[Operator, ...],
) -> tuple[Formula | None, Fraction]:
    """The best formula over columns (concepts that hold, active locations, inactive locations)."""
    n = sum(active for _, active, _ in columns)
    best: list[Formula] = []
    top = Fraction(0)
    for concepts, steps in chains(names, length, operators):
        held = [column for column in columns if holds(concepts, steps, column[0])]
        ratio = Fraction(sum(c[1] for c in held), n + sum(c[2] for c in held))
        if ratio > top:
            best, top = [], ratio
        if ratio == top > 0:
            best.append(Formula(concepts, steps))
    locations = [here for here, active, inactive in columns if active + inactive]
    return min(best, key=lambda formula: tie_key(formula, locations), default=None), top


def check(found: OracleResult, expected: Formula | None, top: Fraction, neuron: int) -> None:
    assert Fraction(found.intersection, neuron + found.extras) == top
    assert found.formula == expected
    if expected is None:
        assert (found.intersection, found.extras) == (0, 0)


@st.composite
def searches(draw: st.DrawFn) -> tuple[int, tuple[Operator, ...]]:
    length = draw(st.integers(1, 3))
    chosen = draw(st.sampled_from([DEFAULT_OPERATORS, (OR,), (AND_NOT, XOR), (BUT, AND), (XOR,)]))
    return length, chosen


@given(cases(max_concepts=4, max_samples=2, max_locations=5), searches())
@examples(80)
def test_oracle_on_masks(case: Case, search: tuple[int, tuple[Operator, ...]]):
    length, operators = search
    columns = [
        (
            {name: bool(case.masks[k, x, y]) for k, name in enumerate(case.names)},
            int(case.bitmap[x, y]),
            int(not case.bitmap[x, y]),
        )
        for x in range(case.bitmap.shape[0])
        for y in range(case.bitmap.shape[1])
    ]
    expected, top = plain_optimum(case.names, columns, length, operators)
    found = case.optimum(length, operators)
    check(found, expected, top, int(case.bitmap.sum()))
    if found.formula is not None:
        held = case.mask(found.formula)
        assert found.intersection == (held & case.bitmap).sum()
        assert found.extras == (held & ~case.bitmap).sum()


@given(weighted_cases(max_concepts=3), searches())
@examples(80)
def test_oracle_on_large_counts(case: WeightedCase, search: tuple[int, tuple[Operator, ...]]):
    """Level and nearly level ratios of numbers about 2**40."""
    length, operators = search
    columns = [
        ({name: k in concepts for k, name in enumerate(case.names)}, active, size - active)
        for concepts, active, size in zip(case.sets, case.inside, case.sizes, strict=True)
    ]
    expected, top = plain_optimum(case.names, columns, length, operators)
    check(case.optimum(length, operators), expected, top, sum(case.inside))


@pytest.mark.parametrize("partner", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_floats_cannot_tell_the_best_two(partner: bool, seed: int):
    names = ("b", "a", "d", "c")
    case = farey_case(np.random.default_rng(seed), 40, names, partner, level=False)
    pair = [Formula.concept(name) for name in names[:2]]
    if partner:
        pair = [formula.then(OR, "d") for formula in pair]
    one, two = (Fraction(*case.score(formula)) for formula in pair)
    assert one != two
    assert float(one) == float(two)
    found = case.optimum(2 if partner else 1)
    assert found.formula == pair[0 if one > two else 1]
    assert Fraction(found.intersection, sum(case.inside) + found.extras) == max(one, two)
    # And level ones are told to be level: by name.
    case = farey_case(np.random.default_rng(seed), 40, names, partner, level=True)
    assert case.optimum(2 if partner else 1).formula == pair[1]


@given(cases(max_concepts=5, max_samples=2, max_locations=5), st.integers(1, 4))
@examples(20)
def test_every_formula_is_tried_once(case: Case, length: int):
    flat = case.masks.reshape(len(case.masks), -1)
    inside = case.bitmap.reshape(-1).astype(np.int64)
    tried: Counter[Chain] = Counter()
    previous = 0
    for scored in enumerate_formulas(flat, inside, 1 - inside, length, DEFAULT_OPERATORS):
        assert scored.concepts.shape[1] in (previous, previous + 1)  # shorter ones first
        previous = scored.concepts.shape[1]
        for row in range(len(scored.intersections)):
            formula = scored.formula(row, case.names, DEFAULT_OPERATORS)
            tried[formula.concepts, formula.operators] += 1
            held = case.mask(formula)
            assert scored.masks[row].tolist() == held.reshape(-1).tolist()
            assert scored.intersections[row] == (held & case.bitmap).sum()
            assert scored.extras[row] == (held & ~case.bitmap).sum()
    assert set(tried) == set(chains(case.names, length, DEFAULT_OPERATORS))
    assert set(tried.values()) == {1}
    n_formulas = count_formulas(len(case.names), length, 3)
    assert tried.total() == n_formulas == case.optimum(length).tried


@pytest.mark.parametrize(
    ("n_concepts", "length", "n_operators", "expected"),
    [
        (1, 1, 3, 1),
        (1, 5, 3, 1),
        (3, 1, 3, 3),
        (3, 2, 3, 21),
        (3, 3, 2, 39),
        (3, 9, 3, 75),
        (1198, 3, 3, 1198 + 3 * 1198 * 1197 + 9 * 1198 * 1197 * 1196),
    ],
)
def test_number_of_formulas(n_concepts: int, length: int, n_operators: int, expected: int):
    assert count_formulas(n_concepts, length, n_operators) == expected


@given(cases(max_concepts=4), st.integers(1, 200))
@examples(20)
def test_chunks_do_not_matter(case: Case, cells: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oracle, "CHUNK_CELLS", cells)
        assert case.optimum(3) == case.optimum(3)
        chunked = case.optimum(3)
    assert chunked == case.optimum(3)


def test_ties():
    """One location, every concept there: everything that holds is level."""
    masks = np.ones((3, 1), bool)
    one = np.ones(1, np.int64)
    found = best_formula(masks, one, 0 * one, ["c", "a", "b"], 3, DEFAULT_OPERATORS)
    assert found.formula == Formula.concept("a")

    # a and b cover half each; only an OR covers all. Of c OR b, b OR c the canonical form is one.
    masks = np.array([[1, 0], [0, 1], [1, 0]], bool)
    two = np.ones(2, np.int64)
    found = best_formula(masks, two, 0 * two, ["c", "b", "d"], 3, DEFAULT_OPERATORS)
    assert str(found.formula) == "(b OR c)"
    assert str(best_formula(masks, two, 0 * two, ["c", "b", "d"], 2, (XOR,)).formula) == "(b XOR c)"


def test_operators_break_ties_last():
    """(a OR b) and (a XOR b) hold at the same places here."""
    masks = np.array([[1, 0], [0, 1]], bool)
    two = np.ones(2, np.int64)
    for operators in ((OR, XOR), (XOR, OR)):
        found = best_formula(masks, two, 0 * two, ["a", "b"], 2, operators)
        assert str(found.formula) == "(a OR b)"


def test_many_level_formulas_take_no_time():
    """Most of these 240 000 formulas are as good as the first concept; none is written out."""
    masks, names = np.ones((40, 2), bool), [f"c{k}" for k in range(40)]
    found = best_formula(masks, np.ones(2, np.int64), np.zeros(2, np.int64), names, 3, (OR, AND))
    assert found.formula == Formula.concept("c0")
    assert found.tried == count_formulas(40, 3, 2)


def test_the_counterexample_to_naive_filters():
    """A source that stands outside the filter is not filtered: (a AND NOT d) OR b."""
    sets, inside, outside = [(0,), (0, 2), (1, 2), (2,)], [10, 0, 10, 0], [0, 10, 0, 100]
    sizes = tuple(i + o for i, o in zip(inside, outside, strict=True))
    case = WeightedCase(tuple(sets), sizes, tuple(inside), ("a", "b", "d"))
    found = case.optimum(3)
    assert str(found.formula) == "((a AND NOT d) OR b)"
    assert (found.intersection, found.extras) == (20, 0)
