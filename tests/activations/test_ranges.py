"""Activation ranges: quantiles against NumPy, clusters against brute force and scikit-learn."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.cluster import KMeans

from optexp_jax.activations import (
    ActivationRange,
    Clusters,
    ExplicitRange,
    TopQuantile,
    kmeans,
    parse_rule,
)
from optexp_jax.activations.kmeans import cluster_numbers

small = st.floats(-5, 5, width=32).map(lambda value: round(value, 1))


def spread(values: np.ndarray) -> float:
    return float(((values - values.mean()) ** 2).sum())


def cost(values: np.ndarray, intervals: list[kmeans.ClusterInterval]) -> float:
    groups = [values[(values >= each.low) & (values <= each.high)] for each in intervals]
    assert sum(map(len, groups)) == len(values), "every value is in exactly one cluster"
    return sum(map(spread, groups))


@given(hnp.arrays(np.float64, st.integers(1, 9), elements=small), st.integers(1, 5))
@examples(80)
def test_clusters_are_the_best_ones(values: np.ndarray, k: int):
    distinct = np.unique(values)
    if len(distinct) < k:
        with pytest.raises(ValueError, match="distinct values"):
            cluster_numbers(values, k)
        return
    found = cluster_numbers(values, k)
    assert len(found) == k
    assert [each.low for each in found] == sorted(each.low for each in found)
    ordered = np.sort(values)
    least = min(
        sum(spread(part) for part in np.split(ordered, list(cuts)))
        for cuts in itertools.combinations(range(1, len(values)), k - 1)
    )
    assert cost(values, found) == pytest.approx(least, abs=1e-9)


def test_borders_in_bounded_parts_are_the_same(monkeypatch: pytest.MonkeyPatch):
    values = np.random.default_rng(0).gamma(0.7, size=3000)
    whole = cluster_numbers(values, 5)
    monkeypatch.setattr(kmeans, "MOST_CANDIDATES", 500)
    parts = cluster_numbers(values, 5)
    assert [(a.low, a.high) for a in whole] == [(b.low, b.high) for b in parts]


@pytest.mark.parametrize("draw", ["gamma", "normal", "modes"])
def test_clusters_are_at_least_as_good_as_scikit_learns(draw: str):
    rng = np.random.default_rng(1)
    values = {
        "gamma": rng.gamma(0.7, size=4000),
        "normal": rng.normal(size=4000),
        "modes": np.concatenate([rng.normal(10 * k, 0.5, 800) for k in range(5)]),
    }[draw]
    theirs: Any = KMeans(5, n_init="auto", random_state=0).fit(values[:, None])
    ours = cluster_numbers(values, 5)
    assert cost(values, ours) <= theirs.inertia_ * (1 + 1e-9)
    assert cost(values, ours) >= theirs.inertia_ * 0.98
    if draw == "modes":  # well apart, so that both find the same ones
        ends = sorted(
            (values[theirs.labels_ == k].min(), values[theirs.labels_ == k].max()) for k in range(5)
        )
        assert [(each.low, each.high) for each in ours] == ends


@pytest.mark.slow
def test_a_million_values():
    values = np.random.default_rng(2).gamma(0.7, size=1_000_000)
    theirs: Any = KMeans(5, n_init="auto", random_state=0).fit(values[:, None])
    assert cost(values, cluster_numbers(values, 5)) <= theirs.inertia_ * (1 + 1e-9)


@given(
    hnp.arrays(np.float32, st.integers(2, 60), elements=st.floats(-9, 9, width=32)),
    st.sampled_from([0.005, 0.1, 0.5, 0.9]),
)
@examples(60)
def test_quantile_is_numpys(values: np.ndarray, share: float):
    wanted = np.quantile(values.astype(np.float64), 1 - share)
    found = TopQuantile(share).range_of(0, values)
    if wanted >= values.max():
        assert found.skipped is not None or found.low == pytest.approx(wanted)
        return
    assert found.low == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert found.high == math.inf
    assert found.skipped is None


def test_quantile_keeps_zeros_and_is_of_cells():
    values = np.zeros(1000, np.float32)
    values[:3] = [1, 2, 3]
    found = TopQuantile().range_of(0, values)
    assert found.low == 0, "fewer than 0.5% of the cells are not zero"
    silent = TopQuantile().range_of(0, np.zeros(10, np.float32))
    assert silent.skipped is not None
    assert "largest value" in silent.skipped
    assert not silent.low < silent.high


def test_clusters_leave_out_zeros_only_without_negative_values():
    values = np.array([0] * 50 + [1, 2, 3, 10, 11, 12], np.float32)
    assert Clusters(2, 1).range_of(0, values) == ActivationRange(1.0, 3.0)
    assert Clusters(2).range_of(0, values) == ActivationRange(10.0, 12.0)
    signed = np.append(values, np.float32(-0.5))
    assert Clusters(2, 1).range_of(0, signed) == ActivationRange(-0.5, 3.0)


def test_too_few_values_are_skipped_with_a_reason():
    few = Clusters(5).range_of(0, np.array([0, 0, 1, 2, 3], np.float32))
    equal = Clusters(5).range_of(0, np.array([1, 1, 1, 2, 2, 3], np.float32))
    assert few.skipped == "3 non-zero activations are too few for 5 clusters"
    assert equal.skipped == "3 distinct activations are too few for 5 clusters"


def test_explicit_ranges():
    rule = ExplicitRange.by_unit({3: (0.5, 2.0)})
    values = np.zeros(1, np.float32)
    assert (rule.range_of(3, values).low, rule.range_of(3, values).high) == (0.5, 2.0)
    assert rule.range_of(1, values).low == -math.inf


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("quantile", TopQuantile(0.005)),
        ("quantile:0.01", TopQuantile(0.01)),
        ("clusters", Clusters(5)),
        ("clusters:4", Clusters(4)),
        ("clusters:4:1", Clusters(4, 1)),
        ("range:0.5:", ExplicitRange(0.5)),
        ("range::-1", ExplicitRange(high=-1.0)),
        ("range:-2:3e1", ExplicitRange(-2.0, 30.0)),
    ],
)
def test_rules_are_read(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    ["", "top", "quantile:2", "quantile:x", "clusters:0", "clusters:3:4", "range:1", "range:2:1"],
)
def test_bad_rules_are_named(text):
    with pytest.raises(ValueError, match=r"no activation range.*quantile:SHARE"):
        parse_rule(text)
