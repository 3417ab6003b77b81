"""The published estimate of candidates from members known exactly, on the host.

Where P and c are known exactly, only the common elements that they share are not: k of them in a
sample, with `max(0, P + c − S) <= k <= min(P, c)` (see `bounds.paper.label`). `P∘c` then has

    p·P + q·c + (r − p − q)·k

locations, and its extremes over all samples are those of the sum of k. Samples without c share
nothing, so sums over the pairs (concept, sample) give both limits, for all operators at once.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.bounds.paper.path import MARGIN
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.methods.beam.guides.base import AbstractEstimator, Members
from optexp_jax.methods.beam.guides.host_quantities import HostQuantities
from optexp_jax.methods.beam.guides.pairs import TablePairs, table_pairs
from optexp_jax.search.problem import Problem

BLOCK = 2**17
"""About how many members times pairs are looked at at once, so that they stay in the cache."""


class HostQuantityEstimator(AbstractEstimator):
    """The quantity guide with exact updates at work on one problem."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._quantities = HostQuantities(problem.table, problem.neuron)
        pairs = table_pairs(problem.table)
        _, _, inside, _, outside = self._quantities.neuron
        iu, ic, eu, ec = self._quantities.of_pairs
        self._inside = _Half(pairs, iu, ic, inside)
        self._outside = _Half(pairs, eu, ec, outside)
        self._bits = operator_bits(problem.operators).T[:, :, None].astype(np.int64)

    def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
        n, apart = members.count, members.apart[: members.count]
        iu, ic, eu, ec = self._quantities.of_members(members, self._problem.operators)
        most_inside = self._inside.joined(iu, ic, apart, self._bits, np.maximum)
        least_outside = self._outside.joined(eu, ec, apart, self._bits, np.minimum)
        estimates = np.zeros((len(members.parents), *most_inside.shape[1:]))
        # Rounded outward.
        union = self._problem.neuron.size + least_outside
        estimates[:n] = most_inside / union * (1 + MARGIN)
        return estimates


class _Half:
    """What lies inside the neuron, or what lies outside."""

    def __init__(
        self,
        pairs: TablePairs,
        unique: Int64[np.ndarray, " pairs"],
        common: Int64[np.ndarray, " pairs"],
        there: Int64[np.ndarray, " samples"],
    ):
        """`there` are all common elements of a sample, S."""
        self._pairs = pairs
        self._common = common
        self._rest = common - there[pairs.sample]
        self._concepts = pairs.by_concept(unique + common)

    def joined(
        self,
        unique: Int64[np.ndarray, "members samples"],
        common: Int64[np.ndarray, "members samples"],
        apart: Bool[np.ndarray, "members concepts"],
        bits: Int64[np.ndarray, "3 operators 1"],
        extreme: np.ufunc,
    ) -> Int64[np.ndarray, "members operators concepts"]:
        """The most (`np.maximum`) or the least that members joined to concepts can have here."""
        p, q, r = bits
        certain = p * (unique + common).sum(1)[:, None, None] + q * self._concepts
        # What is shared counts or does not, so that either limit can give either extreme.
        least, most = self._shared(common, apart)[:, :, None]
        weight = r - p - q
        return certain + extreme(weight * least, weight * most)

    def _shared(
        self,
        members: Int64[np.ndarray, "members samples"],
        apart: Bool[np.ndarray, "members concepts"],
    ) -> Int64[np.ndarray, "2 members concepts"]:
        """The least and the most common elements that members share with concepts."""
        limits = np.empty((2, *apart.shape), np.int64)
        step = max(1, BLOCK // max(1, len(self._pairs)))
        for start in range(0, len(members), step):
            rows = slice(start, start + step)
            P = members[rows].take(self._pairs.sample, axis=1)
            limits[0, rows] = self._pairs.by_concept(np.maximum(P + self._rest, 0))
            limits[1, rows] = self._pairs.by_concept(np.minimum(P, self._common))
        limits[:, apart] = 0
        return limits
