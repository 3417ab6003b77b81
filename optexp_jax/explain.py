"""The entry point: a table, a neuron and a method give an explanation."""

import dataclasses
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts, as_counts
from optexp_jax.counts.neuron_summary import summarise_neuron
from optexp_jax.counts.unverified import unverified_steps
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.hull.curve import TradeOffCurve
from optexp_jax.methods.optimal import Optimal
from optexp_jax.methods.trade_off import TradeOff


def explain(
    table: ConceptTable, neuron: Any, method: AbstractMethod | None = None, *, resume: object = None
) -> Explanation:
    """Explain one neuron; by default with `Optimal()`.

    `neuron` is a boolean bitmap `[sample, *location]` of its active locations, or the
    `NeuronCounts` that `table.count` makes of one. `resume` takes the `state` of an explanation
    whose search was stopped early, and goes on with it, if the method can.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    counts = firing(table, neuron)
    if resume is None:
        return explain_counts(table, counts, method)
    return described(table, counts, method.resume(table, counts, resume))


def explain_counts(
    table: ConceptTable, counts: NeuronCounts, method: AbstractMethod
) -> Explanation:
    """Explain a neuron that is known to have active locations."""
    return described(table, counts, method.run(table, counts))


def described(table: ConceptTable, counts: NeuronCounts, found: Explanation) -> Explanation:
    """The explanation with what does not depend on the method that found it."""
    return dataclasses.replace(
        found,
        unverified=() if found.formula is None else unverified_steps(table, found.formula),
        neuron=summarise_neuron(table, counts) if found.neuron is None else found.neuron,
    )


def check_question(table: object, method: object) -> None:
    """TypeError unless these are a table and a method."""
    if not isinstance(table, ConceptTable):
        raise TypeError(f"table must be a ConceptTable; got {type(table).__name__}.")
    if not isinstance(method, AbstractMethod):
        raise TypeError(f"method must be a method such as NetDissect(); got {method!r}.")


def firing(table: ConceptTable, neuron: Any) -> NeuronCounts:
    """A neuron's counts; ValueError if it has no active location."""
    counts = as_counts(table, neuron)
    if counts.size == 0:
        raise ValueError(
            "The neuron never fires: none of its locations is active, so no formula can overlap "
            "it. Lower its threshold, or leave this unit out."
        )
    return counts


def trade_off(
    table: ConceptTable, neuron: Any, method: TradeOff | None = None, *, resume: object = None
) -> TradeOffCurve:
    """All best trade-offs between active locations that a formula covers and extras that it has.

    `neuron` is as for `explain`. `resume` takes the `state` of a curve that was stopped early.
    """
    method = TradeOff() if method is None else method
    if not isinstance(table, ConceptTable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"table must be a ConceptTable; got {type(table).__name__}.")
    if not isinstance(method, TradeOff):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"method must be a TradeOff(); got {method!r}.")
    return method.run(table, firing(table, neuron), resume)
