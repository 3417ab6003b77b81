"""Plots of explanations, searches and runs, as matplotlib figures.

Each function makes a figure of its own and returns it. Nothing goes through `pyplot`, so no figure
is left open and no setting of yours is changed; a notebook shows a figure that a cell ends with.
Save one with `figure.savefig("unit.png")`.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optexp_jax.plot.diagram import formula_diagram
    from optexp_jax.plot.histogram import iou_histogram
    from optexp_jax.plot.run_scatter import two_runs
    from optexp_jax.plot.search_bounds import ProgressTrace, bounds_over_time
    from optexp_jax.plot.step_contributions import contributions
    from optexp_jax.plot.trade_off_curve import trade_off
    from optexp_jax.plot.unit_overlay import overlay

__all__ = [
    "ProgressTrace",
    "bounds_over_time",
    "contributions",
    "formula_diagram",
    "iou_histogram",
    "overlay",
    "trade_off",
    "two_runs",
]

# What the block above says, for the interpreter: matplotlib is an extra.
_HOMES = {
    "ProgressTrace": "search_bounds",
    "bounds_over_time": "search_bounds",
    "contributions": "step_contributions",
    "formula_diagram": "diagram",
    "iou_histogram": "histogram",
    "overlay": "unit_overlay",
    "trade_off": "trade_off_curve",
    "two_runs": "run_scatter",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            said = 'Plots need matplotlib: pip install "optexp-jax[plot]".'
            raise ImportError(said) from error
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
