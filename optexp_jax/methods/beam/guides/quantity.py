"""The published guide: candidates estimated from the quantities of their two sides."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.bounds.paper.chains import row_bits
from optexp_jax.bounds.paper.label import LabelBounds, join
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.tracing import note_trace
from optexp_jax.methods.beam.guides.base import AbstractEstimator, AbstractGuide, Members
from optexp_jax.methods.beam.guides.members import MemberQuantities
from optexp_jax.methods.beam.guides.pairs import Pairs, Tree, table_pairs
from optexp_jax.methods.beam.guides.quantity_on_host import HostQuantityEstimator
from optexp_jax.methods.beam.guides.totals import (
    Best,
    estimate_children,
    estimate_rows,
    upper_ratio,
)
from optexp_jax.search.problem import Problem


class QuantityGuide(AbstractGuide):
    """Bounds each candidate per sample by the published estimate of labels, dIoU_max.

    With `exact_updates` the exact quantities of beam members are computed after each level.
    Without, members keep the intervals that they were estimated by: no pass over the data between
    levels, but looser estimates and more candidates visited.
    """

    exact_updates: bool = eqx.field(default=True, kw_only=True)

    knows_disjoint: ClassVar[bool] = True

    def open(self, problem: Problem) -> AbstractEstimator:
        if self.exact_updates and prefers_host_kernels():
            return HostQuantityEstimator(problem)
        return QuantityEstimator(problem, self.exact_updates)


class QuantityEstimator(AbstractEstimator):
    """The quantity guide at work on one problem, in compiled programs."""

    def __init__(self, problem: Problem, exact_updates: bool, on_host: bool | None = None):
        """`on_host` tells where quantities are summed up."""
        self._problem = problem
        self._exact_updates = exact_updates
        self._pairs = table_pairs(problem.table)
        self._quantities = MemberQuantities(problem, on_host)
        self._before: tuple[Members, LabelBounds] | None = None

    def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
        summed, operators = self._quantities.summed, self._problem.operators
        with jax.enable_x64(True):
            known = self._known(members)
            if self._pairs.fill_the_grid:
                return np.asarray(
                    _estimate_on_grid(summed.grid, known, members.apart, summed.neuron, operators)
                )
            return np.asarray(
                _estimate(
                    self._pairs.device,
                    summed.of_padded_pairs,
                    known,
                    members.apart,
                    summed.neuron,
                    np.int64(members.count),
                    operators,
                )
            )

    def _known(self, members: Members) -> "Known":
        """What is known of each member: all, or without exact updates what its parent tells."""
        if self._exact_updates:
            return self._quantities.exact(members)
        if self._before is None:
            bounds = _exact_bounds(self._quantities.exact(members))
        else:
            parents, parent_bounds = self._before
            bounds = _extend(
                parent_bounds,
                parents.apart,
                self._quantities.last_concepts(members),
                members.parents,
                members.last_concepts,
                members.last_operators,
                self._quantities.summed.neuron,
                self._problem.operators,
            )
        self._before = members, bounds
        return bounds


Known = Int64[Array | np.ndarray, "4 rows samples"] | LabelBounds
"""What is known of members: their quantities, stacked, or bounds."""


@jax.jit
def _exact_bounds(stacked: Int64[Array, "4 rows samples"]) -> LabelBounds:
    return LabelBounds.exact(Quantities(*stacked))


@partial(jax.jit, static_argnums=7)
def _extend(
    bounds: LabelBounds,
    apart: Bool[Array, "rows concepts"],
    right: Int64[Array, "4 rows samples"],
    parents: Int32[Array, " rows"],
    concepts: Int32[Array, " rows"],
    operators: Int32[Array, " rows"],
    neuron: Int64[Array, "5 samples"],
    operator_set: tuple[Operator, ...],
) -> LabelBounds:
    """Bounds of members from those of the members that they extend."""
    note_trace("extend_bounds")
    left = jax.tree.map(lambda part: part[parents], bounds)
    bits = row_bits(operator_set, operators)
    disjoint = apart[parents, concepts]
    return join(left, Quantities(*right), bits, disjoint, NeuronQuantities(*neuron))


class _Row(eqx.Module):
    """A member: what is known of it, and the concepts that it is disjoint from."""

    known: Quantities | LabelBounds
    apart: Bool[Array, "*rows concepts"]

    @classmethod
    def all(cls, members: Known, apart: Bool[Array, "rows concepts"]) -> "_Row":
        """One row for each member."""
        known = members if isinstance(members, LabelBounds) else Quantities(*members)
        return cls(known, apart)

    @property
    def bounds(self) -> LabelBounds:
        # Made of exact quantities in each row, not before: then the compiler sees that both ends
        # of its intervals are the same.
        if isinstance(self.known, Quantities):
            return LabelBounds.exact(self.known)
        return self.known


@partial(jax.jit, static_argnums=6)
def _estimate(
    pairs: Pairs,
    concepts: Int64[Array, "4 pairs"],
    members: Known,
    apart: Bool[Array, "rows concepts"],
    neuron: Int64[Array, "5 samples"],
    count: Int64[Array, ""],
    operators: tuple[Operator, ...],
) -> Float64[Array, "rows operators concepts"]:
    """dIoU_max of each member joined to each concept."""
    note_trace("estimate_by_quantities")
    there = NeuronQuantities(*neuron)
    size = there.n.sum()
    right = _as_labels(Quantities(*concepts))
    whole = jax.tree.map(lambda part: part[pairs.sample][:, None], there)

    def of_member(member: _Row) -> Float64[Array, "operators concepts"]:
        left = _as_labels(jax.tree.map(lambda part: part[pairs.sample], member.bounds))
        apart = member.apart.at[pairs.concept].get(mode="fill", fill_value=False)[:, None]
        joined: dict[Operator, Best] = {}
        for operator in operators:
            bits = row_bits((operator,), jnp.zeros(1, jnp.int32))
            bounds = jax.vmap(join, in_axes=(0, 0, None, 0, 0))(left, right, bits, apart, whole)
            joined[operator] = _best(jax.tree.map(lambda part: part[:, 0, 0], bounds))
        return estimate_children(pairs, _best(member.bounds), joined, size)

    shape = len(operators), pairs.n_concepts
    return estimate_rows(_Row.all(members, apart), count, shape, of_member)


@partial(jax.jit, static_argnums=4)
def _estimate_on_grid(
    grid: Int64[Array, "4 concepts samples"],
    members: Known,
    apart: Bool[Array, "rows concepts"],
    neuron: Int64[Array, "5 samples"],
    operators: tuple[Operator, ...],
) -> Float64[Array, "rows operators concepts"]:
    """The same from the quantities of every concept in every sample."""
    note_trace("estimate_on_grid")
    concepts, there = Quantities(*grid), NeuronQuantities(*neuron)

    def of_member(member: _Row) -> Float64[Array, "operators concepts"]:
        left = jax.tree.map(lambda part: jnp.broadcast_to(part, concepts.iu.shape), member.bounds)
        estimates: list[Float64[Array, " concepts"]] = []
        for operator in operators:
            bits = row_bits((operator,), jnp.zeros(1, jnp.int32))
            best = _best(join(left, concepts, bits, member.apart, there))
            inside, outside = best.inside.sum(-1), best.outside.sum(-1)
            estimates.append(upper_ratio(inside, there.n.sum() + outside))
        return jnp.stack(estimates)

    return jax.vmap(of_member)(_Row.all(members, apart))


def _as_labels(tree: Tree) -> Tree:
    """One label of one sample for each pair."""
    return jax.tree.map(lambda part: part[:, None, None], tree)


def _best(bounds: LabelBounds) -> Best:
    """The terms of `dIoU_max = (I^U + I^C_max) / (|N| + E^U + E^C_min)`."""
    return Best(bounds.iu + bounds.ic.high, bounds.eu + bounds.ec.low)
