"""How well the units of a layer are explained, beside one concept and beside chance."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from optexp_jax.plot.figure import CAPTURED, GREY, MISSED, clear_spines, new_figure
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run

USUAL_THRESHOLD = 0.04
"""The IoU from which on the field usually takes a unit for a detector."""


def iou_histogram(
    run: Run | Sequence[UnitResult], *, bins: int = 30, threshold: float | None = USUAL_THRESHOLD
) -> Figure:
    """Units by their IoU: with the formula, with one concept, and by chance where that is known.

    The draws of the null model count so that each unit weighs one, however many draws it has.
    """
    results = run.results if isinstance(run, Run) else run
    found = [each.explanation for each in results if each.explanation is not None]
    if not found:
        raise ValueError("There is no explained unit to plot.")
    formulas = [each.iou for each in found]
    singles = [each.neuron.single.iou for each in found if each.neuron is not None]
    drawn = [[score.iou for score in each.null.scores] for each in results if each.null is not None]
    chance = [iou for draws in drawn for iou in draws]
    weights = [1 / len(draws) for draws in drawn for _ in draws]
    highest = max([*formulas, *singles, *chance, threshold or 0.0]) or 1.0
    edges: list[float] = np.linspace(0.0, highest, bins + 1).tolist()
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    if chance:
        axes.hist(chance, edges, weights=weights, color=MISSED, alpha=0.55, label="by chance")
    axes.hist(formulas, edges, color=CAPTURED, alpha=0.6, label="formula")
    if singles:
        axes.hist(singles, edges, histtype="step", color=GREY, linewidth=1.5, label="one concept")
    if threshold is not None:
        axes.axvline(threshold, color=GREY, linestyle=":", linewidth=1.2)
        axes.annotate(
            f"{threshold:g}",
            (threshold, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2),
            textcoords="offset points",
            va="top",
            color=GREY,
            fontsize="small",
        )
    axes.set_xlim(0.0, highest)
    axes.set_xlabel("IoU")
    axes.set_ylabel("units")
    axes.set_title(f"{len(formulas)} units, median IoU {float(np.median(formulas)):.3f}")
    axes.legend(frameon=False)
    clear_spines(axes)
    return figure
