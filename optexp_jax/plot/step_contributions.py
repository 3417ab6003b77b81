"""What each step of a formula adds and removes, in the paper's quantities."""

from typing import Any

import numpy as np
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.formula_steps import FormulaStep, formula_steps
from optexp_jax.counts.neuron import as_counts
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


def contributions(table: ConceptTable, neuron: Any, formula: Formula | Explanation) -> Figure:
    """How each step changes the intersection, on the left, and the extras, on the right.

    Both are split into unique locations, which have one concept, and common ones, which have
    several. `neuron` is a bitmap or the `NeuronCounts` of one.
    """
    found = formula.formula if isinstance(formula, Explanation) else formula
    if found is None:
        raise ValueError("No concept overlaps the neuron, so there are no steps to plot.")
    steps = formula_steps(table, as_counts(table, neuron), found)
    changes = [step.change for step in steps]
    n = len(steps)
    figure = new_figure(7.6, 0.45 * n + 1.5)
    inside, outside = figure.subplots(1, 2, sharey=True)
    _stacked(
        inside,
        np.array([change.unique_intersection for change in changes]),
        np.array([change.common_intersection for change in changes]),
        CAPTURED,
        CAPTURED_LIGHT,
    )
    _stacked(
        outside,
        np.array([change.unique_extras for change in changes]),
        np.array([change.common_extras for change in changes]),
        EXTRAS,
        EXTRAS_LIGHT,
    )
    inside.set_title("intersection: the unit is active")
    outside.set_title("extras: it is not")
    inside.set_yticks(range(n), [_label(step) for step in steps])
    as_written(*inside.get_yticklabels())
    inside.set_ylim(n - 0.5, -0.5)
    # On the far side: the IoU once a step is taken.
    scale = outside.secondary_yaxis("right")
    scale.set_yticks(range(n), [f"IoU {step.score.iou:.3f}" for step in steps])
    scale.tick_params(length=0, labelcolor=GREY)
    scale.spines["right"].set_visible(False)
    outside.tick_params(axis="y", length=0)
    for axes in (inside, outside):
        axes.set_xlabel("locations added or removed")
        axes.legend(frameon=False, fontsize="small", loc="best")
    return figure


def _label(step: FormulaStep) -> str:
    name = shown_name(step.concept, MOST_LETTERS)
    return name if step.operator is None else f"{step.operator} {name}"


def _stacked(
    axes: Axes,
    first: Int64[np.ndarray, " steps"],
    second: Int64[np.ndarray, " steps"],
    dark: str,
    light: str,
) -> None:
    """Changes of a unique and a common quantity: gains to the right, losses to the left."""
    rows = np.arange(len(first))
    # One sign each: the second begins where the first ends, or in the middle.
    start = np.where(np.sign(first) == np.sign(second), first, 0)
    axes.barh(rows, first, height=0.6, color=dark, label="unique")
    axes.barh(rows, second, height=0.6, left=start, color=light, label="common")
    axes.axvline(0, color=GREY, linewidth=0.8)
    clear_spines(axes)
