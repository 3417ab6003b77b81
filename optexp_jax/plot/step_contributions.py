"""What each step of a formula adds and removes, in the paper's quantities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import as_counts
from optexp_jax.counts.quantities import formula_quantities
from optexp_jax.explanation import Explanation
from optexp_jax.formulas.formula import Formula
from optexp_jax.plot.figure import (
    CAPTURED,
    CAPTURED_LIGHT,
    EXTRAS,
    EXTRAS_LIGHT,
    GREY,
    as_written,
    clear_spines,
    new_figure,
    shown_name,
)

MOST_LETTERS = 30


@dataclass(frozen=True, eq=False)
class StepQuantities:
    """I^U, I^C, E^U, E^C of a formula's beginnings, one after each step, in locations."""

    labels: tuple[str, ...]
    iu: Int64[np.ndarray, " steps"]
    ic: Int64[np.ndarray, " steps"]
    eu: Int64[np.ndarray, " steps"]
    ec: Int64[np.ndarray, " steps"]
    iou: Float[np.ndarray, " steps"]


def contributions(table: ConceptTable, neuron: Any, formula: Formula | Explanation) -> Figure:
    """How each step changes the intersection, on the left, and the extras, on the right.

    Both are split into unique locations, which have one concept, and common ones, which have
    several. `neuron` is a bitmap or the `NeuronCounts` of one.
    """
    found = formula.formula if isinstance(formula, Explanation) else formula
    if found is None:
        raise ValueError("No concept overlaps the neuron, so there are no steps to plot.")
    steps = step_quantities(table, neuron, found)
    n = len(steps.labels)
    figure = new_figure(7.6, 0.45 * n + 1.5)
    inside, outside = figure.subplots(1, 2, sharey=True)
    _stacked(inside, steps.iu, steps.ic, CAPTURED, CAPTURED_LIGHT)
    _stacked(outside, steps.eu, steps.ec, EXTRAS, EXTRAS_LIGHT)
    inside.set_title("intersection: the unit is active")
    outside.set_title("extras: it is not")
    inside.set_yticks(range(n), steps.labels)
    as_written(*inside.get_yticklabels())
    inside.set_ylim(n - 0.5, -0.5)
    # On the far side: the IoU once a step is taken.
    scale = outside.secondary_yaxis("right")
    scale.set_yticks(range(n), [f"IoU {iou:.3f}" for iou in steps.iou])
    scale.tick_params(length=0, labelcolor=GREY)
    scale.spines["right"].set_visible(False)
    outside.tick_params(axis="y", length=0)
    for axes in (inside, outside):
        axes.set_xlabel("locations added or removed")
        axes.legend(frameon=False, fontsize="small", loc="best")
    return figure


def step_quantities(table: ConceptTable, neuron: Any, formula: Formula) -> StepQuantities:
    """The quantities after each step of the canonical chain, the one that is printed."""
    counts, chain = as_counts(table, neuron), formula.canonical
    beginnings = [
        Formula(chain.concepts[:n], chain.operators[: n - 1])
        for n in range(1, len(chain.concepts) + 1)
    ]
    found = formula_quantities(table, counts, beginnings).aggregate()
    iu, ic, eu, ec = (
        np.asarray(part)[:, 0].astype(np.int64) for part in (found.iu, found.ic, found.eu, found.ec)
    )
    names = [shown_name(name, MOST_LETTERS) for name in chain.concepts]
    joined = [f"{op} {name}" for op, name in zip(chain.operators, names[1:], strict=True)]
    iou = (iu + ic) / (counts.size + eu + ec)
    return StepQuantities((names[0], *joined), iu, ic, eu, ec, iou)


def _stacked(
    axes: Axes,
    unique: Int64[np.ndarray, " steps"],
    common: Int64[np.ndarray, " steps"],
    dark: str,
    light: str,
) -> None:
    """Changes of two quantities, gains to the right and losses to the left of the middle."""
    first, second = np.diff(unique, prepend=0), np.diff(common, prepend=0)
    rows = np.arange(len(unique))
    # One sign each: the second begins where the first ends, or in the middle.
    start = np.where(np.sign(first) == np.sign(second), first, 0)
    axes.barh(rows, first, height=0.6, color=dark, label="unique")
    axes.barh(rows, second, height=0.6, left=start, color=light, label="common")
    axes.axvline(0, color=GREY, linewidth=0.8)
    clear_spines(axes)
