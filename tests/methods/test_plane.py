"""Lines, corners and bases on the plane of extras and intersections."""

import itertools
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.methods.hull.plane import Line, Point, base_of_chord, corners, simplest_between

fractions = st.fractions(0, 1000, max_denominator=50)
positive = st.fractions(Fraction(1, 50), 1000, max_denominator=50)


@given(fractions, fractions)
def test_the_simplest_fraction_between(a: Fraction, b: Fraction):
    low, high = min(a, b), max(a, b)
    if low == high:
        return
    found = simplest_between(low, high)
    assert low < found < high
    for denominator in range(1, min(found.denominator, 60)):
        first = low * denominator // 1 + 1
        assert Fraction(first, denominator) >= high


@given(fractions)
def test_above_any_number(low: Fraction):
    assert simplest_between(low, None) > low


@given(st.lists(st.tuples(positive, positive), max_size=6), st.integers(0, 2000))
def test_corners_are_the_lowest_of_all_lines(drawn: list[tuple[Fraction, Fraction]], most: int):
    lines = [Line(Fraction(0), Fraction(500)), *(Line(*each) for each in drawn)]
    found = corners(lines, most)
    for corner in found:
        lowest = min(line.at(corner.at.extras) for line in lines)
        assert corner.at.intersection == lowest
        assert corner.at.extras <= most
    extras = [corner.at.extras for corner in found]
    assert extras == sorted(extras)
    # Between two corners the lowest line is straight.
    for left, right in itertools.pairwise(found):
        middle = Fraction(left.at.extras + right.at.extras) / 2
        straight = (left.at.intersection + right.at.intersection) / 2
        assert min(line.at(middle) for line in lines) == straight
    last = found[-1].at
    highest = min(line.at(most) for line in lines)
    assert last.intersection == highest


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_a_chord_meets_the_axis_at_its_base(e: int, i: int, wider: int, higher: int):
    left, right = Point(e, i), Point(e + wider, i + higher)
    base = base_of_chord(left, right)
    slope = Fraction(higher, wider)
    if base is None:
        assert i - slope * e <= 0
        return
    assert Fraction(left.intersection) / (base + left.extras) == slope
    assert Fraction(right.intersection) / (base + right.extras) == slope
