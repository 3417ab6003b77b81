"""How much of a unit's activation a formula captures in each sample, in exact locations."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.formulas.formula import Formula


@dataclass(frozen=True, eq=False)
class SampleAreas:
    """Locations of each sample, by whether a unit is active there and a formula holds there."""

    captured: Int64[np.ndarray, " samples"]
    """Active, and the formula holds."""
    missed: Int64[np.ndarray, " samples"]
    """Active, and the formula does not hold."""
    extras: Int64[np.ndarray, " samples"]
    """The formula holds, but the unit is not active."""

    @classmethod
    def of(
        cls, table: ConceptTable, counts: NeuronCounts, formula: Formula | None
    ) -> "SampleAreas":
        """Of a unit's counts; with no formula nothing is captured. No bitmap is needed."""
        counts.require_table(table)
        patches = table.patches
        held = np.zeros(len(patches), np.bool_)
        if formula is not None:
            held = table.holds(formula)[patches.signature]
        active = counts.patch_inside(table)
        first = patches.indptr[:-1]  # No sample is without a patch.
        captured = np.add.reduceat(np.where(held, active, 0), first)
        return cls(
            captured=captured,
            missed=np.add.reduceat(active, first) - captured,
            extras=np.add.reduceat(np.where(held, patches.size, 0), first) - captured,
        )

    @property
    def active(self) -> Int64[np.ndarray, " samples"]:
        """Active locations."""
        return self.captured + self.missed

    @property
    def union(self) -> Int64[np.ndarray, " samples"]:
        """Locations where the unit is active or the formula holds."""
        return self.captured + self.missed + self.extras
