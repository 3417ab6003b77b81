"""The optimal search: the best formula, with a proof."""

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from optexp_jax.bounds.base import AbstractBounds, Prepared
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.concepts.signatures import EMPTY_SIGNATURE
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Margins, Objective
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.neuron_summary import summarise_neuron
from optexp_jax.counts.unverified import formula_order
from optexp_jax.explanation import Explanation, LengthOptimum
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.internal.float64 import place_of_bounds
from optexp_jax.methods.base import (
    MOST_AT_ONCE,
    MOST_CONCEPTS,
    MOST_LISTED,
    AbstractMethod,
    check_count,
)
from optexp_jax.methods.claim import FormulaSpace, Proof
from optexp_jax.methods.hull.objective_search import ObjectiveSearch
from optexp_jax.methods.hull.searches import Facts, PivotSearches
from optexp_jax.methods.stopped import Question, Stopped
from optexp_jax.search.driver import Search
from optexp_jax.search.host_beam import host_beam
from optexp_jax.search.incumbent import Candidate, Incumbent, PoolCriteria
from optexp_jax.search.order import AbstractOrder, BestFirst
from optexp_jax.search.problem import Problem
from optexp_jax.search.stopping import Progress, StoppingCriteria


def _objective(name: object) -> Objective:
    try:
        return Objective(name)
    except ValueError:
        known = ", ".join(repr(each.value) for each in Objective)
        raise ValueError(f"objective must be one of {known}; got {name!r}.") from None


class Optimal(AbstractMethod):
    """The formula of at most `length` concepts with the highest IoU, proved by branch and bound.

    `objective` asks for the highest F1, cosine or phi instead. Then `upper_bound`, `gap` and
    `status` are about that metric. For phi there is no formula if none has one above 0.

    The search can be stopped early, by `time_limit` in seconds, when the gap to the upper bound is
    at most `gap`, or when more than `max_nodes` nodes wait; the result then is 'feasible', with the
    bound that was reached, its `stats.stopped_by` says which limit it was, and its `state` can be
    resumed. `callback` is called every turn with a `Progress`. `batch_size` nodes are expanded at
    once; 1 gives the published order.

    `top_k` asks for the k best formulas that differ as sets of locations, `within=0.01` for all
    whose IoU is at most 1 % below the best, up to `max_within` of them.
    """

    proof: ClassVar[Proof] = Proof.UNLESS_STOPPED

    length: int = 3
    """Most concepts in a formula."""
    bounds: AbstractBounds = eqx.field(default=TightBounds(), kw_only=True)
    """The family of bounds that the search prunes with."""
    operators: tuple[Operator, ...] = eqx.field(
        default=DEFAULT_OPERATORS, converter=check_operators, kw_only=True
    )
    """Operators that formulas may use."""
    objective: Objective = eqx.field(default=Objective.IOU, converter=_objective, kw_only=True)
    """The metric that is to be as high as possible: "iou", "f1", "cosine" or "phi"."""
    top_k: int = eqx.field(default=1, kw_only=True)
    """How many formulas to find, best first, that differ as sets of locations."""
    within: float | None = eqx.field(default=None, kw_only=True)
    """Find all formulas whose IoU is at most this share below the best, instead."""
    max_within: int = eqx.field(default=1000, kw_only=True)
    """At most so many of those; the result says whether there are more."""
    gap: float = eqx.field(default=0.0, kw_only=True)
    """Stop when a better formula could only be better by this share."""
    time_limit: float | None = eqx.field(default=None, kw_only=True)
    """Stop a unit's search after so many seconds."""
    batch_size: int | None = eqx.field(default=None, kw_only=True)
    """Nodes that are expanded at once; 1 gives the published order."""
    order: AbstractOrder = eqx.field(default=BestFirst(), kw_only=True)
    """The order in which nodes are expanded. The result is the same in every order."""
    by_length: bool = eqx.field(default=False, kw_only=True)
    """Find the optimum of every shorter length, too, where it is no by-product."""
    any_shape: bool = eqx.field(default=False, kw_only=True)
    """Tell also how high the IoU of any Boolean function of `length` concepts can be."""
    callback: Callable[[Progress], None] | None = eqx.field(default=None, kw_only=True)
    """Called every turn with a `Progress`."""
    frontier_reduction: bool = eqx.field(default=True, kw_only=True)
    """Drop queued nodes as soon as they cannot hold the optimum."""
    max_nodes: int = eqx.field(default=10_000_000, kw_only=True)
    """Stop when more nodes than this wait."""

    def __check_init__(self) -> None:
        check_count(self.length, "length", MOST_CONCEPTS)
        if not isinstance(self.bounds, AbstractBounds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"bounds must be a family such as TightBounds(); got {self.bounds!r}.")
        if not isinstance(self.order, AbstractOrder):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"order must be an order such as BestFirst(); got {self.order!r}.")
        if not self.gap >= 0:
            raise ValueError(f"gap must not be negative; got {self.gap}.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive seconds; got {self.time_limit}.")
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size", MOST_AT_ONCE)
        check_count(self.max_nodes, "max_nodes")
        for what in ("top_k", "max_within"):
            check_count(getattr(self, what), what, MOST_LISTED)
        if self.within is not None and not 0 <= self.within < 1:
            raise ValueError(f"within must be a share from 0 to below 1; got {self.within}.")
        self._check_objective()
        if self.within is not None and self.top_k != 1:
            raise ValueError("Ask for the top_k formulas or for those within a share, not both.")

    def _check_objective(self) -> None:
        if self.objective is Objective.IOU:
            return
        if self.within is not None:
            raise ValueError(
                f"within is a share of the IoU, so it cannot be asked for with objective="
                f"{self.objective.value!r}. Leave out one of them."
            )
        if self.objective is Objective.F1:
            return
        if self.top_k != 1:
            raise ValueError(
                f"top_k lists formulas by IoU or F1; objective={self.objective.value!r} finds the "
                "best one. Leave out one of them, or see the others with TradeOff()."
            )
        if self.any_shape:
            raise ValueError(
                f"any_shape bounds the IoU; objective={self.objective.value!r} has no such bound. "
                "Leave out one of them."
            )
        if not isinstance(self.bounds, TightBounds) or set(self.operators) - set(DEFAULT_OPERATORS):
            raise ValueError(
                f"objective={self.objective.value!r} is proved by TightBounds(), with OR, AND and "
                "AND NOT. Pass other bounds or operators with objective='iou' or 'f1' only."
            )

    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        return self._run(table, neuron, None)

    def run_together(
        self, table: ConceptTable, neurons: Sequence[NeuronCounts]
    ) -> Iterator[Explanation]:
        with place_of_bounds().scope():
            prepared = self.bounds.prepare([self._problem(table, neuron) for neuron in neurons])
        return (self._run(table, neuron, prepared) for neuron in neurons)

    def _run(
        self, table: ConceptTable, neuron: NeuronCounts, prepared: Prepared | None
    ) -> Explanation:
        if self.objective in (Objective.IOU, Objective.F1):
            search = self.search(table, neuron, prepared)
        else:
            search = self._objective_search(table, neuron, prepared)
        stopped = Stopped(search, self._question(table, neuron))
        return self._result(table, neuron, search.run(self.limits), stopped)

    def _result(
        self, table: ConceptTable, neuron: NeuronCounts, found: Explanation, state: Stopped
    ) -> Explanation:
        if self.objective is Objective.IOU:
            found = self._with_lengths(table, neuron, found)
        search = state.search
        counted = search.space.concept_intersections() if isinstance(search, Search) else None
        found = dataclasses.replace(found, neuron=summarise_neuron(table, neuron, counted))
        if self.objective is Objective.F1:
            margins = Margins(neuron.size, table.n_locations)
            highest = margins.at_most(Objective.F1, Fraction(found.upper_bound))
            found = dataclasses.replace(found, objective=Objective.F1)
            proved = found.status == "optimal"
            found = dataclasses.replace(found, upper_bound=found.value if proved else highest)
        return found if found.status == "optimal" else dataclasses.replace(found, state=state)

    def _with_lengths(
        self, table: ConceptTable, neuron: NeuronCounts, found: Explanation
    ) -> Explanation:
        """With the optima of shorter lengths that are asked for and not known yet.

        They are searched for in what is left of the time limit; those that are not proved in it
        are left out.
        """
        if not self.by_length:
            return found
        known = {optimum.length: optimum for optimum in found.by_length}
        end = None
        if self.time_limit is not None:
            end = time.monotonic() + self.time_limit - found.stats.seconds.total
        for length in range(1, min(self.length, table.n_concepts) + 1):
            if length in known:
                continue
            proved = found if length == min(self.length, table.n_concepts) else None
            left = None if end is None else end - time.monotonic()
            if proved is None and (left is None or left > 0):
                proved = self._shorter(length, left).run(table, neuron)
            if proved is not None and proved.formula is not None and proved.status == "optimal":
                known[length] = LengthOptimum(
                    length, proved.formula, proved.intersection, proved.union
                )
        return dataclasses.replace(found, by_length=tuple(known[k] for k in sorted(known)))

    def _shorter(self, length: int, time_limit: float | None) -> "Optimal":
        """The search for the best formula of fewer concepts, and nothing else."""
        return Optimal(
            length,
            bounds=self.bounds,
            operators=self.operators,
            objective=self.objective,
            time_limit=time_limit,
            batch_size=self.batch_size,
            order=self.order,
            max_nodes=self.max_nodes,
        )

    def search(
        self,
        table: ConceptTable,
        neuron: NeuronCounts,
        prepared: Prepared | None = None,
        base: Fraction | None = None,
        known: Sequence[Candidate] = (),
    ) -> Search[Any]:
        """The search for one neuron, before its first turn.

        A `base` takes the place of |N| in `I / (|N| + E)`; some formulas may be `known`.
        """
        problem = self._problem(table, neuron, base)
        open_space = partial(self.bounds.open, problem, self.batch_size)
        incumbent = Incumbent(self._keep, partial(_identity, table), formula_order(table))
        for each in known:
            extras = each.score.union - neuron.size
            score = problem.score(each.score.intersection, extras)
            incumbent.offer(Candidate(each.formula, score))
        return Search(
            open_space if prepared is None else partial(open_space, prepared=prepared),
            neuron.size,
            incumbent,
            self.order,
            problem.highest,
            partial(host_beam, problem),
        )

    def searches(
        self, table: ConceptTable, neuron: NeuronCounts, prepared: Prepared | None = None
    ) -> PivotSearches:
        """Searches with any number of bases, which share what was counted."""
        if prepared is None:
            with place_of_bounds().scope():
                prepared = self.bounds.prepare([self._problem(table, neuron)])
        covered = neuron.size - int(neuron.inside[EMPTY_SIGNATURE])
        extras = int(neuron.outside.sum() - neuron.outside[EMPTY_SIGNATURE])
        margins = Margins(neuron.size, table.n_locations)
        facts = Facts(margins, covered, extras)
        return PivotSearches(facts, partial(self.search, table, neuron, prepared), self.limits)

    def _objective_search(
        self, table: ConceptTable, neuron: NeuronCounts, prepared: Prepared | None
    ) -> ObjectiveSearch:
        searches = self.searches(table, neuron, prepared)
        return ObjectiveSearch(self.objective, searches, formula_order(table))

    def resume(self, table: ConceptTable, neuron: NeuronCounts, state: object) -> Explanation:
        """Go on with a search that was stopped, under this method's limits.

        Bounds are the same if their classes, fields and arrays are.
        """
        if not isinstance(state, Stopped):
            raise TypeError(
                f"resume takes the `state` of a stopped search's Explanation; got {state!r}."
            )
        changed = state.question.differences(self._question(table, neuron))
        if changed:
            raise ValueError(
                f"The stopped search was for another {', '.join(changed)}. Only its limits "
                "(time_limit, gap, max_nodes), frontier_reduction and the callback may change; for "
                "anything else begin a new search, without `resume`."
            )
        return self._result(table, neuron, state.search.run(self.limits), state)

    def with_callback(self, callback: Callable[[Progress], None]) -> "Optimal":
        own = self.callback

        def both(progress: Progress) -> None:
            if own is not None:
                own(progress)
            callback(progress)

        return dataclasses.replace(self, callback=both)

    @property
    def repeatable(self) -> bool:
        # A time limit depends on the machine, and where a gap is reached on the batches too.
        return self.time_limit is None and self.gap == 0

    @property
    def formula_space(self) -> FormulaSpace:
        keep = self._keep.most, self.within
        return FormulaSpace(self.length, self.operators, *keep, self.objective)

    def _problem(
        self, table: ConceptTable, neuron: NeuronCounts, base: Fraction | None = None
    ) -> Problem:
        return Problem(
            table,
            neuron,
            self.length,
            self.operators,
            base,
            any_shape=self.any_shape,
            only_best=self._keep.only_best,
        )

    @property
    def limits(self) -> StoppingCriteria:
        """When the search stops before its proof is complete."""
        return StoppingCriteria(
            self.gap, self.time_limit, self.callback, self.frontier_reduction, self.max_nodes
        )

    @property
    def _keep(self) -> PoolCriteria:
        return PoolCriteria(self.top_k, self.within, self.max_within)

    def _question(self, table: ConceptTable, neuron: NeuronCounts) -> Question:
        return Question(
            self.length,
            self.operators,
            self.bounds,
            self.batch_size,
            self.order,
            self._keep,
            self.objective,
            table.fingerprint,
            _digest(neuron.inside.tobytes()),
        )


def _identity(table: ConceptTable, formula: Formula) -> bytes:
    """The same for formulas that hold at the same locations."""
    return _digest(np.packbits(table.holds(formula) & (table.sizes > 0)).tobytes())


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
