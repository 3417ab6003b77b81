"""The plane of formulas: extras E to the right, intersections I upward, in exact fractions.

A search with base M that ends at the value u proves `I <= u·(M + E)` for all formulas: no point is
above the line of slope u through (−M, 0). Such lines, with `E >= 0` and what can be covered at
most, fence in all formulas. The fence is a concave chain of corners
(`docs/explanation/trade_off.md`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optexp_jax.counts.metrics import Exact


@dataclass(frozen=True)
class Point:
    """A place of the plane."""

    extras: Exact
    intersection: Exact

    @property
    def whole(self) -> bool:
        """Whether a formula can be there: counts are integers."""
        return Fraction(self.extras).denominator == Fraction(self.intersection).denominator == 1


@dataclass(frozen=True)
class Line:
    """No formula is above it: `I <= height + slope·E`."""

    slope: Fraction
    height: Fraction
    touched: tuple[Point, ...] = ()
    """Formulas on it, from left to right."""

    @classmethod
    def through(cls, base: Exact, value: Exact, touched: Sequence[Point] = ()) -> "Line":
        """What a search with a base proves that ends at a value."""
        value = Fraction(value)
        return cls(value, value * base, tuple(sorted(touched, key=lambda point: point.extras)))

    @property
    def base(self) -> Fraction:
        """Where it meets the axis, to the left of 0; it must not be level."""
        return self.height / self.slope

    def at(self, extras: Exact) -> Fraction:
        """How high it is."""
        return self.height + self.slope * extras


@dataclass(frozen=True)
class Corner:
    """Where two lines of the fence meet; `left` is None on the axis `E = 0`."""

    at: Point
    left: Line | None
    right: Line


def corners(lines: Sequence[Line], most_extras: int) -> list[Corner]:
    """The fence that some lines make, from left to right. One of them has to be level."""
    line = min(lines, key=lambda each: (each.height, each.slope))
    found = [Corner(Point(Fraction(0), line.height), None, line)]
    while line.slope > 0:
        flatter = [each for each in lines if each.slope < line.slope]
        meets = {
            id(each): (each.height - line.height) / (line.slope - each.slope) for each in flatter
        }
        after = min(flatter, key=lambda each: (meets[id(each)], each.slope))
        extras = min(meets[id(after)], Fraction(most_extras))
        found.append(Corner(Point(extras, line.at(extras)), line, after))
        if extras == most_extras:
            break
        line = after
    return found


def base_of_chord(left: Point, right: Point) -> Fraction | None:
    """The base whose line goes through both points; None if that is not a positive number."""
    wider, higher = right.extras - left.extras, right.intersection - left.intersection
    if wider <= 0 or higher <= 0:
        return None
    base = Fraction(left.intersection) * wider / higher - left.extras
    return base if base > 0 else None


def simplest_between(low: Fraction, high: Fraction | None) -> Fraction:
    """The fraction of the smallest denominator strictly between two numbers; None is infinite."""
    whole = math.floor(low)
    if high is None or whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # Then high <= whole + 1: one over a number above 1 / (high − whole).
        return whole + 1 / Fraction(math.floor(1 / (high - whole)) + 1)
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))
