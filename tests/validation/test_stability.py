"""Resampled explanations, checked against plain loops over the raw masks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.strategies import cases
from hypothesis import assume, given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.validation import Groups, Resamples, ResampleScore, Scheme, Stability

A = ox.Formula.concept("a")


@given(cases(), st.integers(0, 99), st.data())
def test_equals_copies_of_samples_differential(case, seed, data):
    n = case.masks.shape[1]
    assume(n >= 2 and case.bitmap.any())
    found = ox.explain(case.table, case.bitmap, ox.Optimal(2))
    assume(found.formula is not None)
    labels = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=n, max_size=n))
    assume(labels is None or len(set(labels)) >= 2)
    seen = ox.stability(
        case.table, case.bitmap, ox.Optimal(2), resamples=3, groups=labels, seed=seed
    )
    assert seen.formula == found.formula
    assert seen.score == found.score
    plan = Resamples.of(Groups.of(labels, n), 3, seed)
    assert len(seen.resamples) == plan.n
    stored = case.mask(found.formula)
    for each, weights in zip(seen.resamples, plan, strict=True):
        masks, bitmap = np.repeat(case.masks, weights, 1), np.repeat(case.bitmap, weights, 0)
        held = np.repeat(stored, weights, 0)
        assert each.stored == ox.Score(int((held & bitmap).sum()), int((held | bitmap).sum()))
        out = weights == 0
        expected = (stored & case.bitmap)[out].sum(), (stored | case.bitmap)[out].sum()
        assert (each.out_of_bag.intersection, each.out_of_bag.union) == expected
        if bitmap.any():
            best = ox.explain(ox.ConceptTable.from_masks(masks, case.names), bitmap, ox.Optimal(2))
            assert (each.formula, each.best) == (best.formula, best.score)
            assert each.loss == best.score.ratio - each.stored.ratio >= 0
            if each.formula is not None:
                assert each.recurs == (case.mask(each.formula) == stored).all()


def test_bootstraps_draw_whole_groups():
    groups = Groups.of(["a"] * 3 + list("bcdefghijk"), 13)
    plan = Resamples.of(groups, 200, 0)
    assert plan.scheme is Scheme.BOOTSTRAP
    weights = np.array(list(plan))
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 0] == weights[:, 2]).all()
    per_group = weights[:, 2:]
    assert (per_group.sum(1) == 11).all()
    assert 0.8 < per_group.mean() < 1.2
    assert plan.weights(5).tolist() == weights[5].tolist()


def test_few_groups_are_left_out_one_at_a_time():
    plan = Resamples.of(Groups.of(list("aabbc"), 5), 100, 0)
    assert plan.scheme is Scheme.LEAVE_ONE_OUT
    assert np.array(list(plan)).tolist() == [[0, 0, 1, 1, 1], [1, 1, 0, 0, 1], [1, 1, 1, 1, 0]]


def resample(loss: Fraction, stored: Fraction = Fraction(1, 2), proved: bool = True):
    best, score = stored + loss, ox.Score(stored.numerator, stored.denominator)
    return ResampleScore(
        A,
        ox.Score(best.numerator, best.denominator) if proved else score,
        float(best),
        proved,
        score,
        ox.Score(1, 4),
        recurs=loss == 0,
    )


def test_noise_is_an_upper_order_statistic():
    losses = [Fraction(k, 64) for k in range(20)]
    seen = Stability(A, ox.Score(1, 2), tuple(map(resample, losses)), Scheme.BOOTSTRAP)
    assert seen.noise(0.95) == Fraction(19, 64)
    assert seen.noise(0.5) == Fraction(10, 64)
    assert seen.recurrence == 1 / 20
    assert seen.out_of_bag == ox.Score(20, 80)
    assert seen.concepts == {"a": 1.0}
    assert "out of bag 0.2500" in str(seen)


def test_a_search_without_proof_counts_with_its_bound():
    assert resample(Fraction(1, 4), proved=False).loss == Fraction(1, 4)


def test_left_out_groups_are_scaled_as_the_jackknife_does():
    ious = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)]
    each = tuple(resample(Fraction(1, 8), value) for value in ious)
    seen = Stability(A, ox.Score(1, 3), each, Scheme.LEAVE_ONE_OUT)
    assert float(seen.noise()) == pytest.approx(math.sqrt(2) / 8)
    values = np.array([float(value) for value in ious])
    error = math.sqrt(2 / 3 * ((values - values.mean()) ** 2).sum())
    found = seen.interval()
    assert found.high == pytest.approx(min(1.0, 1 / 3 + 4.30265273 * error))
    assert found.low == 0.0


def test_interval_is_of_the_stored_formula():
    each = tuple(resample(Fraction(1, 2), Fraction(k, 200)) for k in range(100))
    seen = Stability(A, ox.Score(1, 4), each, Scheme.BOOTSTRAP)
    assert seen.interval(0.9).low == pytest.approx(4 / 200)
    assert seen.interval(0.9).high == pytest.approx(95 / 200)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0])
def test_levels_are_shares(level):
    seen = Stability(A, ox.Score(1, 2), (resample(Fraction(0)),), Scheme.BOOTSTRAP)
    for ask in (seen.noise, seen.interval):
        with pytest.raises(ValueError, match=r"0\.95"):
            ask(level)


@given(cases(), st.fractions(0, 1, max_denominator=50))
def test_confidence_set_is_complete_differential(case, noise):
    """Against every formula there is, as sets of locations."""
    assume(case.bitmap.any())
    assume((case.masks & case.bitmap).any())
    found = ox.confidence_set(case.table, case.bitmap, noise, ox.Optimal(2), most=100_000)
    lowest = found.members[0].score.ratio - noise
    sets = {case.mask(each.formula).tobytes() for each in found.members}
    assert len(sets) == len(found.members)
    assert all(each.score.ratio >= lowest for each in found.members)
    assert found.complete == (lowest > 0)
    wanted: set[bytes] = set()
    for left in case.names:
        formulas = [ox.Formula.concept(left)]
        for operator in ox.DEFAULT_OPERATORS:
            formulas += [
                ox.Formula((left, right), (operator,)) for right in case.names if right != left
            ]
        for formula in formulas:
            held = case.mask(formula)
            union = int((held | case.bitmap).sum())
            ratio = Fraction(int((held & case.bitmap).sum()), max(union, 1))
            if ratio >= lowest and ratio > 0:
                wanted.add(held.tobytes())
    assert wanted <= sets
    if lowest > 0:
        assert wanted == sets


def test_summary_of_a_confidence_set():
    masks = np.zeros((3, 1, 12), bool)
    masks[0, 0, :6], masks[1, 0, 6:8], masks[2, 0, 8:] = True, True, True
    table = ox.ConceptTable.from_masks(masks, ["a", "b", "c"])
    bitmap = np.zeros((1, 12), bool)
    bitmap[0, :7] = True
    found = ox.confidence_set(table, bitmap, Fraction(1, 56), ox.Optimal(2))
    assert [str(each.formula) for each in found.members] == ["(a OR b)", "a"]
    assert found.in_all == ("a",)
    assert found.in_some == ("b",)
    assert str(found.simplest.formula) == "a"
    assert found.complete
    assert ox.confidence_set(table, bitmap, 0, ox.Optimal(2)).in_some == ()
    for wrong in (-1, Fraction(-1, 9)):
        with pytest.raises(ValueError, match="must not be negative"):
            ox.confidence_set(table, bitmap, wrong)
    with pytest.raises(TypeError, match="Only Optimal"):
        ox.confidence_set(table, bitmap, 0, ox.NetDissect())
