"""What a family of bounds is: it opens a search space for a problem."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.neuron import NeuronCounts
from optexp_jax.problem import Problem
from optexp_jax.search.driver import AbstractSpace, InadmissibleBoundError

__all__ = ["Bounds", "InadmissibleBoundError"]


class Bounds(eqx.Module):
    """A family of bounds for `Optimal(bounds=...)`."""

    def prepare(self, table: ConceptTable, neurons: Sequence[NeuronCounts]) -> None:
        """Do at once what the searches of several neurons need; they work without it, too."""

    @abc.abstractmethod
    def open(self, problem: Problem, batch_size: int | None = None) -> AbstractSpace[Any]:
        """A search space for one problem. The driver asks it for nodes, children and bounds.

        `batch_size` is how many nodes are expanded at once; None leaves it to the family.
        """
