"""Exact quantities of beam members, per sample, for guides."""

from functools import cached_property

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int

from optexp_jax.guides.base import Members
from optexp_jax.guides.pairs import by_sample, pair_quantities, table_pairs
from optexp_jax.problem import Problem
from optexp_jax.quantities import (
    NeuronQuantities,
    Quantities,
    neuron_quantities,
    padded_formula_quantities,
    sample_quantities,
)


class MemberRows(eqx.Module):
    """Quantities of which members are some rows; compiled code picks these."""

    quantities: Quantities
    rows: Int[Array | np.ndarray, " rows"]

    def of_members(self) -> Quantities:
        """One row for each member."""
        return self.quantities[self.rows]


class MemberQuantities:
    """Quantities of the concepts of a problem, and of beam members, as rows."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._pairs = table_pairs(problem.table)
        self.on_grid = self._pairs.fill_the_grid
        self.grid: Quantities | None = None
        """Of each concept in each sample, where it pays to have them all."""
        self.neuron: NeuronQuantities
        """What there is to cover, per sample."""
        if self.on_grid:
            self.grid, self.neuron = sample_quantities(problem.table, problem.neuron)
        else:
            self.neuron = neuron_quantities(problem.table, problem.neuron)

    @cached_property
    def concepts(self) -> Quantities:
        """Of each pair (concept, sample)."""
        return pair_quantities(self._problem.table, self._problem.neuron)

    def last_concepts(self, members: Members) -> MemberRows:
        """Of the last concept of each member, `[row, sample]`."""
        if self.grid is not None:
            return MemberRows(self.grid, members.last_concepts)
        with jax.enable_x64(True):
            found = by_sample(self._pairs.device, self.concepts, members.last_concepts)
        return MemberRows(found, np.arange(len(members.parents)))

    def exact(self, members: Members) -> MemberRows:
        """Of each member as a whole, `[row, sample]`."""
        if members.size == 1:
            return self.last_concepts(members)
        # The first level has twice as many members as the others: half of the rows are padding.
        n_rows = len(members.parents)
        used = n_rows // 2 if members.count <= n_rows // 2 else n_rows
        batch = members.batch(used, self._problem.operators)
        found = padded_formula_quantities(self._problem.table, self._problem.neuron, batch)
        return MemberRows(found, np.minimum(np.arange(n_rows), used - 1))
