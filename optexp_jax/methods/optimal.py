"""The optimal search: the best formula, with a proof."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from optexp_jax.bounds.base import AbstractBounds, Prepared
from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.unverified import formula_order
from optexp_jax.explanation import Explanation
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
from optexp_jax.methods.stopped import Question, Stopped
from optexp_jax.search.driver import Progress, Search, StoppingCriteria
from optexp_jax.search.host_beam import host_beam
from optexp_jax.search.incumbent import Incumbent, PoolCriteria
from optexp_jax.search.order import AbstractOrder, BestFirst
from optexp_jax.search.problem import Problem


class Optimal(AbstractMethod):
    """The formula of at most `length` concepts with the highest IoU, proved by branch and bound.

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
        if self.within is not None and self.top_k != 1:
            raise ValueError("Ask for the top_k formulas or for those within a share, not both.")

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
        search = self.search(table, neuron, prepared)
        found = search.run(self.limits)
        if found.status == "optimal":
            return found
        return dataclasses.replace(found, state=Stopped(search, self._question(table, neuron)))

    def search(
        self, table: ConceptTable, neuron: NeuronCounts, prepared: Prepared | None = None
    ) -> Search[Any]:
        """The search for one neuron, before its first turn."""
        problem = self._problem(table, neuron)
        open_space = partial(self.bounds.open, problem, self.batch_size)
        return Search(
            open_space if prepared is None else partial(open_space, prepared=prepared),
            neuron.size,
            Incumbent(self._keep, partial(_identity, table), formula_order(table)),
            self.order,
            partial(host_beam, problem),
        )

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
        found = state.search.run(self.limits)
        return found if found.status == "optimal" else dataclasses.replace(found, state=state)

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
        return FormulaSpace(self.length, self.operators, self._keep.most, self.within)

    def _problem(self, table: ConceptTable, neuron: NeuronCounts) -> Problem:
        return Problem(table, neuron, self.length, self.operators)

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
            table.fingerprint,
            _digest(neuron.inside.tobytes()),
        )


def _identity(table: ConceptTable, formula: Formula) -> bytes:
    """The same for formulas that hold at the same locations."""
    return _digest(np.packbits(table.holds(formula) & (table.sizes > 0)).tobytes())


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
