"""Metrics from four counts, against their definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.objective_cases import Table, plain_key
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.counts.metrics import Margins, Objective, Overlap

counts = st.integers(0, 2**44)


@given(counts, counts, counts, counts)
def test_keys_sort_as_the_metrics_do(tp: int, fp: int, fn: int, tn: int):
    if not tp + fn:
        return
    margins = Margins(tp + fn, tp + fp + fn + tn)
    has = Overlap(tp, fp, margins)
    for objective in Objective:
        plain = plain_key(objective.value, Table(tp, fp, fn, tn))
        scale = plain_scale(objective, margins)
        if objective is Objective.F1:
            iou = has.key(objective)
            assert 2 * iou / (1 + iou) == plain
        else:
            assert has.key(objective) == plain * scale
        squared = objective in (Objective.COSINE, Objective.PHI)
        exact = math.sqrt(abs(plain)) if squared else float(plain)
        assert has.value(objective) == pytest.approx(math.copysign(exact, plain), abs=1e-15)


def plain_scale(objective: Objective, margins: Margins) -> int:
    """The factor that all formulas of a neuron share."""
    if objective is Objective.COSINE:
        return margins.active
    if objective is Objective.PHI:
        return margins.active * (margins.n_locations - margins.active)
    return 1


def test_phi_is_pearsons_of_the_masks():
    rng = np.random.default_rng(0)
    for _ in range(20):
        formula, neuron = rng.random((2, 50)) < rng.random((2, 1))
        if not 0 < formula.sum() < 50 or not 0 < neuron.sum() < 50:
            continue
        margins = Margins(int(neuron.sum()), 50)
        has = Overlap(int((formula & neuron).sum()), int((formula & ~neuron).sum()), margins)
        assert has.phi == pytest.approx(np.corrcoef(formula, neuron)[0, 1])
        both = np.linalg.norm(formula) * np.linalg.norm(neuron)
        assert has.cosine == pytest.approx(float(formula @ neuron.astype(int)) / both)


def test_what_is_not_defined_is_zero():
    everywhere = Overlap(5, 0, Margins(5, 5))
    assert everywhere.phi == 0
    assert everywhere.cosine == everywhere.iou == everywhere.f1 == 1
    nothing = Overlap(0, 0, Margins(5, 9))
    assert nothing.phi == nothing.cosine == nothing.precision == nothing.recall == 0


@given(st.integers(1, 2**44), st.integers(0, 2**44), st.integers(0, 2**44), st.integers(1, 2**40))
def test_upper_values_are_above(tp: int, fp: int, fn: int, tn: int):
    margins = Margins(tp + fn, tp + fp + fn + tn)
    for objective in (Objective.COSINE, Objective.PHI):
        key = max(margins.key(objective, fp, tp), Fraction(0))
        bound = Fraction(margins.at_most(objective, key))
        assert bound == 1 or bound * bound * plain_scale(objective, margins) >= key
        assert margins.at_most(objective, key) >= margins.value(objective, key)


def test_better_formulas_have_no_lower_value():
    margins = Margins(1000, 100_000)
    rng = np.random.default_rng(1)
    places = [(int(e), int(i)) for e, i in zip(*rng.integers(0, 1000, (2, 300)), strict=True)]
    for objective in Objective:
        ranked = sorted(margins.key(objective, *place) for place in places)
        values = [margins.value(objective, key) for key in ranked]
        assert values == sorted(values)
