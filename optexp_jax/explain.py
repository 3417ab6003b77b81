"""The entry point: a table, a neuron and a method give an explanation."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.neuron import NeuronCounts, as_counts
from optexp_jax.unverified import unverified_steps

TOGETHER = 8
"""Neurons of `explain_many` that are prepared together."""


def explain(
    table: ConceptTable, neuron: Any, method: AbstractMethod | None = None, *, resume: object = None
) -> Explanation:
    """Explain one neuron; by default with `Optimal()`.

    `neuron` is a boolean bitmap `[sample, *location]` of its active locations, or the
    `NeuronCounts` that `table.count` makes of one. `resume` takes the `state` of an explanation
    whose search was stopped early, and goes on with it, if the method can.
    """
    method = Optimal() if method is None else method
    _check(table, method)
    counts = _firing(table, neuron)
    if resume is None:
        return explain_counts(table, counts, method)
    return _with_unverified(table, method.resume(table, counts, resume))


def explain_many(
    table: ConceptTable,
    neurons: Iterable[Any],
    method: AbstractMethod | None = None,
    *,
    executor: Executor | None = None,
) -> Iterator[Explanation]:
    """Explain neurons in their order, each yielded when it and those before it are done.

    They are explained here, one after another, or on any `concurrent.futures.Executor`. What
    several of them need is computed together, so a few are taken in before the first is explained.
    """
    method = Optimal() if method is None else method
    _check(table, method)
    if executor is not None:
        from optexp_jax.runs.many import explain_on

        firing = (_firing(table, neuron) for neuron in neurons)
        yield from explain_on(executor, table, firing, method)
        return
    waiting = iter(neurons)
    while group := [_firing(table, neuron) for neuron in itertools.islice(waiting, TOGETHER)]:
        method.prepare(table, group)
        for counts in group:
            yield explain_counts(table, counts, method)


def explain_counts(
    table: ConceptTable, counts: NeuronCounts, method: AbstractMethod
) -> Explanation:
    """Explain a neuron that is known to have active locations."""
    return _with_unverified(table, method.run(table, counts))


def _with_unverified(table: ConceptTable, found: Explanation) -> Explanation:
    if found.formula is None:
        return found
    return dataclasses.replace(found, unverified=unverified_steps(table, found.formula))


def _check(table: object, method: object) -> None:
    if not isinstance(table, ConceptTable):
        raise TypeError(f"table must be a ConceptTable; got {type(table).__name__}.")
    if not isinstance(method, AbstractMethod):
        raise TypeError(f"method must be a method such as NetDissect(); got {method!r}.")


def _firing(table: ConceptTable, neuron: Any) -> NeuronCounts:
    counts = as_counts(table, neuron)
    if counts.size == 0:
        raise ValueError(
            "The neuron never fires: none of its locations is active, so no formula can overlap "
            "it. Lower its threshold, or leave this unit out."
        )
    return counts
