"""A second proof for up to three concepts of OR, AND and AND NOT, from counts of pairs.

By inclusion and exclusion, what any formula of a, b and c holds is a sum of counts of single
concepts and of pairs, which are computed once, plus or minus that of a ∩ b ∩ c, which the pairs
enclose. What then could still be better is counted exactly. It takes tables of any size.
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float64, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.operators import AND, AND_NOT, OR, Operator
from optexp_jax.internal.memory import require_memory
from optexp_jax.runs.reproof.outcome import Reproof

BYTES_PER_PAIR = 40
"""Of the matrices of all pairs that a second proof holds at once."""
ROUNDING = 1e-12
"""IoUs that are closer, relatively, are compared as integers."""

_SIGN = {
    (OR, OR): 1,
    (OR, AND): -1,
    (OR, AND_NOT): 1,
    (AND, OR): -1,
    (AND, AND): 1,
    (AND, AND_NOT): -1,
    (AND_NOT, OR): 1,
    (AND_NOT, AND): -1,
    (AND_NOT, AND_NOT): 1,
}
"""Whether a ∩ b ∩ c is added or taken away in the count of (a first b) second c."""


@dataclass(frozen=True, eq=False)
class _Hopeful:
    """Formulas (a first b) second c of one form that pairs alone do not rule out."""

    first: Operator
    second: Operator
    b: Int64[np.ndarray, " formulas"]
    c: Int64[np.ndarray, " formulas"]


class PairCounts:
    """Counts of concepts and pairs, as g(S) = |S ∩ N| − v |S \\ N| for the IoU v to beat.

    A formula L has an IoU above v exactly if g(L) > v |N|.
    """

    def __init__(
        self,
        table: ConceptTable,
        neuron: NeuronCounts,
        operators: tuple[Operator, ...],
        best: Score,
    ):
        self._table, self._neuron, self._operators, self._best = table, neuron, operators, best
        require_memory(
            BYTES_PER_PAIR * table.n_concepts**2,
            f"A second proof over {table.n_concepts} concepts",
            "Verify the run on a larger machine.",
        )
        incidence = table.signatures.incidence
        self._inside, self._outside = (
            _weighted_gram(incidence, weights) for weights in (neuron.inside, neuron.outside)
        )
        self._v = best.iou
        # A bound sums eight terms at most, each of a part of a, b or c; they and their sum are off
        # by less than 2**-46 of these three. What may be as high as the goal is counted exactly.
        own = self._inside.diagonal() + self._v * self._outside.diagonal()
        self._rounding = 2.0**-46 * own
        self._goal = self._v * neuron.size * (1 - 2.0**-46)
        self._g = self._inside - self._v * self._outside
        self._rank = np.argsort(np.argsort(-self._inside.diagonal(), kind="stable"))

    def prove(self, depth: int, time_limit: float) -> Reproof:
        how = "bounded by counts of pairs"
        deadline = time.perf_counter() + time_limit
        better = self._singles_and_pairs(depth)
        if better is not None or depth < 3:
            return Reproof(how, better is None, better)
        for a in range(self._table.n_concepts):
            if time.perf_counter() > deadline:
                return Reproof(how, proved=False)
            hopeful = self._hopeful(a)
            for b in sorted({int(row) for block in hopeful for row in block.b}):
                if time.perf_counter() > deadline:
                    return Reproof(how, proved=False)
                better = self._count_exactly(a, b, hopeful)
                if better is not None:
                    return Reproof(how, proved=False, better=better)
        return Reproof(how, proved=True)

    def _singles_and_pairs(self, depth: int) -> Score | None:
        own_in, own_out = self._inside.diagonal(), self._outside.diagonal()
        found = self._highest(own_in, own_out)
        if found is not None or depth < 2:
            return found
        apart = ~np.eye(len(own_in), dtype=bool)
        for operator in self._operators:
            inside, outside = (
                _pair(operator, own[:, None], own[None, :], shared)[apart]
                for own, shared in ((own_in, self._inside), (own_out, self._outside))
            )
            found = self._highest(inside, outside)
            if found is not None:
                return found
        return None

    def _hopeful(self, a: int) -> list["_Hopeful"]:
        """Formulas (a first b) second c that may be above the IoU."""
        found: list[_Hopeful] = []
        for first in self._operators:
            for second in self._operators:
                for rows, columns in self._blocks(a, first, second):
                    b, c = np.flatnonzero(rows), np.flatnonzero(columns)
                    row, column = np.nonzero(self._bound(a, b, c, first, second) >= self._goal)
                    b, c = b[row], c[column]
                    apart = (b != c) & (b != a) & (c != a)
                    if apart.any():
                        found.append(_Hopeful(first, second, b[apart], c[apart]))
        return found

    def _blocks(
        self, a: int, first: Operator, second: Operator
    ) -> "list[tuple[Bool[np.ndarray, ' b'], Bool[np.ndarray, ' c']]]":
        """Rows b and columns c outside which (a first b) second c holds too little of the neuron.

        g(L) is at most |L ∩ N|, which therefore has to reach the goal too. Where a and b may be
        exchanged, b is the one with fewer active locations.
        """
        goal, own, shared = self._goal, self._inside.diagonal(), self._inside[a]
        every = np.ones(len(own), bool)
        after = self._rank > self._rank[a]
        match first.name, second.name:
            case "OR", "OR":  # all three may be exchanged
                return [(after & (own[a] + 2 * own >= goal), after)] if 3 * own[a] >= goal else []
            case "OR", "AND":
                return [(after, own >= goal)]
            case "OR", _:
                return [(after & (own[a] + own - shared >= goal), every)]
            case "AND", "OR":
                large = after & (2 * shared >= goal)
                return [(large, every), (after & ~large, 2 * own >= goal)]
            case "AND", _:
                return [(after & (shared >= goal), every)]
            case _, "OR":
                return [(every, own[a] + own >= goal)]
            case _, "AND":
                return [(every, shared >= goal)]
            case _:
                kept = own[a] - shared >= goal
                return [(kept, kept)]

    def _bound(
        self,
        a: int,
        b: Int64[np.ndarray, " rows"],
        c: Int64[np.ndarray, " columns"],
        first: Operator,
        second: Operator,
    ) -> Float64[np.ndarray, "rows columns"]:
        """The most that g of (a first b) second c can be, rounded up."""
        rounding = self._rounding[a] + self._rounding[b][:, None] + self._rounding[c]
        rest = _rest(self._g, a, b, c, first, second) + rounding
        low_in, high_in = _enclose(self._inside, a, b, c)
        low_out, high_out = _enclose(self._outside, a, b, c)
        if _SIGN[first, second] > 0:
            return rest + (high_in - self._v * low_out)
        return rest - (low_in - self._v * high_out)

    def _count_exactly(self, a: int, b: int, hopeful: list["_Hopeful"]) -> Score | None:
        """The exact scores of some formulas of a, b and any c; one that is higher, if there is."""
        signatures = self._table.signatures
        rows = np.flatnonzero(signatures.membership(a) & signatures.membership(b))
        held = signatures.incidence[rows]
        triples = [
            held.T @ weights[rows] for weights in (self._neuron.inside, self._neuron.outside)
        ]
        for each in hopeful:
            c = each.c[each.b == b]
            inside, outside = (
                _rest(pairs, a, np.array([b]), c, each.first, each.second)[0]
                + _SIGN[each.first, each.second] * triple[c]
                for pairs, triple in zip((self._inside, self._outside), triples, strict=True)
            )
            found = self._highest(inside, outside)
            if found is not None:
                return found
        return None

    def _highest(
        self, inside: Int64[np.ndarray, " formulas"], outside: Int64[np.ndarray, " formulas"]
    ) -> Score | None:
        """A score above the best one, if there is one among these."""
        size = self._neuron.size
        iou = inside / (size + outside)
        for row in np.flatnonzero(iou >= self._v * (1 - ROUNDING)).tolist():
            score = Score(int(inside[row]), size + int(outside[row]))
            if score.ratio > self._best.ratio:
                return score
        return None


def _pair(
    operator: Operator, left: np.ndarray, right: np.ndarray, shared: np.ndarray
) -> np.ndarray:
    """What `left operator right` holds, from what the sides hold and share."""
    if operator == OR:
        return left + right - shared
    return shared if operator == AND else left - shared


def _rest(
    pairs: Float64[np.ndarray, "n n"] | Int64[np.ndarray, "n n"],
    a: int,
    b: Int64[np.ndarray, " rows"],
    c: Int64[np.ndarray, " columns"],
    first: Operator,
    second: Operator,
) -> Float64[np.ndarray, "rows columns"] | Int64[np.ndarray, "rows columns"]:
    """What (a first b) second c holds, but for a ∩ b ∩ c, which has a sign: see `_SIGN`."""
    own = pairs.diagonal()
    ab, ac = pairs[a, b][:, None], pairs[a, c][None, :]
    label = _pair(first, own[a], own[b][:, None], ab)
    # L ∩ c, without the part in a ∩ b ∩ c.
    shared = {OR: lambda: ac + pairs[np.ix_(b, c)], AND: lambda: 0 * ac, AND_NOT: lambda: ac}[first]
    return np.broadcast_to(_pair(second, label, own[c][None, :], shared()), (len(b), len(c)))


def _enclose(
    pairs: Int64[np.ndarray, "n n"],
    a: int,
    b: Int64[np.ndarray, " rows"],
    c: Int64[np.ndarray, " columns"],
) -> tuple[Int64[np.ndarray, "rows columns"], Int64[np.ndarray, "rows columns"]]:
    """The least and most that a ∩ b ∩ c can hold, as its pairs leave no more room."""
    own = pairs.diagonal()
    ab, ac, bc = pairs[a, b][:, None], pairs[a, c][None, :], pairs[np.ix_(b, c)]
    most = np.minimum(np.minimum(ab, ac), bc)
    least = np.maximum(ab + ac - own[a], 0)
    least = np.maximum(least, ab + bc - own[b][:, None])
    return np.maximum(least, ac + bc - own[c][None, :]), most


def _weighted_gram(
    incidence: scipy.sparse.csr_array, weights: Int64[np.ndarray, " signatures"]
) -> Int64[np.ndarray, "n n"]:
    """Counts of every pair of concepts; of a concept alone on the diagonal."""
    weighted = incidence.multiply(weights[:, None]).tocsr()
    return np.asarray((incidence.T @ weighted).toarray(), np.int64)
