"""What differs between two runs, as charts."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from optexp_jax.comparison import Category, ComparedUnit, Comparison

SIZE = 320
"""Width and height of a panel."""
COLOURS = {
    Category.SAME: "#b0b0b0",
    Category.CONCEPTS_AND_IOU: "#d55e00",
    Category.IOU: "#0072b2",
    Category.CONNECTION: "#009e73",
    Category.TIE: "#cc79a7",
    Category.DATA: "#e69f00",
}
"""Of Okabe and Ito, which people tell apart who see few colours."""


def comparison_chart(*comparisons: Comparison) -> alt.VConcatChart:
    """Both IoUs of every unit, and how often which gain occurs; a row for each comparison."""
    rows = [_row(comparison) for comparison in comparisons]
    return (
        alt.vconcat(*rows, spacing=40)
        .resolve_scale(color="independent")
        .configure_legend(labelLimit=0, orient="bottom", columns=2)
    )


def _row(comparison: Comparison) -> alt.HConcatChart:
    n, differing = len(comparison.units), len(comparison.differing)
    title = alt.TitleParams(
        f"{differing} of {n} units differ ({comparison.share_differing:.1%})",
        subtitle=[
            f"{name}: {run.path} ({run.method})"
            for name, run in (("A", comparison.a), ("B", comparison.b))
        ],
        anchor="start",
        offset=16,
    )
    panels = alt.hconcat(iou_scatter(comparison), gain_histogram(comparison), spacing=40)
    return panels.properties(title=title)


def iou_scatter(comparison: Comparison) -> alt.LayerChart:
    """Every unit at its two IoUs, above the diagonal where that of B is higher.

    Those that differ are drawn last, so that none is hidden by one that does not.
    """
    top = max([max(unit.a.iou, unit.b.iou) for unit in comparison.units], default=0.0) or 1.0
    scale = alt.Scale(domain=[0, top], nice=True)
    points = (
        alt.Chart(_values(sorted(comparison.units, key=lambda unit: unit.category.differs)))
        .mark_circle(size=45, opacity=0.75, clip=False)
        .encode(
            x=alt.X("iou_a:Q", title="IoU of A", scale=scale),
            y=alt.Y("iou_b:Q", title="IoU of B", scale=scale),
            color=_colour(comparison),
            tooltip=[
                "unit:Q",
                "category:N",
                alt.Tooltip("formula_a:N", title="A"),
                alt.Tooltip("formula_b:N", title="B"),
                alt.Tooltip("iou_a:Q", title="IoU of A", format=".4f"),
                alt.Tooltip("iou_b:Q", title="IoU of B", format=".4f"),
            ],
        )
    )
    diagonal = (  # both axes are the same, so it goes from corner to corner
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rule(color="#999999", strokeDash=[4, 3])
        .encode(x=alt.value(0), x2=alt.value(SIZE), y=alt.value(SIZE), y2=alt.value(0))
    )
    return alt.LayerChart(
        layer=[diagonal, points], width=SIZE, height=SIZE, title="IoU of each unit"
    )


def gain_histogram(comparison: Comparison) -> alt.Chart:
    """How many of the units whose IoUs differ have which gain, by category."""
    changed = comparison.largest_gains()
    return (
        alt.Chart(_values(changed))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "gain:Q",
                bin=alt.Bin(maxbins=20),
                title="gain: IoU of B minus IoU of A",
                axis=alt.Axis(labelOverlap=True, format="~g"),
            ),
            y=alt.Y("count():Q", title="units", axis=alt.Axis(tickMinStep=1, format="d")),
            color=_colour(comparison),
            tooltip=["category:N", alt.Tooltip("count():Q", title="units")],
        )
        .properties(width=SIZE, height=SIZE, title=f"Units whose IoU differs: {len(changed)}")
    )


def _values(units: Sequence[ComparedUnit]) -> alt.InlineData:
    kept = ("unit", "iou_a", "iou_b", "gain", "formula_a", "formula_b")
    rows: list[Any] = []
    for unit in units:
        row = unit.row()
        rows.append({**{name: row[name] for name in kept}, "category": unit.category.label})
    return alt.InlineData(values=rows)


def _colour(comparison: Comparison) -> alt.Color:
    """One scale for all panels, with the categories that there are."""
    used = [category for category in Category if comparison.of(category)]
    scale = alt.Scale(
        domain=[category.label for category in used],
        range=[COLOURS[category] for category in used],
    )
    return alt.Color("category:N", scale=scale, title=None)
