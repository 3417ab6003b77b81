"""How time grows with size, as a chart with a panel for each thing that grows."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import altair as alt

WIDTH, HEIGHT = 220, 160


def growth_chart(rows: Sequence[Mapping[str, Any]]) -> alt.ConcatChart:
    """Time over that of the smallest size, both scales logarithmic.

    A row has `axis`, `method`, `size` and the `seconds` of each turn, as `optexp bench growth`
    writes them.
    """
    points = _relative(rows)
    panels = [
        alt.Chart(
            alt.InlineData(values=[point for point in points if point["axis"] == axis]),
            width=WIDTH,
            height=HEIGHT,
        )
        .mark_line(point=True)
        .encode(
            x=alt.X("size:Q", scale=alt.Scale(type="log", nice=False, padding=10), title=axis),
            y=alt.Y("time:Q", scale=alt.Scale(type="log"), title="time / that of the smallest"),
            color=alt.Color("method:N", title="method"),
        )
        for axis in dict.fromkeys(point["axis"] for point in points)
    ]
    return alt.concat(*panels, columns=3)


def _relative(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each point with its time over that of the smallest size of its line."""
    least: dict[tuple[str, str], float] = {}
    for row in sorted(rows, key=lambda row: row["size"]):
        least.setdefault((row["axis"], row["method"]), median(row["seconds"]))
    return [
        {
            "axis": row["axis"],
            "method": row["method"],
            "size": row["size"],
            "time": median(row["seconds"]) / least[row["axis"], row["method"]],
        }
        for row in rows
    ]
