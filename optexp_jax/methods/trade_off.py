"""Every trade-off between covering more of a neuron and holding elsewhere less."""

import math
from collections.abc import Callable
from fractions import Fraction

import equinox as eqx

from optexp_jax.bounds.tight.family import TightBounds
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.neuron_summary import summarise_neuron
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.methods.base import MOST_AT_ONCE, MOST_CONCEPTS, check_count
from optexp_jax.methods.hull.curve import TradeOffCurve
from optexp_jax.methods.hull.hull_search import HullSearch, LambdaRange
from optexp_jax.methods.optimal import Optimal
from optexp_jax.search.stopping import Progress


class TradeOff(eqx.Module):
    """The formulas that have the highest `I − λ·E` for some λ: from the most precise to the widest.

    The best formulas by IoU, F1, cosine and (where one is above 0) phi are among them. Pass it to
    `trade_off`. `time_limit` stops it early; segments that are not proved then carry a bound.
    """

    length: int = 3
    """Most concepts in a formula."""
    lambdas: tuple[float, float] = eqx.field(default=(0.0, math.inf), kw_only=True)
    """For which λ: 0 begins with the widest formula, infinity ends with the most precise one."""
    operators: tuple[Operator, ...] = eqx.field(
        default=DEFAULT_OPERATORS, converter=check_operators, kw_only=True
    )
    """Operators that formulas may use, of OR, AND and AND NOT."""
    bounds: TightBounds = eqx.field(default=TightBounds(), kw_only=True)
    """The family of bounds that the searches prune with."""
    time_limit: float | None = eqx.field(default=None, kw_only=True)
    """Stop after so many seconds."""
    batch_size: int | None = eqx.field(default=None, kw_only=True)
    """Nodes that are expanded at once."""
    callback: Callable[[Progress], None] | None = eqx.field(default=None, kw_only=True)
    """Called after every search; `nodes` is how many segments are not proved."""
    max_nodes: int = eqx.field(default=10_000_000, kw_only=True)
    """Stop when more nodes than this wait in one of the searches."""

    def __check_init__(self) -> None:
        check_count(self.length, "length", MOST_CONCEPTS)
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size", MOST_AT_ONCE)
        check_count(self.max_nodes, "max_nodes")
        if not isinstance(self.bounds, TightBounds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"bounds must be TightBounds(); got {self.bounds!r}.")
        if set(self.operators) - set(DEFAULT_OPERATORS):
            raise ValueError("A trade-off is proved with OR, AND and AND NOT only; pass no others.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive seconds; got {self.time_limit}.")
        low, high = self.lambdas
        if not (0 <= low < high):
            raise ValueError(
                f"lambdas must be a lower and a higher λ, from 0 to infinity; got {self.lambdas}."
            )

    def search(self, table: ConceptTable, neuron: NeuronCounts) -> HullSearch:
        """The search for one neuron, before it begins."""
        searches = self._single.searches(table, neuron)
        return HullSearch(searches, summarise_neuron(table, neuron), self._range)

    def run(
        self, table: ConceptTable, neuron: NeuronCounts, state: object | None = None
    ) -> TradeOffCurve:
        """The trade-offs of a neuron; `state` is that of a curve that was stopped, to go on."""
        if state is None:
            state = self.search(table, neuron)
        if not isinstance(state, HullSearch):
            raise TypeError(f"resume takes the `state` of a stopped TradeOffCurve; got {state!r}.")
        return state.run(self._single.limits)

    @property
    def _single(self) -> Optimal:
        """The searches that it is made of."""
        return Optimal(
            self.length,
            bounds=self.bounds,
            operators=self.operators,
            time_limit=self.time_limit,
            batch_size=self.batch_size,
            callback=self.callback,
            max_nodes=self.max_nodes,
        )

    @property
    def _range(self) -> LambdaRange:
        # As they are written, 0.1 for a tenth, not the binary number next to it.
        low, high = self.lambdas
        return LambdaRange(
            Fraction(repr(float(low))) if low else None,
            Fraction(repr(float(high))) if math.isfinite(high) else None,
        )
