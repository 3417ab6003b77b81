"""The trade-off between what a formula covers and what it has besides."""

import itertools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Objective
from optexp_jax.counts.neuron import as_counts
from optexp_jax.counts.neuron_summary import concept_intersections
from optexp_jax.methods.hull.curve import TradeOffCurve
from optexp_jax.plot.figure import (
    CAPTURED,
    CAPTURED_LIGHT,
    EXTRAS,
    GREY,
    MISSED,
    as_written,
    clear_spines,
    new_figure,
    shown_name,
)

BEST = {
    Objective.IOU: (EXTRAS, "s"),
    Objective.COSINE: (MISSED, "D"),
    Objective.PHI: ("#00897b", "^"),
}
"""A colour and a marker of each metric; F1 has the same best formula as the IoU."""
NAMED = 6
"""Single concepts whose names are written, those nearest to the curve."""
LETTERS = 44


def trade_off(
    curve: TradeOffCurve, table: ConceptTable | None = None, neuron: Any = None
) -> Figure:
    """The hull of a `TradeOffCurve`: recall against extras, as a share of |N|.

    With the table and the neuron, single concepts are points of the plot. The scale of extras is
    logarithmic beyond a hundredth of |N|.
    """
    if not curve.vertices:
        raise ValueError("The curve has no formula, so there is nothing to plot.")
    figure = new_figure(8.4, 5.0)
    axes = figure.subplots()
    size = curve.neuron.active
    extras = [vertex.extras / size for vertex in curve.vertices]
    covered = [vertex.overlap.recall for vertex in curve.vertices]
    axes.set_xscale("symlog", linthresh=0.01, linscale=0.3)
    _fence(axes, curve)
    if table is not None and neuron is not None:
        _concepts(axes, table, neuron)
    axes.plot(*_dense(extras, covered), color=CAPTURED, linewidth=1.6, zorder=3)
    axes.scatter(extras, covered, s=26, color=CAPTURED, zorder=4, label="formulas of the hull")
    _best(axes, curve)
    axes.set_xlim(0, 2.5 * max(*extras, 0.01))
    axes.set_ylim(0, 1.08 * max(covered))
    axes.set_xlabel("extras, as a share of |N|")
    axes.set_ylabel("recall")
    proved = "proved" if curve.status == "optimal" else "not all of it proved"
    many = f"{len(extras)} best trade-off{'' if len(extras) == 1 else 's'}"
    axes.set_title(f"{many}, {proved}", fontsize="medium")
    clear_spines(axes)
    handles, labels = axes.get_legend_handles_labels()
    where = "outside lower center"
    legend = figure.legend(
        handles, labels, frameon=False, loc=where, fontsize="small", markerscale=0.6
    )
    as_written(*legend.get_texts())
    return figure


def _dense(extras: list[float], covered: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Points along straight lines, which are curves on this scale."""
    at = [np.geomspace(a + 0.01, b + 0.01, 40) - 0.01 for a, b in itertools.pairwise(extras)]
    x = np.concatenate([*at, extras[-1:]])
    return x, np.interp(x, extras, covered)


def _fence(axes: Axes, curve: TradeOffCurve) -> None:
    """What no formula is above, where that is not proved to be the curve itself."""
    if curve.status == "optimal":
        return
    size = curve.neuron.active
    extras = [float(point.extras / size) for point in curve.fence]
    highest = [float(point.intersection / size) for point in curve.fence]
    if len(extras) > 1:
        x, y = _dense(extras, highest)
        axes.plot(x, y, color=GREY, linestyle="--", linewidth=1, label="no formula is above")


def _concepts(axes: Axes, table: ConceptTable, neuron: Any) -> None:
    """Single concepts, those of the highest IoU with their names."""
    counts = as_counts(table, neuron)
    inside = concept_intersections(table, counts)
    outside = table.concept_sizes - inside
    x, y = outside / counts.size, inside / counts.size
    axes.scatter(x, y, s=14, color=CAPTURED_LIGHT, linewidths=0, zorder=2, label="single concepts")
    ious = inside / (counts.size + outside)
    for k in np.argsort(-ious, kind="stable")[:NAMED]:
        if ious[k] > 0:
            note = axes.annotate(
                shown_name(table.names[k], 20),
                (x[k], y[k]),
                textcoords="offset points",
                xytext=(4, -9),
                fontsize="x-small",
                color=GREY,
            )
            as_written(note)


def _best(axes: Axes, curve: TradeOffCurve) -> None:
    """Rings around the best formulas by each metric, with what they are in the legend."""
    for place, (objective, (colour, marker)) in enumerate(BEST.items()):
        best = curve.best(objective)
        if best is None:
            continue
        title = "IoU and F1" if objective is Objective.IOU else objective.label
        axes.scatter(
            [best.extras / curve.neuron.active],
            [best.overlap.recall],
            s=110 + 90 * place,
            facecolors="none",
            edgecolors=colour,
            marker=marker,
            linewidths=1.6,
            zorder=5,
            label=f"highest {title}: {shown_name(str(best.formula), LETTERS)}",
        )
