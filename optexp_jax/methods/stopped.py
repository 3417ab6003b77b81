"""A search that was stopped, and what it was asked: only the same question goes on."""

from dataclasses import dataclass
from typing import Any

from optexp_jax.bounds.base import AbstractBounds
from optexp_jax.counts.metrics import Objective
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.structural_equality import structurally_equal
from optexp_jax.methods.hull.objective_search import ObjectiveSearch
from optexp_jax.search.driver import Search
from optexp_jax.search.incumbent import PoolCriteria
from optexp_jax.search.order import AbstractOrder


@dataclass(frozen=True, eq=False)
class Question:
    """What a search is asked: all that decides its nodes and its answer, but no limits."""

    length: int
    operators: tuple[Operator, ...]
    bounds: AbstractBounds
    batch_size: int | None
    order: AbstractOrder
    keep: PoolCriteria
    objective: Objective
    table: str
    """The table's fingerprint."""
    neuron: bytes
    """A digest of the neuron's counts."""

    def differences(self, other: "Question") -> list[str]:
        """In what the other one differs, in words of the settings."""
        parts = {
            "table": (self.table, other.table),
            "neuron": (self.neuron, other.neuron),
            "length": (self.length, other.length),
            "operators": (self.operators, other.operators),
            "bounds": (self.bounds, other.bounds),
            "batch_size": (self.batch_size, other.batch_size),
            "order": (self.order, other.order),
            "top_k": (self.keep.top_k, other.keep.top_k),
            "within": (self.keep.within, other.keep.within),
            "max_within": (self.keep.max_within, other.keep.max_within),
            "objective": (self.objective, other.objective),
        }
        return [name for name, values in parts.items() if not structurally_equal(*values)]


@dataclass(frozen=True, eq=False)
class Stopped:
    """A search that can go on."""

    search: Search[Any] | ObjectiveSearch
    question: Question
