"""What every method is: a small immutable object that explains one neuron."""

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import equinox as eqx

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explanation import Explanation
from optexp_jax.methods.claim import FormulaSpace, Proof
from optexp_jax.search.stopping import Progress


class AbstractMethod(eqx.Module):
    """A way to explain a neuron. Methods hold settings only, so one serves any number of units.

    A method has to have `run`. The rest has defaults, which are right for a method that runs to its
    end in one go; `optexp_jax.runs` verifies results by what a method says of them.
    """

    proof: ClassVar[Proof] = Proof.UNKNOWN
    """When its results are proved to be the best ones."""

    @abc.abstractmethod
    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        """Explain a neuron of the table that has at least one active location."""

    def run_together(
        self, table: ConceptTable, neurons: Sequence[NeuronCounts]
    ) -> Iterator[Explanation]:
        """Explain a few neurons in their order; what all of them need may be computed at once."""
        return (self.run(table, neuron) for neuron in neurons)

    def resume(self, table: ConceptTable, neuron: NeuronCounts, state: object) -> Explanation:
        """Go on from the `state` of an explanation that this kind of method stopped early.

        A method that gives no `state` refuses, as this one does.
        """
        raise TypeError(
            f"{type(self).__name__} always runs to its end, so there is nothing to resume. Leave "
            "out `resume`, or pass the method whose search was stopped."
        )

    def with_callback(self, callback: Callable[[Progress], None]) -> "AbstractMethod":
        """This method, calling back with its progress, after a callback that it has already.

        A method that has no progress to tell is itself, as here.
        """
        return self

    @property
    def repeatable(self) -> bool:
        """Whether a second run finds the same, on any machine: it does not stop by the clock."""
        return True

    @property
    def formula_space(self) -> FormulaSpace:
        """The formulas that results are about."""
        raise ValueError(
            f"It is not known which formulas {self!r} is about, so its results cannot be verified. "
            "Define `formula_space` in its class."
        )


MOST_CONCEPTS, MOST_LISTED, MOST_AT_ONCE = 1000, 100_000, 1_000_000
"""In a formula; formulas that one search is to list; nodes or candidates that are handled at once.
More would not end, or not fit into any memory."""


def check_count(value: object, what: str, most: int | None = None) -> None:
    """Refuse settings that are not whole numbers from 1, or more than anybody can mean."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} must be a whole number, at least 1; got {value!r}.")
    if most is not None and value > most:
        raise ValueError(f"{what} can be at most {most}; got {value}.")
