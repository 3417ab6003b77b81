"""The growth of time as a plot: both scales logarithmic, one panel for each thing that grows."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

WIDTH, HEIGHT = 220, 160


def plot_growth(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the rows of the suite `growth` to an SVG, PNG or HTML file."""
    if importlib.util.find_spec("altair") is None or importlib.util.find_spec("vl_convert") is None:
        raise ImportError('Plots need altair: pip install "optexp-jax[report]".')
    import altair

    points = [{**relative, "axis": axis} for axis, relative in _relative(rows)]
    panels: list[Any] = []
    for axis in dict.fromkeys(point["axis"] for point in points):
        data = altair.Data(values=[point for point in points if point["axis"] == axis])
        log = altair.Scale(type="log", nice=False, padding=10)
        panels.append(
            altair.Chart(data, width=WIDTH, height=HEIGHT)
            .mark_line(point=True)
            .encode(
                x=altair.X("size:Q", scale=log, title=axis),
                y=altair.Y("time:Q", scale=log, title="time / smallest"),
                color=altair.Color("method:N", title="method"),
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    altair.concat(*panels, columns=3).save(str(path))


def _relative(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Each point as time over that of the smallest size of its line."""
    least: dict[tuple[str, str], float] = {}
    for row in sorted(rows, key=lambda row: row["size"]):
        least.setdefault((row["axis"], row["method"]), median(row["seconds"]))
    return [
        (
            row["axis"],
            {
                "method": row["method"],
                "size": row["size"],
                "time": median(row["seconds"]) / least[row["axis"], row["method"]],
            },
        )
        for row in rows
    ]
