"""Subproblems: where the inner part of a chain works, once the outer steps are fixed.

A chain is a decision list, read from its outermost step inward (Proposition 7).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.counts.device_labels import SubproblemOnDevice
from optexp_jax.bounds.tight.counts.device_lists import Sizes, pack_region
from optexp_jax.bounds.tight.counts.gram import (
    ConceptCounts,
    Counted,
    Gram,
    HostGram,
    Overlaps,
    RegionCounts,
    cells_of,
)
from optexp_jax.bounds.tight.counts.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.operator_set import INTERSECTION, OPERATORS, UNION, OperatorSet, joined
from optexp_jax.bounds.tight.rounding import left_for, needed, weight
from optexp_jax.bounds.tight.theory.screening import OverlapSums, gains, present
from optexp_jax.bounds.tight.tuning import COUNTS_AT_ONCE, Tuning
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class Ranking:
    """Concepts ordered by what they are worth, once for the whole search.

    The order settles which of several equal ways to write a formula is searched. The few concepts
    that a formula can mostly consist of, those of the highest rank, are heavy.
    """

    rank: Int32[np.ndarray, " concepts"]
    n_heavy: int

    @classmethod
    def by_worth(cls, worth: Float64[np.ndarray, " concepts"], most_heavy: int) -> "Ranking":
        """The highest first; heavy are up to so many that have a positive worth of their own."""
        rank = np.empty(len(worth), np.int32)
        rank[np.argsort(worth, kind="stable")] = np.arange(len(worth))
        return cls(rank, min(int((worth > 0).sum()), most_heavy))

    def light(self, allowed: Bool[np.ndarray, " concepts"]) -> Bool[np.ndarray, " concepts"]:
        """All concepts but the heavy ones among those allowed."""
        light = np.ones(len(self.rank), bool)
        ranked = np.flatnonzero(allowed)[np.argsort(-self.rank[allowed])]
        light[ranked[: self.n_heavy]] = False
        return light


@dataclass(frozen=True)
class Step:
    """One step of a chain: an operator, by its number in `OPERATORS`, and a concept."""

    op: int
    concept: int


@dataclass(frozen=True)
class Prefix:
    """Which subproblem: its outer steps, the outermost first, and what can be left out there."""

    steps: tuple[Step, ...] = ()
    shorter: float = np.inf
    """W of all formulas with one concept less than those that are looked for; infinite if unknown.

    It leaves out the concepts that cannot add what is missing (see `screening`).
    """


class Subproblem:
    """The locations that outer steps leave residual, and what they have captured to be positive."""

    def __init__(self, problem: Problem, overlaps: Overlaps, prefix: Prefix):
        self.prefix = prefix
        self.problem = problem
        self.table, self.neuron = table, neuron = problem.table, problem.neuron
        self.overlaps = overlaps
        self.residual: Bool[np.ndarray, " signatures"] = np.ones(len(table.signatures), bool)
        self.captured_inside = self.captured_outside = 0
        self.unused: Bool[np.ndarray, " all_concepts"] = np.ones(table.n_concepts, bool)
        """Concepts of the table that no outer step has."""
        for step in prefix.steps:
            self.unused[step.concept] = False
            member = table.signatures.membership(step.concept)
            if step.op == UNION:
                taken = self.residual & member
                self.captured_inside += int(neuron.inside[taken].sum())
                self.captured_outside += int(neuron.outside[taken].sum())
            self.residual &= member if step.op == INTERSECTION else ~member
        self.within = RegionCounts(overlaps, self.residual)
        self.of_use = self.unused
        """Those of them that can be part of a formula of interest."""
        self.concepts = LocalConcepts.everything(table.n_concepts)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.prefix.steps

    def keep(self, kept: Bool[np.ndarray, " all_concepts"], few: float = 0.0) -> None:
        """Leave out all other concepts; before anything is counted.

        The others are numbered anew where they are a share `few` of all or less.
        """
        self.of_use = kept & self.unused
        self.concepts = LocalConcepts.of(self.of_use, few)

    @cached_property
    def allowed(self) -> Bool[np.ndarray, " concepts"]:
        """Concepts that the inner part may have, as they are numbered here."""
        return self.concepts.pick(self.of_use)

    @cached_property
    def gram(self) -> Gram:
        """Exact overlaps of all pairs of concepts here."""
        if not self.steps and self.concepts.is_everything:
            return self.overlaps.everywhere
        return self.within.gram(self.concepts)

    @cached_property
    def counts(self) -> HostGram:
        """The Gram matrices on the host. From a device that is much to fetch: no search does."""
        return HostGram.of(self.gram)

    @cached_property
    def own(self) -> ConceptCounts:
        """Counts of each concept."""
        own = self.within.own
        return ConceptCounts(self.concepts.pick(own.inside), self.concepts.pick(own.outside))

    @cached_property
    def on_device(self) -> SubproblemOnDevice:
        """What programs that count have to know of it."""
        overlaps = self.overlaps
        with jax.enable_x64(True):
            region, number = put(pack_region(self.residual, overlaps.sizes), self.concepts.number)
            return SubproblemOnDevice(overlaps.on_device, region, number, self.gram)

    @property
    def captured_union(self) -> float:
        """The union, or what stands in its place, if the inner part adds nothing to it."""
        return self.problem.rounded_base + self.captured_outside

    def captured(self, v: float) -> float:
        """W of what is captured, rounded up."""
        return weight(float(self.captured_inside), v * self.captured_outside)

    def needed(self, v: float) -> float:
        """The W that an inner part needs for an IoU of v, rounded down."""
        return needed(v, self.problem.rounded_base) - self.captured(v)

    def left_of(self, w: float, v: float) -> float:
        """The highest W of an inner part, rounded up, where the whole formula has w at most."""
        return left_for(w, self.captured_inside, v * self.captured_outside)

    def candidate(self, inner: Sequence[int], ops: Sequence[int], score: Score) -> Candidate:
        """The formula with inner concepts, as the table numbers them, inside the outer steps."""
        names = self.table.names
        concepts = [*inner, *(step.concept for step in reversed(self.steps))]
        codes = [*ops, *(step.op for step in reversed(self.steps))]
        formula = Formula(
            tuple(names[k] for k in concepts), tuple(OPERATORS[code] for code in codes)
        )
        return Candidate(formula, score)

    def score(self, inside: int, outside: int) -> Score:
        """The exact score of an inner part that holds at so many residual locations."""
        return self.problem.score(self.captured_inside + inside, self.captured_outside + outside)

    def concept_score(self, concept: int) -> Score:
        """The exact score of one concept."""
        return self.score(int(self.own.inside[concept]), int(self.own.outside[concept]))

    def pair_scores(
        self,
        op: Int32[np.ndarray, " pairs"],
        a: Int32[np.ndarray, " pairs"],
        b: Int32[np.ndarray, " pairs"],
    ) -> list[Score]:
        """The exact scores of pairs, from the Gram matrices."""
        held, own = self._held(a, b), (self.own.inside, self.own.outside)
        inside, outside = (
            joined(op, own[a], own[b], both, np).tolist()
            for own, both in zip(own, held, strict=True)
        )
        return [self.score(*counts) for counts in zip(inside, outside, strict=True)]

    def pair_score(self, op: int, a: int, b: int) -> Score:
        """The exact score of a pair."""
        return self.pair_scores(*(np.array([part], np.int32) for part in (op, a, b)))[0]

    def _held(
        self, a: Int32[np.ndarray, " pairs"], b: Int32[np.ndarray, " pairs"]
    ) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """What both concepts of pairs hold."""
        if self.overlaps.on_host:
            return self.counts.inside[a, b], self.counts.outside[a, b]
        found = [np.empty((2, 0), np.int64)]
        with jax.enable_x64(True):
            for start in range(0, len(a), COUNTS_AT_ONCE):
                some = (
                    fill_up(part[start : start + COUNTS_AT_ONCE], COUNTS_AT_ONCE) for part in (a, b)
                )
                found.append(fetch(run(cells_of, self.gram, *some)))
        inside, outside = np.concatenate(found, axis=1)[:, : len(a)]
        return inside, outside


class SubproblemCache:
    """Makes subproblems, and remembers the last few."""

    def __init__(
        self,
        problem: Problem,
        tuning: Tuning | None = None,
        sizes: Sizes | None = None,
        counted: Counted | None = None,
    ):
        self.overlaps = Overlaps(problem.table, problem.neuron, sizes=sizes, counted=counted)
        self._problem = problem
        self._tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        self._recent: OrderedDict[Prefix, Subproblem] = OrderedDict()

    def at(self, prefix: Prefix, v: float = 0.0) -> Subproblem:
        """A subproblem, with the concepts of use there where formulas have to be better than v."""
        if prefix in self._recent:
            self._recent.move_to_end(prefix)
            return self._recent[prefix]
        sub = self._recent[prefix] = Subproblem(self._problem, self.overlaps, prefix)
        if prefix.steps or np.isfinite(prefix.shorter):
            sub.keep(self._relevant(sub, v), self._tuning.few_concepts)
        if len(self._recent) > self._tuning.remembered:
            self._recent.popitem(last=False)
        return sub

    def _relevant(self, sub: Subproblem, v: float) -> Bool[np.ndarray, " concepts"]:
        problem, prefix, own = self._problem, sub.prefix, sub.within.own
        kept = present(own)
        if np.isinf(prefix.shorter):
            return kept
        missing = needed(v, problem.rounded_base) - prefix.shorter
        left, ops = problem.depth - len(prefix.steps), OperatorSet.of(problem.operators)
        gain = gains(own, self._sums, v, left, ops)
        return kept & (gain >= missing)

    @cached_property
    def _sums(self) -> OverlapSums:
        return OverlapSums.of(self.overlaps.everywhere, self._problem.depth - 1)
