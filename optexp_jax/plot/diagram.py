"""A formula as a small diagram: concepts on the left, joined step by step to the right."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optexp_jax.explanation import Explanation
from optexp_jax.formulas.formula import Formula
from optexp_jax.plot.figure import CAPTURED, EXTRAS, GREY, as_written, new_figure, shown_name

COLOURS = {"OR": CAPTURED, "AND": "#00897b", "AND NOT": EXTRAS}
"""By what a step does: it adds, narrows or removes. Operators of one's own are grey."""
MOST_LETTERS = 40
STEP = 1.25
"""Inches from one operator to the next."""
ROW = 0.55
"""Inches from one concept to the next."""


def formula_diagram(formula: Formula | Explanation) -> Figure:
    """Which concept joins when. Of an explanation, steps that no data can verify are dashed."""
    unverified: set[tuple[str, str]] = set()
    if isinstance(formula, Explanation):
        unverified = {(str(step.operator), step.concept) for step in formula.unverified}
        formula = _formula_of(formula)
    chain = formula.canonical
    names = [shown_name(concept, MOST_LETTERS) for concept in chain.concepts]
    n = len(names)
    text = 0.35 + 0.085 * max(map(len, names))
    figure = new_figure(text + STEP * (n - 0.4), ROW * n + 0.35)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-text / STEP, n - 0.4)
    axes.set_ylim(n - 0.4, -0.6)
    for row, name in enumerate(names):
        label = axes.text(-0.08, row, name, ha="right", va="center")
        as_written(label)
    left, height = 0.0, 0.0
    for place, operator in enumerate(map(str, chain.operators), 1):
        dashed = (operator, chain.concepts[place]) in unverified
        colour = COLOURS.get(operator, GREY)
        x, y = float(place), (height + place) / 2
        _join(axes, (left, height), (x, y), GREY, "-")
        _join(axes, (0.0, float(place)), (x, y), colour, "--" if dashed else "-")
        box = {
            "boxstyle": "round,pad=0.35",
            "facecolor": "white",
            "edgecolor": colour,
            "linewidth": 1.5,
            "linestyle": "--" if dashed else "-",
        }
        axes.text(x, y, operator, ha="center", va="center", color=colour, bbox=box, zorder=3)
        left, height = x, y
    axes.plot([left, n - 0.4], [height, height], color=GREY, linewidth=1.5, zorder=1)
    if unverified:
        axes.set_title("dashed: no data can verify this step", fontsize="small", color=GREY)
    return figure


def _formula_of(found: Explanation) -> Formula:
    if found.formula is None:
        raise ValueError("No concept overlaps the neuron, so there is no formula to draw.")
    return found.formula


def _join(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, style: str
) -> None:
    """A line along, then up or down to the operator."""
    xs, ys = (start[0], end[0], end[0]), (start[1], start[1], end[1])
    axes.plot(xs, ys, color=colour, linestyle=style, linewidth=1.5, zorder=1)
