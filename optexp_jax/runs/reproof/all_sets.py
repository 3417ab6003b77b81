"""A second proof by trying every formula: the best of every set of concepts, for many units.

With the IoU v = a / b of a claim, a formula L has an IoU above v exactly if b |L ∩ N| - a |L \\ N|
is above a |N|. So locations weigh b inside the neuron and -a outside, and `BestChains` tells of
every set of concepts whether one of its formulas reaches the goal. All that is integers. Of the few
sets that do, every chain is scored by the oracle, and compared as the claim says.
"""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.methods.oracle import count_unverified, enumerate_formulas
from optexp_jax.runs.reproof.best_chains import BestChains, subsets
from optexp_jax.runs.reproof.concept_sets import ConceptSets, count_held, count_sets
from optexp_jax.runs.reproof.outcome import ALL_TRIED, Reproof, Reproofs, StoredClaim

LARGEST = 2**62
"""Weights that are larger in sum do not fit int64."""
LONGEST = 8
"""Concepts of a formula; with more, too much is asked of a set."""
SECONDS_A_PASS = 1e-9
"""For one number: an estimate on the safe side."""
MOST_SETS, MOST_HELD = 2 * 10**7, 3 * 10**7
"""Sets of concepts, and signatures of sets, whose numbers fit memory."""
CACHE_BYTES, GROUP_BYTES = 2**21, 2**27
"""Of the arrays of one step, and of the counts of a group of units."""


@dataclass(frozen=True)
class _Weighing:
    """Weights of locations, and the goal that formulas of the IoU a / b or more reach."""

    inside: int
    outside: int
    goal: int
    exact: bool = True
    """Whether what is above the goal has a higher IoU; else it may be level with it."""

    @classmethod
    def of(cls, neuron: NeuronCounts, least: Fraction) -> "_Weighing | None":
        """For the IoU `least`, or one just below it; None if integers are too short for it."""
        if not least:  # whatever overlaps the neuron
            return cls(1, 0, 1)
        total = int(neuron.outside.sum())
        a, b = least.as_integer_ratio()
        shift = max((b * neuron.size + a * total).bit_length() - LARGEST.bit_length() + 2, 0)
        a, b = a >> shift, -(-b >> shift)
        return cls(b, a, a * neuron.size, not shift) if a else None


@dataclass(frozen=True, eq=False)
class _Reached:
    """The sets of one size that reach the goals of units."""

    members: Int64[np.ndarray, "sets size"]
    unit: Int64[np.ndarray, " sets"]
    above: Bool[np.ndarray, " sets"]
    """Which do more than reach it."""


class AllSets:
    """Second proofs over one table and one space of formulas."""

    def __init__(self, table: ConceptTable, space: FormulaSpace):
        self._table, self._space = table, space
        self._depth = min(space.length, table.n_concepts)

    @cached_property
    def _sets(self) -> ConceptSets:
        return ConceptSets(self._table.signatures, self._depth)

    @cached_property
    def _chains(self) -> list[BestChains]:
        return [BestChains(n, self._space.operators) for n in range(1, self._depth + 1)]

    @property
    def seconds_a_unit(self) -> float:
        """How long the sets of one unit take, about; infinite if they do not fit memory."""
        n = self._table.n_concepts
        if self._depth > LONGEST or count_sets(n, self._depth) > MOST_SETS:
            return math.inf
        if count_held(self._table.signatures, self._depth) > MOST_HELD:
            return math.inf
        passes = sum(math.comb(n, size) * each.work for size, each in enumerate(self._chains, 1))
        return SECONDS_A_PASS * passes

    def prove(self, claims: Sequence[StoredClaim]) -> Iterator[Reproofs | None]:
        """What comes of every claim, in their order; None where numbers are too large for this."""
        at_once = GROUP_BYTES // (8 * count_sets(self._table.n_concepts, self._depth))
        step = max(1, min(at_once, len(claims)))
        for start in range(0, len(claims), step):
            yield from self._prove_group(claims[start : start + step])

    def _prove_group(self, claims: Sequence[StoredClaim]) -> Iterator[Reproofs | None]:
        start = time.perf_counter()
        weighings = [_Weighing.of(claim.neuron, self._least(claim)) for claim in claims]
        able = [k for k, weighing in enumerate(weighings) if weighing is not None]
        weighed = [(claims[k].neuron, weighing) for k in able if (weighing := weighings[k])]
        reached: list[list[Int64[np.ndarray, "_ _"]]] = [[] for _ in weighed]
        for found in self._reach(weighed) if weighed else ():
            for unit in np.unique(found.unit).tolist():
                mine, before = found.unit == unit, reached[unit]
                size = found.members.shape[1]
                # Shorter formulas come first, so longer ones that are only level have lost.
                lost = before and before[0].shape[1] < size and weighed[unit][1].exact
                if lost and claims[able[unit]].listed is None:
                    mine &= found.above
                before.append(found.members[mine])
        seconds = (time.perf_counter() - start) / max(len(able), 1)
        sets = iter(reached)
        for claim, weighing in zip(claims, weighings, strict=True):
            if weighing is None:
                yield None
                continue
            start = time.perf_counter()
            best, listed = self._judge(claim, next(sets))
            yield Reproofs(best, listed, seconds + time.perf_counter() - start)

    def _least(self, claim: StoredClaim) -> Fraction:
        """The lowest IoU of formulas that the claim says something about."""
        if claim.listed is None or not claim.listed:
            return claim.score.ratio
        best, last = claim.listed[0].ratio, claim.listed[-1].ratio
        if len(claim.listed) >= self._space.most:
            return last
        within = self._space.within
        return Fraction(0) if within is None else best * (1 - Fraction(repr(within)))

    def _reach(self, weighed: Sequence[tuple[NeuronCounts, _Weighing]]) -> Iterator[_Reached]:
        """All sets of concepts with a formula that reaches the goal of a unit, by size."""
        weights = np.stack(
            [
                each.inside * neuron.inside - each.outside * neuron.outside
                for neuron, each in weighed
            ],
            axis=1,
        )
        goals = np.array([each.goal for _, each in weighed])
        shared = self._sets.shared(weights)
        for size, chains in enumerate(self._chains, 1):
            members = self._sets.members[size - 1]
            numbers = CACHE_BYTES // (8 * chains.held_at_once)
            step = max(1, numbers // len(weighed))
            for start in range(0, len(members), step):
                some = members[start : start + step]
                highest = chains.highest(
                    {
                        chosen: shared[sum(chosen) - 1][self._sets.number(some[:, _index(chosen)])]
                        for chosen in subsets(size)
                    }
                )
                row, unit = np.nonzero(highest >= goals)
                if len(row):
                    yield _Reached(some[row], unit, highest[row, unit] > goals[unit])

    def _judge(
        self, claim: StoredClaim, reached: Sequence[Int64[np.ndarray, "_ _"]]
    ) -> tuple[Reproof, Reproof | None]:
        """Score the formulas of the sets that reach a claim's goal, and compare them with it."""
        formulas = _Formulas(self._table, claim.neuron, self._space, self._least(claim))
        level: list[Formula] = []
        scores: dict[bytes, Score] = {}
        for members in itertools.chain.from_iterable(reached):
            for formula, score in formulas.reaching(members):
                if score.ratio > claim.score.ratio:
                    return Reproof(ALL_TRIED, proved=False, better=score), None
                if claim.listed is not None:
                    scores.setdefault(formulas.places(formula), score)
                if score.ratio == claim.score.ratio:
                    level.append(formula)
        first = min(level, key=formulas.order, default=None)
        proof = Reproof(ALL_TRIED, proved=True, first=first)
        return proof, None if claim.listed is None else self._judge_list(claim.listed, scores)

    def _judge_list(self, listed: Sequence[Score], scores: dict[bytes, Score]) -> Reproof:
        """Whether the best sets of locations have just the listed scores."""
        right = sorted(scores.values(), key=lambda score: -score.ratio)[: self._space.most]
        if self._space.within is not None and right:
            least = right[0].ratio * (1 - Fraction(repr(self._space.within)))
            right = [score for score in right if score.ratio >= least]
        return compare_lists(ALL_TRIED, right, listed)


def compare_lists(how: str, right: Sequence[Score], listed: Sequence[Score]) -> Reproof:
    """Whether a list has the right IoUs; else the first that is missing.

    Sets that are level may have other counts, 5/15 and 6/18: which of them come last in a list is
    a matter of order.
    """
    for score, said in itertools.zip_longest(right, listed):
        if score is None or said is None or score.ratio != said.ratio:
            return Reproof(how, proved=False, better=score or Score(0, 1))
    return Reproof(how, proved=True)


def _index(chosen: Sequence[int]) -> Bool[np.ndarray, " size"]:
    """A choice of concepts as an index."""
    return np.array(chosen, bool)


class _Formulas:
    """The formulas over sets of concepts that reach an IoU, scored by the oracle."""

    def __init__(
        self, table: ConceptTable, neuron: NeuronCounts, space: FormulaSpace, least: Fraction
    ):
        self._table, self._neuron, self._space, self._least = table, neuron, space, least
        self._there = table.sizes > 0

    def reaching(self, members: Int64[np.ndarray, " size"]) -> Iterator[tuple[Formula, Score]]:
        """The formulas of all of these concepts that reach the IoU."""
        size = len(members)
        cell = sum(self._held(int(k)).astype(np.int64) << place for place, k in enumerate(members))
        inside, outside = (np.zeros(2**size, np.int64) for _ in range(2))
        np.add.at(inside, cell, self._neuron.inside)
        np.add.at(outside, cell, self._neuron.outside)
        columns = np.arange(2**size) >> np.arange(size)[:, None] & 1 == 1
        names = [self._table.names[k] for k in members.tolist()]
        operators, neuron = self._space.operators, self._neuron.size
        for scored in enumerate_formulas(columns, inside, outside, size, operators):
            if scored.concepts.shape[1] < size:
                continue
            iou = scored.intersections / (neuron + scored.extras)
            for row in np.flatnonzero(iou >= float(self._least) * (1 - 1e-12)).tolist():
                score = Score(int(scored.intersections[row]), neuron + int(scored.extras[row]))
                if score.intersection and score.ratio >= self._least:
                    yield scored.formula(row, names, operators), score

    def order(self, formula: Formula) -> tuple[int, int, Formula]:
        """Which of formulas that are level comes first."""
        held = {name: self._held(self._table.names.index(name)) for name in formula.concepts}
        there = {name: mask & self._there for name, mask in held.items()}
        return len(formula), count_unverified(formula, there), formula

    def places(self, formula: Formula) -> bytes:
        """The same for formulas that hold at the same locations."""
        held = self._held(self._table.names.index(formula.concepts[0]))
        for operator, name in zip(formula.operators, formula.concepts[1:], strict=True):
            held = operator(held, self._held(self._table.names.index(name)))
        return np.packbits(held & self._there).tobytes()

    def _held(self, concept: int) -> Bool[np.ndarray, " signatures"]:
        return self._table.signatures.membership(concept)
