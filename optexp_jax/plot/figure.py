"""Figures that belong to nobody but the caller, and the colours that they share."""

import io

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from optexp_jax.formulas.text import escape_unprintable

CAPTURED, CAPTURED_LIGHT = "#1f63ff", "#8fb1ff"
MISSED = "#f0b400"
EXTRAS, EXTRAS_LIGHT = "#ff4081", "#ffa0c0"
"""The colours of overlays, and lighter ones for what is split in two."""
GREY = "#808080"
"""Readable on light and dark grounds."""
DPI = 100


class NotebookFigure(Figure):
    """A figure that a notebook shows although `pyplot`, which would arrange that, is not used."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, drawn without a window."""
    figure = NotebookFigure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def shown_name(name: str, most: int | None = None) -> str:
    """A name from data: characters that do not print escaped, cut where it is too long."""
    text = "".join(map(escape_unprintable, name))
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def as_written(*texts: Text) -> None:
    """Draw these as they are: names may hold dollars, which are no formulas of TeX."""
    for text in texts:
        text.set_parse_math(False)


def clear_spines(axes: Axes) -> None:
    """Leave only the lines that carry a scale."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
