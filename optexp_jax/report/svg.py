"""Charts as SVG, drawn at build time: pages need no chart library and run no code for them.

Colours are a few fixed ones. The style sheet gives each its value for light and for dark pages.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

INK = "#101112"
"""Text and axes."""
GRID = "#d0d1d2"
BLUE = "#2b6cd4"
"""What a chart is about."""
GREY = "#9a9b9c"
"""What it is compared with."""
YELLOW = "#e0a800"
GREEN = "#2e8b57"
RED = "#c2453a"
CATEGORIES = (
    "#2b6cd4",
    "#e0a800",
    "#2e8b57",
    "#c2453a",
    "#8458b3",
    "#1b9aaa",
    "#d1628d",
    "#8a6d3b",
)
FONT = "system-ui, sans-serif"

_TAG = re.compile(r"<[^>]*>")
_ARIA = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')

Rows = Sequence[Mapping[str, Any]]


def chart(rows: Rows, width: int, height: int) -> Any:
    """A chart of Altair over rows of plain values."""
    import altair

    return altair.Chart(altair.Data(values=[dict(row) for row in rows]), width=width, height=height)


def draw(picture: Any) -> Markup:
    """The chart as an SVG element. Text in it is escaped by the library that draws it."""
    return draw_spec(styled(picture).to_dict())


def draw_spec(spec: Mapping[str, Any]) -> Markup:
    """A Vega-Lite specification as an SVG element."""
    import vl_convert

    return _element(vl_convert.vegalite_to_svg(dict(spec)))


def compile_spec(picture: Any) -> dict[str, Any]:
    """The chart for `draw_compiled`: the costly part of drawing one chart with many data."""
    import vl_convert

    return vl_convert.vegalite_to_vega(styled(picture).to_dict())


def draw_compiled(vega: Mapping[str, Any], name: str, rows: Rows) -> Markup:
    """A compiled chart with other rows in the place of its data called `name`."""
    import vl_convert

    data = [
        {**source, "values": [dict(row) for row in rows]} if source["name"] == name else source
        for source in vega["data"]
    ]
    return _element(vl_convert.vega_to_svg({**vega, "data": data}))


def styled(picture: Any) -> Any:
    """The chart in the report's type and colours, without marks for screen readers: its figure
    says in words what it shows."""
    import altair

    axis = altair.AxisConfig(
        labelColor=INK,
        titleColor=INK,
        domainColor=GREY,
        tickColor=GREY,
        gridColor=GRID,
        labelFontSize=11,
        titleFontSize=12,
        titleFontWeight="normal",
        labelLimit=150,
        labelFlush=False,
    )
    legend = altair.LegendConfig(labelColor=INK, titleColor=INK, labelFontSize=11, titleFontSize=12)
    return picture.configure(
        aria=False,
        background="transparent",
        font=FONT,
        axis=axis,
        legend=legend,
        view=altair.ViewConfig(stroke=None),
    )


def _element(text: str) -> Markup:
    # The library escapes text, but a page must not depend on it alone.
    if "<script" in text.lower() or "<foreignobject" in text.lower():
        raise ValueError("A chart holds a script; it is not put on a page.")
    return Markup(_TAG.sub(lambda tag: _ARIA.sub("", tag[0]), text))
