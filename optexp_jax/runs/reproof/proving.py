"""Which second proof is tried: all sets of concepts, pairs, or the published bounds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from optexp_jax.bounds import PaperBounds
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Status
from optexp_jax.formulas.operators import AND, AND_NOT, OR
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.methods.optimal import Optimal
from optexp_jax.runs.reproof.all_sets import AllSets, compare_lists
from optexp_jax.runs.reproof.outcome import Reproof, Reproofs, StoredClaim
from optexp_jax.runs.reproof.pair_counts import PairCounts

PUBLISHED = "searched with the published bounds"


@dataclass(frozen=True, eq=False)
class Prover:
    """Proves claims about units of one table again, each within so many seconds."""

    table: ConceptTable
    space: FormulaSpace
    time_limit: float

    @property
    def seconds_a_unit(self) -> float | None:
        """How long one claim takes, about; None where that is not known, but limited."""
        seconds = self._all_sets.seconds_a_unit
        return seconds if seconds <= self.time_limit else None

    @cached_property
    def _all_sets(self) -> AllSets:
        return AllSets(self.table, self.space)

    def prove(self, claims: Sequence[StoredClaim]) -> Iterator[Reproofs]:
        """What comes of each claim, in their order."""
        if self.seconds_a_unit is None:
            yield from map(self._prove_alone, claims)
            return
        tried = self._all_sets.prove(claims)
        for claim, proof in zip(claims, tried, strict=True):
            yield self._prove_alone(claim) if proof is None else proof

    def _prove_alone(self, claim: StoredClaim) -> Reproofs:
        start = time.perf_counter()
        best, listed = self.prove_best(claim), None
        if claim.listed is not None and best.better is None:
            listed = self.prove_list(claim, claim.listed)
        return Reproofs(best, listed, time.perf_counter() - start)

    def prove_best(self, claim: StoredClaim) -> Reproof:
        """Try to show that no formula has a higher IoU, without trying all of them."""
        depth = min(self.space.length, self.table.n_concepts)
        operators = self.space.operators
        if depth <= 3 and set(operators) <= {OR, AND, AND_NOT}:
            pairs = PairCounts(self.table, claim.neuron, operators, claim.score)
            return pairs.prove(depth, self.time_limit)
        method = Optimal(
            self.space.length,
            bounds=PaperBounds(),
            operators=operators,
            time_limit=self.time_limit,
        )
        found = method.run(self.table, claim.neuron)
        if found.score.ratio > claim.score.ratio:
            return Reproof(PUBLISHED, proved=False, better=found.score)
        return Reproof(PUBLISHED, proved=found.status is Status.OPTIMAL)

    def prove_list(self, claim: StoredClaim, listed: Sequence[Score]) -> Reproof:
        """Try to show that the best sets of locations have just these scores, best first."""
        space = self.space
        method = Optimal(
            space.length,
            bounds=PaperBounds(),
            operators=space.operators,
            top_k=1 if space.within is not None else space.most,
            within=space.within,
            max_within=space.most,
            time_limit=self.time_limit,
        )
        found = method.run(self.table, claim.neuron)
        if found.status is not Status.OPTIMAL:
            return Reproof(PUBLISHED, proved=False)
        others = [Score(other.intersection, other.union) for other in found.runners_up]
        right = [] if found.formula is None else [found.score, *others]
        return compare_lists(PUBLISHED, right, listed)
