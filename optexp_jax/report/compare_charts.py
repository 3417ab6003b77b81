"""The charts of a comparison."""

from optexp_jax.comparison import Comparison
from optexp_jax.report.overview_charts import HIGH, WIDE, Figure
from optexp_jax.report.svg import BLUE, GREY, chart, draw


def comparison_figures(comparison: Comparison) -> list[Figure]:
    """Both IoUs of every unit."""
    import altair

    rows = [
        {
            "a": unit.a.iou,
            "b": unit.b.iou,
            "of": "differs" if unit.category.differs else "same formula",
        }
        for unit in comparison.units
    ]
    most = max([*(max(unit.a.iou, unit.b.iou) for unit in comparison.units), 1e-9])
    scale = altair.Scale(domain=[0, most])
    dots = (
        chart(rows, WIDE, HIGH + 40)
        .mark_circle(size=30, opacity=0.65)
        .encode(
            x=altair.X("a:Q", title=f"IoU of A, {comparison.a.method}", scale=scale),
            y=altair.Y("b:Q", title="IoU of B", scale=scale),
            color=altair.Color(
                "of:N",
                title=None,
                scale=altair.Scale(domain=["differs", "same formula"], range=[BLUE, GREY]),
                legend=altair.Legend(orient="top-left"),
            ),
        )
    )
    line = chart([{"x": 0, "y": 0}, {"x": most, "y": most}], WIDE, HIGH + 40).mark_line(
        color=GREY, strokeDash=[4, 3]
    )
    text = (
        f"One dot a unit, above the dashed line where B is better: "
        f"{sum(unit.gain > 0 for unit in comparison.units)} of {len(comparison.units)} units."
    )
    return [Figure("IoU of both", text, draw(line.encode(x="x:Q", y="y:Q") + dots))]
