"""Printed forms that do not hold, each with data on which it fails and ours does not.

`docs/explanation/misprints.md` lists them by the same names.
"""

from dataclasses import dataclass
from fractions import Fraction

import jax
import numpy as np
import pytest
from helpers.search_cases import USUAL, as_chains, split, view_of

import optexp_jax as ox
from optexp_jax.bounds.paper.chains import estimate_chains
from optexp_jax.methods.oracle import count_formulas
from optexp_jax.testing import Case

NAMES = "abcdef"
DEPTH = 3
OPERATORS = ox.DEFAULT_OPERATORS
OR, AND, NOT, FINAL = 0, 1, 2, 3

compiled_estimates = jax.jit(estimate_chains)


def data(**counts: tuple[int, int]) -> Case:
    """Active and inactive locations of each concept set; `_` is the empty set.

    All in the first of three samples, with six concepts, so that one program serves all tests.
    """
    cells = [
        (names.strip("_"), inside)
        for names, pair in counts.items()
        for inside, count in zip((1, 0), pair, strict=True)
        for _ in range(count)
    ]
    masks = np.zeros((6, 3, len(cells)), bool)
    inside = np.zeros((3, len(cells)), np.int64)
    for cell, (names, active) in enumerate(cells):
        masks[[NAMES.index(name) for name in names], 0, cell] = True
        inside[0, cell] = active
    return Case(masks, inside, 1 - inside)


def without_silent_concepts(case: Case) -> np.ndarray:
    """Concepts that lie somewhere: the empty ones only fill up the shape."""
    return np.flatnonzero(case.masks.any((1, 2)))


def iou(case: Case, text: str) -> Fraction:
    held = ox.Formula.parse(text).evaluate(dict(zip(NAMES, case.masks, strict=True)))
    inside, outside = int((held * case.inside).sum()), int((held * case.outside).sum())
    return Fraction(inside, int(case.inside.sum()) + outside)


@dataclass(frozen=True)
class Sums:
    """What the aggregated estimates are made of, for one label."""

    n: int
    nc: int
    seu: int
    sec: int
    iu: int
    ic: int
    eu: int
    ec: int
    bottom_ic: int
    """The smallest I^C of a concept."""
    bottom_ec: int


def sums(case: Case, label: str) -> Sums:
    here = case.masks.sum(0)
    concepts = split(case, case.masks[without_silent_concepts(case)]).aggregate()
    held = ox.Formula.parse(label).evaluate(dict(zip(NAMES, case.masks, strict=True)))
    own = split(case, held[None]).aggregate()
    return Sums(
        n=int(case.inside.sum()),
        nc=int(case.inside[here > 1].sum()),
        seu=int(case.outside[here == 1].sum()),
        sec=int(case.outside[here > 1].sum()),
        **{part: int(getattr(own, part)[0, 0]) for part in ("iu", "ic", "eu", "ec")},
        bottom_ic=int(concepts.ic.min()),
        bottom_ec=int(concepts.ec.min()),
    )


@dataclass(frozen=True)
class Ours:
    """Our estimates of a label's paths, by kind."""

    lower: list[float]
    upper: list[float]


def ours(case: Case, label: str, *, aggregated: bool) -> Ours:
    formula = ox.Formula.parse(label)
    concepts = np.full((1, DEPTH), -1, np.int32)
    operators = np.full((1, DEPTH), -1, np.int32)
    concepts[:, : len(formula)] = [NAMES.index(name) for name in formula.concepts]
    operators[:, 1 : len(formula)] = [OPERATORS.index(o) for o in formula.operators]
    view = view_of(case, OPERATORS, DEPTH, aggregated=aggregated)
    with jax.enable_x64(True):
        found = compiled_estimates(view, as_chains(concepts, operators))
        return Ours(*(np.asarray(part)[0].tolist() for part in (found.lower, found.upper)))


def assert_ours_hold(case: Case, label: str, kind: int, formula: str) -> None:
    for aggregated in (False, True):
        estimates = ours(case, label, aggregated=aggregated)
        assert Fraction(estimates.lower[kind]) <= iou(case, formula)
        assert iou(case, formula) <= Fraction(estimates.upper[kind])


def best_of(case: Case) -> tuple[str, Fraction]:
    """What our search finds, with concepts named a, b, c..."""
    table = ox.ConceptTable.from_masks(case.masks, list(NAMES))
    found = ox.explain(table, case.inside.astype(bool), USUAL.method())
    assert found.status == "optimal"
    return str(found.formula), found.score.ratio


# Unions that are too large or too small.


def test_union_min_of_an_aggregated_and_not_path():
    # Printed: |N| + E^C_min. AND NOT can take away all common extras; unique ones stay: |N| + E^U.
    case = data(a=(5, 0), ab=(0, 10))
    label = sums(case, "a")
    i_max = label.iu + min(label.ic, label.nc - label.bottom_ic)
    printed = Fraction(i_max, label.n + label.ec)
    assert printed == Fraction(5, 15)
    assert iou(case, "a AND NOT b") == 1 > printed
    assert_ours_hold(case, "a", NOT, "a AND NOT b")


def test_union_max_of_an_and_not_path():
    # Printed: |N| + E^C_max + min(E^U, SE^C - Bott(E^C)), with the cap on the wrong term.
    case = data(a=(4, 1), b=(0, 1))
    label = sums(case, "a")
    union_max = label.n + label.ec + min(label.eu, label.sec - label.bottom_ec)
    printed = Fraction(label.iu, union_max)
    assert printed == 1
    assert iou(case, "a AND NOT b") == Fraction(4, 5) < printed
    assert_ours_hold(case, "a", NOT, "a AND NOT b")


# Outside: a meets each of b, c, d once, and those meet each other elsewhere. Inside: all at once.
THREE_ANDS = {"abcd": (1, 0), "ab": (0, 1), "ac": (0, 1), "ad": (0, 1), "bcd": (0, 1)}


def printed_and_union_min(label: Sums) -> int:
    return label.n + max(label.ec + label.bottom_ec - label.sec, 0)


def test_union_min_of_an_aggregated_and_path():
    # Printed: |N| + max(E^C_min + Bott(E^C) - SE^C, 0). It holds for one AND, not for two.
    case = data(**THREE_ANDS)
    label = sums(case, "a")
    printed = Fraction(min(label.ic, 1), printed_and_union_min(label))
    assert printed == Fraction(1, 2)
    assert all(iou(case, f"a AND {name}") <= printed for name in "bcd")
    assert iou(case, "a AND b AND c") == 1 > printed
    assert_ours_hold(case, "a", AND, "a AND b AND c")


def test_union_min_of_a_path_with_and_and_and_not():
    # Printed: the smaller of both paths, which inherits the fault of AND. The label's unique
    # extras make the one of AND NOT, |N| + E^U, no help.
    case = data(ab=(1, 0), abc=(0, 1), a=(0, 1))
    label = sums(case, "a")
    union_min = min(printed_and_union_min(label), label.n + label.eu)
    i_max = max(label.ic, label.iu + min(label.ic, label.nc - label.bottom_ic))
    printed = Fraction(i_max, union_min)
    assert printed == Fraction(1, 2)
    assert iou(case, "a AND b AND NOT c") == 1 > printed
    assert_ours_hold(case, "a", AND, "a AND b AND NOT c")
    assert_ours_hold(case, "a", NOT, "a AND NOT c AND b")


def test_union_min_of_a_path_with_or_and_and_not():
    # With the printed form of AND NOT both parts contain E^C: the minimum does too.
    case = data(a=(4, 0), ab=(0, 10), c=(1, 0))
    label = sums(case, "a")
    printed = Fraction(label.n, label.n + min(label.ec, label.ec + label.eu))
    assert printed == Fraction(5, 15)
    assert iou(case, "a AND NOT b OR c") == 1 > printed
    assert_ours_hold(case, "a", NOT, "a AND NOT b OR c")


def test_the_explicit_form_of_a_path_with_or_and_and():
    # Printed below the line: |N| + (E^C_max + Bott(E^C) - SE^C): the maximum, where only the
    # minimum is sure, for any number of ANDs, and an OR before them does not help.
    case = data(**THREE_ANDS)
    label = sums(case, "a")
    printed = Fraction(label.n, label.n + label.ec + label.bottom_ec - label.sec)
    assert printed == Fraction(1, 2)
    assert iou(case, "a AND b AND c") == 1 > printed
    assert_ours_hold(case, "a", AND, "a AND b AND c")


def test_e_min_of_an_aggregated_and_label():
    # Printed with the left side's E^C, which is not known of a compound label; with its estimate
    # from above the result is no lower bound.
    case = data(_=(1, 0), ac=(0, 2), bc=(0, 2))
    a, b, c = (sums(case, name) for name in "abc")
    left_max = min(a.ec, b.ec)
    printed = max(left_max + c.ec - c.sec, 0)
    assert printed == 2
    assert sums(case, "a AND b AND c").ec == 0 < printed


def test_caps_that_the_text_states():
    # "I^C_max < N^C": it can be equal. "E^U < SE^C": E^U is below SE^U, not SE^C.
    case = data(ab=(2, 0), a=(0, 3))
    label = sums(case, "a")
    assert label.ic == label.nc == 2
    assert label.eu == label.seu == 3 > label.sec == 0


# Steps of the search.


def test_dropping_what_is_level_with_min_iou():
    # Printed: keep only what is above MinIoU. A single concept is exact, so both its estimates
    # are level, and the concept that set MinIoU would be dropped. Here it is the optimum.
    case = data(a=(3, 1), b=(0, 4), c=(0, 2))
    label = sums(case, "a")
    exact = Fraction(label.iu + label.ic, label.n + label.eu + label.ec)
    assert exact == iou(case, "a")
    for aggregated in (False, True):
        estimates = ours(case, "a", aggregated=aggregated)
        assert Fraction(estimates.lower[FINAL]) <= exact <= Fraction(estimates.upper[FINAL])
        assert estimates.upper[FINAL] - estimates.lower[FINAL] < 1e-12
    assert best_of(case) == ("a", exact)


def test_distributing_or_over_and():
    # (a AND b) OR c estimated as (a OR c) AND (b OR c): the AND has no unique elements only if
    # its right side is another concept. Here c stands on both sides, and its unique elements stay.
    case = data(abd=(2, 0), c=(1, 0), a=(0, 5), b=(0, 5), d=(0, 1))
    optimum = "a AND b OR c"
    a_or_c, b_or_c = sums(case, "a OR c"), sums(case, "b OR c")
    rewritten = Fraction(min(a_or_c.ic, b_or_c.ic), a_or_c.n)  # unique elements taken as none
    assert rewritten == Fraction(2, 3)
    # Another formula lies between the two: the rule would drop the optimum for it.
    assert rewritten < iou(case, "d OR c") == Fraction(3, 4) < iou(case, optimum) == 1
    assert best_of(case) == ("((a AND b) OR c)", 1)
    assert_ours_hold(case, "a AND b", OR, optimum)
    assert_ours_hold(case, optimum, FINAL, optimum)


@pytest.mark.slow
def test_a_rewrite_that_loses_a_concept():
    # ((a OR b) OR c) AND d distributed over the last two terms only: (b AND d) OR (c AND d).
    case = data(ad=(3, 0), bd=(1, 0), cd=(1, 0), a=(0, 4), b=(0, 4), c=(0, 4), d=(0, 4))
    optimum = "a OR b OR c AND d"
    truncated = iou(case, "b AND d") + iou(case, "c AND d")
    assert truncated == Fraction(2, 5) < iou(case, "a AND d") < iou(case, optimum) == 1
    table = ox.ConceptTable.from_masks(case.masks[:4], list("abcd"))
    method = ox.Optimal(4, bounds=ox.PaperBounds(), batch_size=8)
    found = ox.explain(table, case.inside.astype(bool), method)
    assert found.formula == ox.Formula.parse(optimum)
    assert found.status == "optimal"


def test_leaving_an_or_early():
    # L OR c is left out if I^U(L) = 0 and I^C_min(L) = 0 in every sample. For L = a AND b the
    # lower estimate proves nothing: it must be I^C_max that is 0.
    case = data(ab=(2, 0), cd=(2, 0), a=(0, 5), b=(0, 5), d=(0, 5))
    a, b = sums(case, "a"), sums(case, "b")
    i_min = max(a.ic + b.ic - a.nc, 0)
    i_max = min(a.ic, b.ic)
    assert (i_min, i_max) == (0, 2)
    assert sums(case, "a AND b").iu == 0
    assert best_of(case) == ("((a AND b) OR c)", 1)


# What looks wrong and is not.


@pytest.mark.parametrize("path", ["a AND b", "a AND b AND c", "a AND c AND d"])
def test_top_one_is_enough_for_any_number_of_ands(path: str):
    case = data(abcd=(2, 0), abc=(1, 0), ab=(1, 0), ad=(1, 1), a=(1, 3))
    assert_ours_hold(case, "a", AND, path)
    others = [sums(case, name).ic for name in "bcd"]
    label = sums(case, "a")
    assert iou(case, path) <= Fraction(min(label.ic, max(others)), label.n)


# Figures that follow from others.


def formulas_up_to_three(n: int) -> int:
    return n + 3 * n * (n - 1) + 9 * n * (n - 1) * (n - 2)


def beam_estimates(n: int) -> range:
    """What a beam of size 5 estimates that expands 15 formulas (see test_published_counters.py)."""
    most = 30 * (n - 1) - 90 + 15 * (n - 2)
    return range(most - 10, most + 1)


@pytest.mark.parametrize(
    ("n_concepts", "n_formulas", "hours"),
    [(847, 5_451_604_543, 7572), (1198, 15_439_943_800, 21_444)],
)
def test_hours_of_breadth_first_search(n_concepts: int, n_formulas: int, hours: int):
    # Printed: 400 million hours. At 5 ms a formula:
    assert formulas_up_to_three(n_concepts) == n_formulas == count_formulas(n_concepts, 3, 3)
    assert round(n_formulas * 5e-3 / 3600) == hours
    printed = 400e6 * 3600 / 5e-3
    assert printed == pytest.approx(2.9e14, rel=0.01)


@pytest.mark.parametrize(("n_concepts", "seconds"), [(19, 267), (25, 630)])
def test_seconds_of_breadth_first_search_on_cityscapes(n_concepts: int, seconds: int):
    assert round(formulas_up_to_three(n_concepts) * 5e-3) == seconds  # printed: about 140


def test_cityscapes_has_19_concepts():
    published = 697.1
    assert beam_estimates(19)[0] <= published <= beam_estimates(19)[-1]
    assert published < beam_estimates(25)[0]


def test_two_figures_of_ade20k_are_swapped():
    assert 37_956 in beam_estimates(847)
    assert 37_979 not in beam_estimates(847)


def test_the_first_beam_has_twice_its_size():
    # 12 concepts in one sample, each better with another: 10 and 5 are expanded, not 5 and 5.
    masks = np.eye(12, dtype=bool).repeat(3, axis=1)[:, None]
    found = ox.explain(ox.ConceptTable.from_masks(masks), np.ones((1, 36), bool), ox.Beam(3))
    assert found.stats.expanded == 10 + 5


def test_a_beam_with_room_takes_what_is_worse():
    # a is the neuron and alone in the first beam; a OR b and a OR c are worse. To stop at the first
    # estimate below the lowest IoU would leave nothing to expand at length 3.
    case = data(a=(2, 0), b=(0, 1), c=(0, 1))
    table = ox.ConceptTable.from_masks(case.masks[:3], list("abc"))
    found = ox.explain(table, case.inside.astype(bool), ox.Beam(3))
    assert found.stats.expanded == 1 + 2


def test_min_iou_is_the_largest_lower_estimate():
    # The smallest is 0, of the AND path from any label; the largest is that of the label itself.
    case = data(a=(3, 1), ab=(1, 0), b=(0, 1))
    lower = ours(case, "a", aggregated=True).lower
    assert min(lower) == 0 < max(lower) <= iou(case, "a")
