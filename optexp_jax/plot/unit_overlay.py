"""A unit and its formula on images."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from optexp_jax.explanation import Explanation
from optexp_jax.formulas.formula import Formula
from optexp_jax.pictures import (
    OverlayStyle,
    SampleAreas,
    SampleImages,
    SampleOrder,
    choose_samples,
    draw_overlay,
    fit_image,
    unit_masks,
)
from optexp_jax.pictures.overlay import Colour
from optexp_jax.plot.figure import as_written, new_figure, shown_name
from optexp_jax.runs.sources import UnitSource

BLANK = 224
"""The ground where there are no photographs, in grey."""
MOST_LETTERS = 28


def overlay(
    source: UnitSource,
    unit: int,
    formula: Formula | Explanation | str | None,
    *,
    images: SampleImages | None = None,
    samples: Sequence[int] | None = None,
    n: int = 6,
    order: SampleOrder | str = SampleOrder.CAPTURED,
    columns: int = 3,
    side: int = 224,
    style: OverlayStyle = OverlayStyle(),
) -> Figure:
    """Where a unit is active and where a formula holds, on a few samples.

    `source` has the units: `run.open_source()`, `LayerUnits` or `BitmapUnits`. Without `images` the
    masks are drawn on grey; `SampleImages.of_run(run)` has the photographs. `samples` says which
    ones; else the first `n` in an order.
    """
    held = _formula(source, formula)
    if samples is None:
        (counts,) = source.counts([unit])
        areas = SampleAreas.of(source.table, counts, held)
        samples = choose_samples(areas, order, n)
    if not samples:
        raise ValueError(f"There is no sample to show of unit {unit} by {order}.")
    if images is not None:
        images.require(source.table.n_samples)
    across = max(1, min(columns, len(samples)))
    rows = -(-len(samples) // across)
    figure = new_figure(2.3 * across, 2.5 * rows + 0.6)
    cells = figure.subplots(rows, across, squeeze=False).reshape(-1)
    for axes in cells:
        axes.set_axis_off()
    places = {sample: place for place, sample in enumerate(samples)}
    for mask in unit_masks(source, {unit: list(samples)}, {unit: held}):
        if images is None:
            ground = np.full((*mask.active.shape, 3), BLANK, np.uint8)
        else:
            ground = images.image(mask.sample)
        drawn = draw_overlay(fit_image(ground, side), mask.active, mask.held, style)
        axes = cells[places[mask.sample]]
        axes.imshow(drawn)
        name = f"sample {mask.sample}" if images is None else images.name(mask.sample)
        as_written(axes.set_title(shown_name(name, MOST_LETTERS), fontsize="small"))
    title = "no formula" if held is None else shown_name(str(held))
    as_written(figure.suptitle(f"unit {unit}: {title}", fontsize="medium", wrap=True))
    figure.legend(handles=_legend(style), frameon=False, loc="outside lower center", ncols=3)
    return figure


def _formula(source: UnitSource, formula: Formula | Explanation | str | None) -> Formula | None:
    if isinstance(formula, Explanation):
        return formula.formula
    return Formula.parse(formula, source.table) if isinstance(formula, str) else formula


def _legend(style: OverlayStyle) -> list[Patch]:
    captured, missed, extras = map(_hex, (style.captured, style.missed, style.extras))
    return [
        Patch(facecolor=captured, label="captured"),
        Patch(facecolor=missed, label="missed"),
        Patch(facecolor="none", edgecolor=extras, linewidth=1.5, label="extras"),
    ]


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
