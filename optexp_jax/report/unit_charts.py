"""The charts of a unit's page. They are compiled once and drawn with each unit's rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float32
from markupsafe import Markup

from optexp_jax.activations.ranges import ActivationRange
from optexp_jax.report.overview_charts import histogram
from optexp_jax.report.svg import BLUE, GREY, Rows, chart, compile_spec, draw_compiled
from optexp_jax.runs.null import NullResult

WIDE, HIGH = 420, 150
BINS = 40
NAME = "rows"
TICKS = [0, *(10**power for power in range(10))]


@dataclass(frozen=True)
class UnitCharts:
    """Draws the charts of any unit."""

    @cached_property
    def _activation(self) -> Mapping[str, Any]:
        import altair

        picture = (
            _named([{"low": 0.0, "high": 1.0, "n": 1, "in": "active"}])
            .mark_bar()
            .encode(
                x=altair.X("low:Q", bin="binned", title="activation"),
                x2="high:Q",
                # One active cell among a million must be seen.
                y=altair.Y(
                    "n:Q",
                    title="cells",
                    scale=altair.Scale(type="symlog"),
                    axis=altair.Axis(values=TICKS, labelExpr="format(datum.value, '~s')"),
                ),
                color=altair.Color(
                    "in:N",
                    title=None,
                    scale=altair.Scale(domain=["active", "not active"], range=[BLUE, GREY]),
                    legend=altair.Legend(orient="top-right"),
                ),
            )
        )
        return compile_spec(picture)

    @cached_property
    def _null(self) -> Mapping[str, Any]:
        import altair

        base = _named([{"low": 0.0, "high": 1.0, "n": 1, "of": "by chance"}])
        picture = base.mark_bar().encode(
            x=altair.X("low:Q", bin="binned", title="IoU"),
            x2="high:Q",
            y=altair.Y("n:Q", title="draws", axis=altair.Axis(tickMinStep=1)),
            color=altair.Color(
                "of:N",
                title=None,
                scale=altair.Scale(domain=["this unit", "by chance"], range=[BLUE, GREY]),
                legend=altair.Legend(orient="top-right"),
            ),
        )
        return compile_spec(picture)

    def activation(self, values: Float32[np.ndarray, " cells"], active: ActivationRange) -> Markup:
        """How often each raw value occurs, and the unit's range; bins end where it does."""
        low, high = float(values.min()), float(values.max())
        if low == high:
            high = low + 1
        ends = [end for end in (active.low, active.high) if low < end < high]
        edges = np.unique([*np.linspace(low, high, BINS + 1), *ends])
        rows: Rows = [
            {
                "low": float(a),
                "high": float(b),
                "n": n,
                "in": "active" if active.low <= a and b <= active.high else "not active",
            }
            for a, b, n in zip(
                edges[:-1], edges[1:], histogram(values.tolist(), edges), strict=True
            )
        ]
        return draw_compiled(self._activation, NAME, rows)

    def null(self, null: NullResult, iou: float) -> Markup:
        """The IoUs of the draws, and the unit's own."""
        drawn = [score.iou for score in null.scores]
        most = max([*drawn, iou, 1e-9])
        edges = np.linspace(0, most * 1.0001, BINS // 2 + 1)
        rows: list[dict[str, object]] = [
            {"low": float(a), "high": float(b), "n": n, "of": "by chance"}
            for a, b, n in zip(edges[:-1], edges[1:], histogram(drawn, edges), strict=True)
        ]
        width = float(edges[1]) / 6
        tallest = max(histogram(drawn, edges))
        rows.append({"low": iou - width, "high": iou + width, "n": tallest, "of": "this unit"})
        return draw_compiled(self._null, NAME, rows)


def _named(rows: Rows) -> Any:
    import altair

    picture = chart(rows, WIDE, HIGH)
    picture.data = altair.InlineData(values=[dict(row) for row in rows], name=NAME)
    return picture
