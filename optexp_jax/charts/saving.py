"""Charts as files: pictures, or pages that need no network."""

import html
import importlib
import json
from pathlib import Path
from typing import Any

import altair as alt

from optexp_jax.runs.export import whole_or_not

CHART_FILES = ("png", "svg", "html")
"""Kinds of files, by how their names end."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<script>{library}</script>
</head>
<body>
<div id="chart"></div>
<script>vegaEmbed("#chart", {chart}, {{renderer: "svg"}});</script>
</body>
</html>
"""


def save_chart(chart: alt.TopLevelMixin, path: str | Path, *, title: str = "Chart") -> None:
    """Write a chart to a file that is named *.png, *.svg or *.html."""
    target = Path(path)
    kind = check_chart_file(target)
    converter = _converter()
    described = chart.to_json(indent=None)
    version = _library_version()
    if kind == "png":
        content = converter.vegalite_to_png(described, vl_version=version, scale=2)
    elif kind == "svg":
        content = converter.vegalite_to_svg(described, vl_version=version).encode()
    else:
        content = as_html(chart, title=title).encode()
    with whole_or_not(target) as partial:
        partial.write_bytes(content)


def check_chart_file(path: Path) -> str:
    """The kind of file that a name asks for; ValueError for one that cannot be written."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in CHART_FILES:
        raise ValueError(
            f"{path} is no name for a chart: let it end in "
            f"{', '.join(f'.{each}' for each in CHART_FILES[:-1])} or .{CHART_FILES[-1]}."
        )
    return kind


def as_html(chart: alt.TopLevelMixin, *, title: str = "Chart") -> str:
    """A page with the chart and the library that draws it.

    Names come out of files, so nothing in them may end the script that they stand in.
    """
    described = json.dumps(json.loads(chart.to_json(indent=None))).replace("<", "\\u003c")
    library = _converter().javascript_bundle(vl_version=_library_version())
    return _PAGE.format(title=html.escape(title), library=library, chart=described)


def _library_version() -> str:
    """The version of Vega-Lite that charts are written in, without its last number."""
    return alt.SCHEMA_VERSION.rpartition(".")[0]


def _converter() -> Any:
    try:
        return importlib.import_module("vl_convert")
    except ImportError as error:
        said = 'Files of charts need vl-convert-python: pip install "optexp-jax[report]".'
        raise ImportError(said) from error
