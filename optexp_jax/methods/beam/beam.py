"""Beam search: at every length keep the best few formulas, and extend only those."""

import dataclasses
import functools
from typing import ClassVar, cast

import equinox as eqx
import numpy as np
import scipy.sparse
from jaxtyping import Float64, Int64

from optexp_jax.bounds.base import InadmissibleBoundError
from optexp_jax.bounds.paper.chains import disjoint_after
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import BatchScores, Score
from optexp_jax.counts.table_cache import per_table
from optexp_jax.explanation import Explanation, SearchStats, Speculative, Status
from optexp_jax.formulas.batch import PADDING
from optexp_jax.formulas.operators import (
    DEFAULT_OPERATORS,
    Operator,
    check_operators,
    operator_bits,
)
from optexp_jax.internal.float64 import place_of_bounds
from optexp_jax.internal.kernel_choice import used_kernels
from optexp_jax.internal.tracing import count_traces
from optexp_jax.methods.base import MOST_CONCEPTS, MOST_LISTED, AbstractMethod, check_count
from optexp_jax.methods.beam.candidates import (
    Candidates,
    degenerate,
    in_order,
    new_candidates,
)
from optexp_jax.methods.beam.children import BeamChildren, children_of
from optexp_jax.methods.beam.guides import AbstractGuide, Members, QuantityGuide
from optexp_jax.methods.beam.queue import BeamQueue, Member, Words
from optexp_jax.methods.claim import FormulaSpace, Proof
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Counters
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.problem import Problem

FIRST_BLOCK, BLOCK = 64, 512
"""Candidates scored at once: first few, because a good guide needs no more."""


class Beam(AbstractMethod):
    """The best formula that a beam of `size` formulas finds. There may be better ones.

    The first beam is the `2 * size` best concepts. Each further level joins every other concept to
    the members of the length before, with every operator, and keeps the `size` best of old and new
    ones; the last level keeps one. The `guide` tells which candidates may be worth an exact score:
    `QuantityGuide()`, `MMESHGuide()`, or None to score all. It changes the work, never the result.
    """

    proof: ClassVar[Proof] = Proof.NEVER

    length: int = 3
    """Most concepts in a formula."""
    size: int = eqx.field(default=5, kw_only=True)
    """Formulas that are kept at each length."""
    guide: AbstractGuide | None = eqx.field(default=QuantityGuide(), kw_only=True)
    """Which candidates may be worth an exact score."""
    operators: tuple[Operator, ...] = eqx.field(
        default=DEFAULT_OPERATORS, converter=check_operators, kw_only=True
    )
    """Operators that formulas may use."""
    published_counters: bool = eqx.field(default=False, kw_only=True)
    """Make and count also candidates that are nothing new, as the paper does, for its tables.

    They are `P AND c` and `P AND NOT c` with disjoint sides, and can take places in the beam.
    """

    def __check_init__(self) -> None:
        check_count(self.length, "length", MOST_CONCEPTS)
        check_count(self.size, "size", MOST_LISTED)
        guide = cast(object, self.guide)
        if guide is not None and not isinstance(guide, AbstractGuide):
            raise TypeError(
                f"guide must be a guide such as QuantityGuide(), or None; got {guide!r}."
            )

    @property
    def formula_space(self) -> FormulaSpace:
        return FormulaSpace(self.length, self.operators)

    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        problem = Problem(table, neuron, self.length, self.operators)
        place = place_of_bounds()
        with place.scope():
            found = _Search(problem, self.size, self.guide, self.published_counters).run()
        stats = dataclasses.replace(
            found.stats, bounds_on=place.platform, float64_fault=place.fault
        )
        return dataclasses.replace(found, stats=stats)


class _Search:
    def __init__(
        self, problem: Problem, size: int, guide: AbstractGuide | None, published_counters: bool
    ):
        self._problem = problem
        self._size = size
        self._guide = guide
        self._published_counters = published_counters
        self._clock = Clock()
        self._counters = Counters()
        self._speculative = 0
        self._traces = count_traces()
        neuron = problem.neuron
        self._concepts = _concepts_of(problem.table)
        counts = np.stack([neuron.inside, neuron.outside], axis=1)
        inside, outside = (self._concepts.signatures @ counts).T
        self._atoms = BatchScores(inside, outside, neuron.size)
        self._words = Words(problem.table.names, problem.operators)
        self._bits = operator_bits(problem.operators)

    def run(self) -> Explanation:
        beam = self._first_beam()
        if not beam:
            # Formulas hold only where some concept does, so all of them miss the neuron.
            return self._explanation(None, 0.0, Status.OPTIMAL)
        depth = self._problem.depth
        members: Members | None = None
        estimator = None
        for level in range(2, depth + 1):
            extended = [member for member in beam if len(member) == level - 1]
            if not extended:
                break
            members = self._members(extended, members)
            with self._clock.phase("device"):
                if self._guide is not None and estimator is None:
                    estimator = self._guide.open(self._problem)
                shape = len(members.parents), len(self._bits), self._problem.table.n_concepts
                estimates = np.ones(shape) if estimator is None else estimator.estimate(members)
            with self._clock.phase("heap"):
                candidates = self._candidates(extended, members, estimates[: members.count])
            self._counters.expanded += len(extended)
            self._counters.estimated += len(candidates)
            queue = BeamQueue(1 if level == depth else self._size, beam)
            self._visit(queue, extended, members, candidates)
            beam = queue.members
        return self._explanation(beam[0].candidate, 1.0, Status.FEASIBLE)

    def _first_beam(self) -> list[Member]:
        """The best concepts among those that overlap the neuron."""

        def make(row: int, score: Score) -> Member:
            return Member(self._words, (int(order[row]),), (), score)

        atoms = self._atoms
        order = np.argsort(-atoms.iou, kind="stable")
        order = order[atoms.intersections[order] > 0]
        scores = BatchScores(atoms.intersections[order], atoms.extras[order], atoms.neuron_size)
        queue = BeamQueue(2 * self._size, [])
        queue.visit(np.ones(len(order)), scores, 1, make)
        return queue.members

    def _members(self, extended: list[Member], before: Members | None) -> Members:
        """Members as arrays, with the concepts that each is disjoint from.

        Chains are a multiple of four wide, so that most lengths share compiled programs.
        """
        n_rows, width = 2 * self._size, -(-self._problem.depth // 4) * 4
        padded = extended + extended[-1:] * (n_rows - len(extended))
        size = len(extended[0])
        last = size - 1
        concepts, operators = np.full((2, n_rows, width), PADDING, np.int32)
        concepts[:, :size] = [member.concepts for member in padded]
        operators[:, 1:size] = [member.operators for member in padded]
        parents = np.array([member.parent for member in padded], np.int32)
        apart = self._problem.table.disjoint[concepts[:, last]]
        if before is not None:
            p, q, _ = self._bits[operators[:, last]].T[:, :, None]
            apart = disjoint_after(before.apart[parents], apart, ~q, ~p)
        return Members(concepts, operators, parents, apart, len(extended), size)

    def _candidates(
        self,
        extended: list[Member],
        members: Members,
        estimates: Float64[np.ndarray, "members operators concepts"],
    ) -> Candidates:
        """What the members can become, in the order in which it is looked at."""
        operators = self._problem.operators
        old = degenerate(members.apart[: members.count], operators)
        if not self._published_counters:
            made = new_candidates(extended, old, operators)
        else:
            made = new_candidates(extended, np.zeros_like(old), operators)
            if self._hides_degenerate:
                estimates = np.where(old, 0.0, estimates)
        return in_order(made, estimates, self._concepts.by_name)

    @property
    def _hides_degenerate(self) -> bool:
        """Whether candidates that are nothing new are made and estimated 0."""
        knows = self._guide is not None and self._guide.knows_disjoint
        return self._published_counters and knows

    def _visit(
        self,
        queue: BeamQueue,
        extended: list[Member],
        members: Members,
        candidates: Candidates,
    ) -> None:
        """Score candidates in blocks, and take them in one by one."""
        length = members.size + 1
        with self._clock.phase("exact"):
            children = self._children(extended, members)
        start = 0
        block = len(candidates) if self._guide is None else FIRST_BLOCK
        while start < len(candidates):
            stop = min(start + block, queue.reach(candidates.estimate))
            if stop <= start:
                return
            part = candidates[start:stop]
            with self._clock.phase("exact"):
                scores = children.scores(part)
                self._check(extended, part, scores)
            with self._clock.phase("heap"):
                make = functools.partial(self._make, extended, part)
                visited = queue.visit(part.estimate, scores, length, make)
            self._counters.visited += visited
            self._speculative += len(part) - visited
            if visited < len(part):
                return
            start, block = stop, BLOCK

    def _children(self, extended: list[Member], members: Members) -> BeamChildren:
        scores = [member.score for member in extended]
        size = self._atoms.neuron_size
        return children_of(
            self._problem.table,
            self._problem.neuron,
            # Twice as many rows as later levels need, in the first one.
            members.batch(
                2 * self._size if members.size == 1 else self._size, self._problem.operators
            ),
            BatchScores(
                np.array([score.intersection for score in scores], np.int64),
                np.array([score.union - size for score in scores], np.int64),
                size,
            ),
            self._atoms,
        )

    def _check(self, extended: list[Member], candidates: Candidates, scores: BatchScores) -> None:
        """Refuse a guide whose estimates are below exact scores."""
        above = scores.iou > candidates.estimate
        if self._hides_degenerate:
            above &= candidates.estimate > 0
        for row in np.flatnonzero(above)[:1].tolist():
            wrong = self._make(extended, candidates, row, scores[row]).candidate
            raise InadmissibleBoundError(
                f"{wrong.formula} has IoU {wrong.score.iou}, above its estimate "
                f"{candidates.estimate[row]}. The guide {self._guide} is not admissible."
            )

    def _make(
        self, extended: list[Member], candidates: Candidates, row: int, score: Score
    ) -> Member:
        rank, o, c = (
            int(part[row]) for part in (candidates.member, candidates.operator, candidates.concept)
        )
        parent = extended[rank]
        chain = (*parent.concepts, c), (*parent.operators, o)
        return Member(self._words, *chain, score, rank)

    def _explanation(self, best: Candidate | None, upper: float, status: Status) -> Explanation:
        return Explanation(
            formula=None if best is None else best.formula,
            intersection=0 if best is None else best.score.intersection,
            union=self._atoms.neuron_size if best is None else best.score.union,
            upper_bound=upper,
            status=status,
            stats=SearchStats(
                visited=self._counters.visited,
                expanded=self._counters.expanded,
                estimated=self._counters.estimated,
                speculative=Speculative(visited=self._speculative),
                compilations=count_traces() - self._traces,
                kernels=used_kernels().value,
                seconds=self._clock.seconds(),
            ),
        )


class _Concepts:
    """What every search needs of the concepts of one table; get it with `_concepts_of`."""

    def __init__(self, table: ConceptTable):
        order = sorted(range(table.n_concepts), key=table.names.__getitem__)
        self.by_name: Int64[np.ndarray, " concepts"] = np.array(order)
        """Concepts in the order of their names."""
        # By columns: products then read counts in their order, and add them up in the cache.
        self.signatures: scipy.sparse.csc_array = table.signatures.incidence.T
        """Which signatures hold each concept."""


@per_table
def _concepts_of(table: ConceptTable) -> _Concepts:
    return _Concepts(table)
