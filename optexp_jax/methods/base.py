"""What every method is: a small immutable object that explains one neuron."""

import abc
from collections.abc import Sequence

import equinox as eqx

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation
from optexp_jax.neuron import NeuronCounts


class AbstractMethod(eqx.Module):
    """A way to explain a neuron. Methods hold settings only, so one serves any number of units."""

    def prepare(self, table: ConceptTable, neurons: Sequence[NeuronCounts]) -> None:
        """Do at once what the runs of several neurons need; they work without it, too."""

    @abc.abstractmethod
    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        """Explain a neuron of the table that has at least one active location."""


MOST_CONCEPTS, MOST_LISTED, MOST_AT_ONCE = 1000, 100_000, 1_000_000
"""In a formula; formulas that one search is to list; nodes or candidates that are handled at once.
More would not end, or not fit into any memory."""


def check_count(value: object, what: str, most: int | None = None) -> None:
    """Refuse settings that are not whole numbers from 1, or more than anybody can mean."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} must be a whole number, at least 1; got {value!r}.")
    if most is not None and value > most:
        raise ValueError(f"{what} can be at most {most}; got {value}.")
