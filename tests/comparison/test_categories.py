"""The paper's categories, and whether results contradict each other, in exact numbers."""

from fractions import Fraction

import pytest
from helpers.comparison_cases import found
from helpers.strategies import XOR
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.comparison.category import DIFFERING, Category, category_of
from optexp_jax.comparison.contradictions import disproves
from optexp_jax.methods import FormulaSpace

BIG = 10**17
SPACE = FormulaSpace(3, ox.DEFAULT_OPERATORS)


@pytest.mark.parametrize(
    ("a", "b", "category"),
    [
        (found("a OR b", 3, 10), found("b OR a", 3, 10), "same"),
        (found("a OR b", 3, 10), found("a OR c", 4, 10), "1"),
        (found("a OR b", 3, 10), found("a", 4, 10), "1"),
        (found("a OR b", 4, 10), found("a OR c", 3, 10), "1"),
        (found("a OR b", 3, 10), found("a AND b", 4, 10), "2"),
        (found("a OR b AND c", 3, 10), found("a AND c OR b", 3, 10), "3"),
        (found("a OR b AND c", 3, 10), found("a AND c OR b", 6, 20), "3"),
        (found("a OR b", 3, 10), found("a OR c", 3, 10), "tie"),
        (found("a OR b", 3, 10), found("a OR c", 6, 20), "tie"),
        (found("a OR b", 3, 10), found("a OR b", 4, 10), "data"),
        (found(None, 0, 10), found(None, 0, 10), "same"),
        (found(None, 0, 10), found("a", 1, 10), "1"),
        (found(None, 0, 10), found("a", 0, 12), "tie"),
    ],
)
def test_categories(a: ox.Explanation, b: ox.Explanation, category: str):
    assert category_of(a, b) == category
    assert category_of(b, a) == category


@pytest.mark.parametrize(("other", "category"), [("a OR c", "1"), ("a AND b", "2")])
def test_ious_that_round_to_one_float_differ(other: str, category: str):
    a, b = found("a OR b", BIG, 3 * BIG), found(other, BIG + 1, 3 * BIG + 2)
    assert a.iou == b.iou
    assert category_of(a, b) == category


@given(
    st.integers(0, 2**62),
    st.integers(1, 2**62),
    st.integers(0, 2**62),
    st.integers(1, 2**62),
    st.sampled_from(["a OR b", "a AND b", "a", "c"]),
)
@examples(100)
def test_categories_are_decided_by_fractions(i: int, u: int, k: int, v: int, text: str):
    a, b = found("a OR b", min(i, u), u), found(text, min(k, v), v)
    level = Fraction(min(i, u), u) == Fraction(min(k, v), v)
    expected = {
        "a OR b": ("same", "data"),
        "a AND b": ("3", "2"),
        "a": ("tie", "1"),
        "c": ("tie", "1"),
    }[text][0 if level else 1]
    assert category_of(a, b) == expected


def test_categories_say_what_they_mean():
    assert [category.value for category in DIFFERING] == ["1", "2", "3", "tie"]
    assert Category("2").label == "2: same concepts, other IoU"
    assert not Category.SAME.differs
    assert not Category.DATA.differs


def test_an_iou_above_an_optimum_disproves_it():
    claimed = found("a", 3, 10, optimal=True)
    assert disproves(found("b", 4, 10), claimed, SPACE)
    assert not disproves(found("b", 3, 10), claimed, SPACE)
    assert not disproves(found("b", 6, 20), claimed, SPACE)
    assert not disproves(found("b", 2, 10), claimed, SPACE)


def test_rounding_hides_no_contradiction():
    claimed, above = found("a", BIG, 3 * BIG, optimal=True), found("b", BIG + 1, 3 * BIG + 2)
    assert above.iou == claimed.iou
    assert disproves(above, claimed, SPACE)
    assert not disproves(claimed, above, SPACE)


def test_formulas_outside_a_claim_disprove_nothing():
    claimed = found("a", 3, 10, optimal=True)
    assert not disproves(found("a OR b", 4, 10), claimed, FormulaSpace(1, ()))
    assert not disproves(found("a AND b", 4, 10), claimed, FormulaSpace(3, (ox.OR,)))
    xor = ox.Explanation(ox.Formula(("a", "b"), (XOR,)), 4, 10, 1.0, ox.Status.FEASIBLE)
    assert not disproves(xor, claimed, SPACE)
    assert disproves(xor, claimed, FormulaSpace(3, (XOR,)))
    assert not disproves(found("b", 4, 10), claimed, None)
    assert not disproves(found(None, 0, 10), claimed, SPACE)


def test_upper_bounds_are_claims_too():
    stopped = found("a", 3, 10, upper_bound=0.35)
    assert disproves(found("b", 4, 10), stopped, SPACE)
    assert not disproves(found("b", 35, 100), stopped, SPACE)
    assert not disproves(found("b", 4, 10), found("a", 3, 10), SPACE)
