"""Two runs over the same units, one against the other."""

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


def two_runs(comparison: Comparison) -> Figure:
    """Each unit's IoU in the one run and in the other, by how its formulas differ."""
    if not comparison.units:
        raise ValueError("The runs have no explained unit in common, so there is nothing to plot.")
    figure = new_figure(6.4, 4.6)
    axes = figure.add_subplot()
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
    axes.set_xlabel(f"IoU, {shown_name(comparison.a.method)}")
    axes.set_ylabel(f"IoU, {shown_name(comparison.b.method)}")
    as_written(axes.xaxis.label, axes.yaxis.label)
    differing = len(comparison.differing)
    axes.set_title(f"{differing} of {len(comparison.units)} units differ")
    figure.legend(frameon=False, loc="outside lower center", ncols=2, fontsize="small")
    clear_spines(axes)
    return figure
