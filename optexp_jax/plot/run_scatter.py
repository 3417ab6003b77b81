"""Two runs over the same units, one against the other."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optexp_jax.comparison.category import Category
from optexp_jax.comparison.comparison import Comparison
from optexp_jax.plot.figure import (
    CAPTURED,
    EXTRAS,
    GREY,
    MISSED,
    as_written,
    clear_spines,
    new_figure,
    shown_name,
)

LOOKS = {
    Category.SAME: (GREY, "o"),
    Category.CONCEPTS_AND_IOU: (CAPTURED, "^"),
    Category.IOU: (EXTRAS, "s"),
    Category.CONNECTION: (MISSED, "D"),
    Category.TIE: ("#00897b", "v"),
    Category.DATA: ("#8e24aa", "P"),
}
"""A colour and a marker of each category, for those who cannot tell the colours."""


WIDTH = 34
"""Letters of a method in a line."""


def two_runs(comparison: Comparison) -> Figure:
    """Each unit's IoU in both runs, by how its formulas differ, and the gains of those that do."""
    if not comparison.units:
        raise ValueError("The runs have no explained unit in common, so there is nothing to plot.")
    figure = new_figure(8.4, 4.6)
    axes, gains = figure.subplots(1, 2)
    _scatter(axes, comparison)
    _gains(gains, comparison)
    differing = len(comparison.differing)
    figure.suptitle(f"{differing} of {len(comparison.units)} units differ", fontsize="medium")
    handles, labels = axes.get_legend_handles_labels()
    where = "outside lower center"
    figure.legend(handles, labels, frameon=False, loc=where, ncols=2, fontsize="small")
    return figure


def _scatter(axes: Axes, comparison: Comparison) -> None:
    """IoUs in A against those in B."""
    highest = max(max(unit.a.iou, unit.b.iou) for unit in comparison.units) * 1.05 or 1.0
    axes.plot([0, highest], [0, highest], color=GREY, linewidth=0.8, zorder=1)
    for category, (colour, marker) in LOOKS.items():
        units = comparison.of(category)
        if units:
            axes.scatter(
                [unit.a.iou for unit in units],
                [unit.b.iou for unit in units],
                s=24,
                color=colour,
                marker=marker,
                alpha=0.75,
                linewidths=0,
                zorder=2,
                label=f"{category.meaning} ({len(units)})",
            )
    axes.set_xlim(0, highest)
    axes.set_ylim(0, highest)
    axes.set_aspect("equal")
    axes.set_xlabel(f"A: {_wrapped(comparison.a.method)}")
    axes.set_ylabel(f"B: {_wrapped(comparison.b.method)}")
    as_written(axes.xaxis.label, axes.yaxis.label)
    axes.set_title("IoU")
    clear_spines(axes)


def _gains(axes: Axes, comparison: Comparison) -> None:
    """What B has more than A, units of the largest difference first."""
    units = sorted(comparison.largest_gains(), key=lambda unit: -unit.gain)
    colours = [LOOKS[unit.category][0] for unit in units]
    axes.bar(range(len(units)), [unit.gain for unit in units], width=0.9, color=colours)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xticks([])
    axes.set_xlabel("units whose IoUs differ")
    axes.set_title("IoU in B minus IoU in A")
    clear_spines(axes)


def _wrapped(method: str) -> str:
    return textwrap.fill(shown_name(method), WIDTH)
