"""Exact k-means of numbers: the clusters with the least sum of squared distances to their means.

Clusters of numbers are intervals, so a dynamic programme over the sorted distinct values finds the
best ones. The best last border moves right with the end of the interval, which halves the search at
each level; all searches of a level are done at once.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

MOST_CANDIDATES = 2**22
"""Borders tried at once."""


@dataclass(frozen=True, eq=False)
class ClusterInterval:
    """A cluster: its smallest and largest member."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class _Prefixes:
    """Sums over the first i distinct values, which give the cost of any interval."""

    weight: Float64[np.ndarray, " values_plus_one"]
    first: Float64[np.ndarray, " values_plus_one"]
    second: Float64[np.ndarray, " values_plus_one"]

    def cost(
        self, start: Int64[np.ndarray, " n"], stop: Int64[np.ndarray, " n"]
    ) -> Float64[np.ndarray, " n"]:
        """Squared distances of the values `start:stop` to their mean; 0 for an empty interval."""
        weight = self.weight[stop] - self.weight[start]
        first = self.first[stop] - self.first[start]
        second = self.second[stop] - self.second[start]
        return np.maximum(second - first * first / np.maximum(weight, 1.0), 0.0)


def cluster_numbers(values: Float64[np.ndarray, " n"], n_clusters: int) -> list[ClusterInterval]:
    """The clusters in ascending order; there must be as many distinct values as clusters."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < n_clusters:
        raise ValueError(
            f"{n_clusters} clusters need as many distinct values; there are {len(distinct)}."
        )
    # About the mean, where sums of squares lose the fewest digits.
    centred = distinct - np.average(distinct, weights=counts)
    weight = counts.astype(np.float64)
    sums = _Prefixes(*(_prefix_sums(weight * centred**power) for power in range(3)))
    borders = _best_borders(sums, len(distinct), n_clusters)
    return [
        ClusterInterval(float(distinct[start]), float(distinct[stop - 1]))
        for start, stop in itertools.pairwise(borders)
    ]


def _prefix_sums(values: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n_plus_one"]:
    return np.concatenate([[0.0], np.cumsum(values)])


def _best_borders(sums: _Prefixes, n: int, n_clusters: int) -> list[int]:
    """Where the clusters begin, and n."""
    stops = np.arange(n + 1)
    cost = sums.cost(np.zeros_like(stops), stops)  # of the first i values in one cluster
    chosen: list[Int64[np.ndarray, " stops"]] = []
    for clusters in range(2, n_clusters):
        cost, border = _add_cluster(sums, cost, clusters)
        chosen.append(border)
    borders = [n]
    if n_clusters > 1:  # Of the last cluster only the end n is needed.
        starts = np.arange(n_clusters - 1, n)
        total = cost[starts] + sums.cost(starts, np.full_like(starts, n))
        borders.append(int(starts[np.argmin(total)]))
    for border in reversed(chosen):
        borders.append(int(border[borders[-1]]))
    return [0, *reversed(borders)]


def _add_cluster(
    sums: _Prefixes, cost: Float64[np.ndarray, " stops"], clusters: int
) -> tuple[Float64[np.ndarray, " stops"], Int64[np.ndarray, " stops"]]:
    """Least costs of the first i values in `clusters` clusters, and where the last one begins."""
    n = len(cost) - 1
    best = np.full(n + 1, np.inf)
    border = np.zeros(n + 1, np.int64)
    # Solved ends, with sentinels: between two of them the best border lies between theirs.
    solved = np.array([clusters - 1, n + 1])
    lowest, highest = np.array([clusters - 1]), np.array([n])
    while True:
        gaps = np.flatnonzero(np.diff(solved) > 1)
        if not len(gaps):
            return best, border
        stops = (solved[gaps] + solved[gaps + 1]) // 2
        begin = lowest[gaps]
        end = np.minimum(highest[gaps], stops - 1)
        for part in _parts(end - begin + 1):
            best[stops[part]], border[stops[part]] = _least(
                sums, cost, stops[part], begin[part], end[part]
            )
        solved = np.sort(np.concatenate([solved, stops]))
        inner = border[solved[1:-1]]
        lowest = np.concatenate([[clusters - 1], inner])
        highest = np.concatenate([inner, [n]])


def _least(
    sums: _Prefixes,
    cost: Float64[np.ndarray, " stops"],
    stops: Int64[np.ndarray, " searches"],
    begin: Int64[np.ndarray, " searches"],
    end: Int64[np.ndarray, " searches"],
) -> tuple[Float64[np.ndarray, " searches"], Int64[np.ndarray, " searches"]]:
    """For each end of values the best border in `begin..end`, the smallest of equal ones."""
    lengths = end - begin + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    starts = np.arange(lengths.sum()) + np.repeat(begin - offsets, lengths)
    total = cost[starts] + sums.cost(starts, np.repeat(stops, lengths))
    least = np.minimum.reduceat(total, offsets)
    at = np.where(total == np.repeat(least, lengths), starts, np.iinfo(np.int64).max)
    return least, np.minimum.reduceat(at, offsets)


def _parts(lengths: Int64[np.ndarray, " searches"]) -> list[slice]:
    """Slices of searches that try a bounded number of borders together."""
    group = np.cumsum(lengths) // MOST_CANDIDATES
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(lengths)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
