"""A problem: what a search is asked to do, with the device arrays that bounds are made of."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.pair_overlaps import PairOverlaps, pair_overlaps
from optexp_jax.counts.quantities import (
    NeuronQuantities,
    Quantities,
    concept_quantities,
    neuron_quantities,
)
from optexp_jax.counts.scores import PivotScore, Score
from optexp_jax.formulas.operators import Operator


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the formula of at most `length` concepts of the table that fits the neuron best."""

    table: ConceptTable
    neuron: NeuronCounts
    length: int
    operators: tuple[Operator, ...]
    base: Fraction | None = None
    """What every union has besides extras: formulas are compared by `I / (base + E)`.

    None is |N|, and makes that the IoU. Any positive number will do
    (`docs/explanation/trade_off.md`).
    """
    any_shape: bool = False
    """Whether to tell how high the IoU of formulas of any other shape can be."""
    only_best: bool = True
    """Whether the best formula is wanted alone, without runners-up."""

    @property
    def rounded_base(self) -> float:
        """The base, correctly rounded."""
        return float(self.neuron.size) if self.base is None else float(self.base)

    @property
    def highest(self) -> float:
        """No formula has a higher value: all active locations and no extras, rounded up."""
        if self.base is None:
            return 1.0
        return float(np.nextafter(float(self.neuron.size / self.base), np.inf))

    def score(self, inside: int, outside: int) -> Score:
        """The score of a formula with so many active locations, and so many extras."""
        size = self.neuron.size
        if self.base is None:
            return Score(inside, size + outside)
        return PivotScore(inside, size + outside, self.base - size)

    @property
    def depth(self) -> int:
        """The longest formula there can be: concepts are distinct."""
        return min(self.length, self.table.n_concepts)

    @property
    def sample_size(self) -> int:
        """Locations of the largest sample."""
        located = self.table.sample_map
        return self.table.n_locations if located is None else located.sample_size

    @cached_property
    def concepts(self) -> Quantities:
        """Exact quantities of every concept, per sample."""
        return concept_quantities(self.table, self.neuron)

    @cached_property
    def whole(self) -> NeuronQuantities:
        """What there is to cover, per sample."""
        return neuron_quantities(self.table, self.neuron)

    @cached_property
    def disjoint(self) -> Bool[Array, "concepts concepts"]:
        """Which concepts never share a location."""
        with jax.enable_x64(True):
            return jnp.asarray(self.table.disjoint)

    @cached_property
    def pairs(self) -> PairOverlaps:
        """What any two concepts share, in the whole dataset."""
        return pair_overlaps(self.table, self.neuron)
