"""Exact quantities of beam members, per sample, for guides."""

from functools import cached_property

import jax
import numpy as np
from jaxtyping import Array, Int

from optexp_jax.guides.base import Members
from optexp_jax.guides.pairs import by_sample, pair_quantities, table_pairs
from optexp_jax.problem import Problem
from optexp_jax.quantities import Quantities, padded_formula_quantities


class MemberQuantities:
    """Quantities of the concepts of a problem, as pairs, and of beam members, as rows."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._pairs = table_pairs(problem.table)

    @cached_property
    def concepts(self) -> Quantities:
        """Of each pair (concept, sample)."""
        return pair_quantities(self._problem.table, self._problem.neuron)

    def last_concepts(self, members: Members) -> Quantities:
        """Of the last concept of each member, `[row, sample]`."""
        with jax.enable_x64(True):
            if self._pairs.fill_the_grid:
                return _take_rows(self._problem.concepts, members.last_concepts)
            return by_sample(self._pairs.device, self.concepts, members.last_concepts)

    def exact(self, members: Members) -> Quantities:
        """Of each member as a whole, `[row, sample]`."""
        if members.size == 1:
            return self.last_concepts(members)
        # The first level has twice as many members as the others: half of the rows are padding.
        n_rows = len(members.parents)
        used = n_rows // 2 if members.count <= n_rows // 2 else n_rows
        batch = members.batch(used, self._problem.operators)
        rows = padded_formula_quantities(self._problem.table, self._problem.neuron, batch)
        with jax.enable_x64(True):
            return _take_rows(rows, np.minimum(np.arange(n_rows), used - 1))


@jax.jit
def _take_rows(quantities: Quantities, rows: Int[Array, " rows"]) -> Quantities:
    return quantities[rows]
