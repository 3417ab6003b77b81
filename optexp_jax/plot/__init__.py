"""Plots of explanations, searches and runs, as matplotlib figures.

Each function makes a figure of its own and returns it. Nothing goes through `pyplot`, so no figure
is left open and no setting of yours is changed; a notebook shows a figure that a cell ends with.
Save one with `figure.savefig("unit.png")`.
"""

from optexp_jax.plot.diagram import formula_diagram
from optexp_jax.plot.histogram import iou_histogram
from optexp_jax.plot.run_scatter import two_runs
from optexp_jax.plot.search_bounds import ProgressTrace, bounds_over_time
from optexp_jax.plot.step_contributions import contributions
from optexp_jax.plot.unit_overlay import overlay

__all__ = [
    "ProgressTrace",
    "bounds_over_time",
    "contributions",
    "formula_diagram",
    "iou_histogram",
    "overlay",
    "two_runs",
]
