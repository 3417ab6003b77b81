"""The units of a task, some at a time, so that what all of them need is computed at once."""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import check_question, described, explain_counts
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.together import neurons_together


@dataclass(frozen=True)
class Explained:
    """An explanation, and what it took."""

    found: Explanation
    seconds: float
    """With the neuron's share of what was computed for several."""


class ExplainedTogether:
    """Explains neurons in the order in which they were announced, each when it is asked for.

    One that fails takes nothing from the others: those that were prepared with it are prepared
    again, or explained alone if that is what fails.
    """

    def __init__(
        self, table: ConceptTable, method: AbstractMethod, neurons: Sequence[NeuronCounts]
    ):
        check_question(table, method)
        self._table, self._method = table, method
        self._waiting = list(neurons)
        self._prepared: Iterator[Explanation] = iter(())
        self._n_prepared = 0
        self._shared_seconds = 0.0

    def next(self) -> Explained:
        """The explanation of the next neuron."""
        if not self._n_prepared:
            self._prepare()
        neuron, start = self._waiting.pop(0), time.perf_counter()
        if not self._n_prepared:
            found = explain_counts(self._table, neuron, self._method)
            return Explained(found, time.perf_counter() - start)
        self._n_prepared -= 1
        try:
            found = next(self._prepared)
        except Exception:
            self._n_prepared = 0  # an iterator that has raised gives nothing more
            raise
        found = described(self._table, neuron, found)
        return Explained(found, self._shared_seconds + time.perf_counter() - start)

    def _prepare(self) -> None:
        """Compute what the next neurons need together; if that fails, each is left to itself."""
        group = list(itertools.islice(self._waiting, neurons_together(self._table)))
        start = time.perf_counter()
        try:
            self._prepared = self._method.run_together(self._table, group)
        except Exception:
            return
        self._n_prepared = len(group)
        self._shared_seconds = (time.perf_counter() - start) / len(group)
