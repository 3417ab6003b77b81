"""Charts of results, by Altair: `pip install "optexp-jax[report]"`."""

import importlib

try:
    importlib.import_module("altair")  # where it is missing, say so once
except ImportError as error:
    raise ImportError('Charts need Altair: pip install "optexp-jax[report]".') from error

from optexp_jax.charts.comparison import comparison_chart, gain_histogram, iou_scatter
from optexp_jax.charts.saving import CHART_FILES, as_html, save_chart

__all__ = [
    "CHART_FILES",
    "as_html",
    "comparison_chart",
    "gain_histogram",
    "iou_scatter",
    "save_chart",
]
