"""A page that compares another run with the layer's main one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from optexp_jax.comparison import ComparedUnit
from optexp_jax.pictures import SampleAreas, UnitMask, unit_masks
from optexp_jax.report.formula_view import shown_name, view_formula
from optexp_jax.report.layer_facts import LayerFacts
from optexp_jax.report.pages import write_data, write_page
from optexp_jax.report.picture_data import ShownSamples, pack_mask

MOST_SHOWN = 12
"""Units that are shown side by side."""
SAMPLES = 2
"""Samples of each of them."""


def write_comparison(site: LayerFacts, place: int) -> None:
    """Write the page of one comparison, and the data of its table."""
    from optexp_jax.report.compare_charts import comparison_figures

    comparison = site.comparisons[place]
    name = f"compare-{place + 1}"
    write_data(
        site.folder / f"{name}.js",
        "optexpCompared",
        [
            {**row, "meaning": unit.category.meaning}
            for row, unit in zip(comparison.rows(), comparison.units, strict=True)
        ],
    )
    cards: list[dict[str, Any]] = []
    for unit in comparison.largest_gains(MOST_SHOWN):
        cards.append(
            {
                "unit": unit,
                "a": None if unit.a.formula is None else view_formula(unit.a.formula, site.links),
                "b": None if unit.b.formula is None else view_formula(unit.b.formula, site.links),
            }
        )
    write_page(
        site.folder / f"{name}.html",
        "compare.html",
        title=f"{comparison.a.method} and {comparison.b.method}",
        root=site.root,
        up="index.html",
        layer=site.layer.title,
        data=f"{name}.js",
        comparison=comparison,
        cards=cards,
        drawings=_drawings(site, comparison.largest_gains(MOST_SHOWN)),
        figures=comparison_figures(comparison),
        threshold=site.threshold,
    )


def _drawings(site: LayerFacts, units: Sequence[ComparedUnit]) -> dict[str, Any] | None:
    """Both formulas of some units on samples where they differ."""
    source, pictures, images = site.layer.source, site.pictures, site.images
    if not units or source is None or pictures is None or images is None:
        return None
    seen = [unit for unit in units if unit.unit in site.shown]
    counts = source.counts([unit.unit for unit in seen])
    shown = {
        unit.unit: _telling_samples(
            site.shown[unit.unit], SampleAreas.of(source.table, each, unit.a.formula)
        )
        for unit, each in zip(seen, counts, strict=True)
    }
    of_a = unit_masks(source, shown, {unit.unit: unit.a.formula for unit in units})
    of_b = unit_masks(source, shown, {unit.unit: unit.b.formula for unit in units})
    drawn: dict[tuple[int, int], dict[str, Any]] = {}
    for a, b in zip(of_a, of_b, strict=True):
        photo = pictures.photos[a.sample]
        drawn[a.unit, a.sample] = {
            "name": shown_name(images.name(a.sample)),
            "photo": photo.file,
            "width": photo.width,
            "height": photo.height,
            "active": pack_mask(a.active),
            "a": _side(a),
            "b": _side(b),
        }
    return {
        "shape": list(source.table.require_map("The report").location_shape) or [1, 1],
        "units": {
            str(unit): [drawn[unit, sample] for sample in samples]
            for unit, samples in shown.items()
        },
    }


def _telling_samples(shown: ShownSamples, other: SampleAreas) -> tuple[int, ...]:
    """Of the samples that are shown anyway, those where two formulas differ by most locations."""

    def difference(sample: int) -> int:
        captured, _, extras = shown.areas[sample]
        return abs(captured - int(other.captured[sample])) + abs(extras - int(other.extras[sample]))

    return tuple(sorted(shown.samples, key=lambda sample: -difference(sample))[:SAMPLES])


def _side(mask: UnitMask) -> dict[str, Any]:
    """One formula on a sample: its mask, and captured, missed and extra locations."""
    areas = (mask.active & mask.held, mask.active & ~mask.held, mask.held & ~mask.active)
    return {
        "held": pack_mask(mask.held),
        "areas": [int(np.count_nonzero(area)) for area in areas],
    }
