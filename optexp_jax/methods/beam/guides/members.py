"""Exact quantities of beam members, per sample, for guides.

All are stacked in the order of the fields of `Quantities` and `NeuronQuantities`, because each
argument of a compiled call has its price: `Quantities(*stacked)` takes them apart there.
"""

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Int64, Integer

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.quantities import (
    NeuronQuantities,
    Quantities,
    concept_quantities,
    neuron_quantities,
    padded_formula_quantities,
)
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.methods.beam.guides.base import Members
from optexp_jax.methods.beam.guides.host_quantities import HostQuantities
from optexp_jax.methods.beam.guides.pairs import by_sample, pair_quantities, table_pairs
from optexp_jax.search.problem import Problem


class DeviceQuantities:
    """The quantities of `HostQuantities`, summed up on the device and left there."""

    def __init__(self, table: ConceptTable, neuron: NeuronCounts):
        self._table, self._neuron = table, neuron

    @cached_property
    def neuron(self) -> Int64[Array, "5 samples"]:
        """What there is to cover in each sample."""
        return _stack(neuron_quantities(self._table, self._neuron))

    @cached_property
    def grid(self) -> Int64[Array, "4 concepts samples"]:
        """Of each concept in each sample."""
        return _stack(concept_quantities(self._table, self._neuron))

    @cached_property
    def of_padded_pairs(self) -> Int64[Array, "4 padded_pairs"]:
        """Of each pair (concept, sample), filled up to `TablePairs.n_padded`."""
        return _stack(pair_quantities(self._table, self._neuron))

    def of_concepts(self, concepts: Int32[np.ndarray, " rows"]) -> Int64[Array, "4 rows samples"]:
        """Of some concepts in each sample."""
        pairs = table_pairs(self._table)
        with jax.enable_x64(True):
            if pairs.fill_the_grid:
                return _take(self.grid, concepts)
            return by_sample(pairs.device, self.of_padded_pairs, concepts)

    def of_members(
        self, members: Members, operators: tuple[Operator, ...]
    ) -> Int64[Array, "4 members samples"]:
        """Of each member as a whole; further rows have no meaning."""
        if members.size == 1:
            return self.of_concepts(members.last_concepts)
        batch = members.batch(members.count, operators)
        return _stack(padded_formula_quantities(self._table, self._neuron, batch))


class MemberQuantities:
    """Quantities of beam members, one row for each row of `Members`."""

    def __init__(self, problem: Problem, on_host: bool | None = None):
        self._operators = problem.operators
        on_host = prefers_host_kernels() if on_host is None else on_host
        kind = HostQuantities if on_host else DeviceQuantities
        self.summed: HostQuantities | DeviceQuantities = kind(problem.table, problem.neuron)

    def last_concepts(self, members: Members) -> Int64[Array | np.ndarray, "4 rows samples"]:
        """Of the last concept of each member."""
        return self.summed.of_concepts(members.last_concepts)

    def exact(self, members: Members) -> Int64[Array | np.ndarray, "4 rows samples"]:
        """Of each member as a whole; padding repeats the last one."""
        found = self.summed.of_members(members, self._operators)
        rows = np.minimum(np.arange(len(members.parents)), members.count - 1)
        if isinstance(found, np.ndarray):
            return found[:, rows]
        with jax.enable_x64(True):
            return _take(found, rows)


def _stack(parts: Quantities | NeuronQuantities) -> Int64[Array, "parts *shape"]:
    with jax.enable_x64(True):
        return jnp.stack(jax.tree.leaves(parts))


@jax.jit
def _take(
    stacked: Int64[Array, "4 some samples"], rows: Integer[Array | np.ndarray, " rows"]
) -> Int64[Array, "4 rows samples"]:
    return stacked[:, rows]
