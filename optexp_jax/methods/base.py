"""What every method is: a small immutable object that explains one neuron."""

import abc

import equinox as eqx

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation
from optexp_jax.neuron import NeuronCounts


class AbstractMethod(eqx.Module):
    """A way to explain a neuron. Methods hold settings only, so one serves any number of units."""

    @abc.abstractmethod
    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        """Explain a neuron of the table that has at least one active location."""


def check_length(length: object) -> None:
    """Refuse formula lengths that are not whole numbers from 1."""
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise ValueError(f"length must be a whole number, at least 1; got {length!r}.")
