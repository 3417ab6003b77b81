"""The page of a unit."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float32
from markupsafe import Markup

from optexp_jax.activations import LayerUnits
from optexp_jax.activations.ranges import ActivationRange
from optexp_jax.pictures import SampleOrder
from optexp_jax.report.formula_view import shown_name, view_formula
from optexp_jax.report.layer_facts import LayerFacts
from optexp_jax.report.pages import write_page
from optexp_jax.report.summary import unit_reading
from optexp_jax.report.unit_charts import UnitCharts
from optexp_jax.report.unit_facts import UnitFacts

GALLERIES = {
    SampleOrder.PEAK: ("Top", "Samples with the highest activation."),
    SampleOrder.RANDOM: ("Random", "Any samples where the unit is active or the formula holds."),
    SampleOrder.EXTRAS: ("Most extras", "Samples where the formula covers most beyond the unit."),
    SampleOrder.MISSED: ("Most missed", "Samples where most activation is not captured."),
}


class UnitPages:
    """Writes the pages of a layer's units."""

    def __init__(self, site: LayerFacts):
        self._site = site
        self._charts = UnitCharts()
        self._values = _RawValues(site.layer.source)

    def write(self, place: int) -> None:
        """Write the page of the unit at a place in the summary."""
        site = self._site
        units = site.summary.units
        unit = units[place]
        found = unit.found
        active = self._values.range_of(unit.unit)
        write_page(
            site.folder / "units" / f"{unit.unit}.html",
            "unit.html",
            title=f"Unit {unit.unit}",
            root=f"../{site.root}",
            up="../index.html",
            layer=site.layer.title,
            unit=unit,
            formula=None if unit.formula is None else view_formula(unit.formula, site.links),
            reading=unit_reading(unit, self._longest, site.threshold),
            threshold=site.threshold,
            before=None if not place else units[place - 1].unit,
            after=None if place + 1 == len(units) else units[place + 1].unit,
            single_link=self._single_link(unit),
            single_name=_single_name(unit),
            steps=self._steps(unit),
            runners_up=[]
            if found is None
            else [(view_formula(other.formula, site.links), other) for other in found.runners_up],
            equivalents=[]
            if found is None
            else [view_formula(formula, site.links) for formula in found.equivalents],
            others=self._others(unit),
            pictures=self._pictures(unit),
            what_if=None if site.what_if is None else site.what_if.links(unit.unit),
            no_pictures=site.no_pictures,
            active_range=active,
            activation=self._activation(unit.unit, active),
            null=self._null(unit),
            corrected=site.summary.corrected(unit.unit),
            family_size=0 if site.summary.family is None else len(site.summary.family.units),
            simplest=None
            if unit.confidence is None
            else view_formula(unit.confidence.simplest.formula, site.links),
            in_all=[] if unit.confidence is None else map(shown_name, unit.confidence.in_all),
        )

    @cached_property
    def _longest(self) -> int | None:
        length = self._site.layer.run.configuration["method"].get("length")
        return length if isinstance(length, int) else None

    def _single_link(self, unit: UnitFacts) -> str | None:
        if unit.neuron is None or unit.neuron.single.concept is None:
            return None
        return self._site.links.get(unit.neuron.single.concept)

    def _steps(self, unit: UnitFacts) -> list[dict[str, Any]]:
        if unit.found is None:
            return []
        doubtful = {(str(step.operator), step.concept): step for step in unit.found.unverified}
        return [
            {
                "step": step,
                "name": shown_name(step.concept),
                "operator": None if step.operator is None else str(step.operator),
                "unverified": doubtful.get((str(step.operator), step.concept)),
            }
            for step in unit.steps
        ]

    def _others(self, unit: UnitFacts) -> list[dict[str, Any]]:
        """What other runs have found for the unit."""
        told: list[dict[str, Any]] = []
        for place, comparison in enumerate(self._site.comparisons):
            for compared in comparison.units:
                if compared.unit == unit.unit:
                    formula = compared.a.formula
                    told.append(
                        {
                            "method": comparison.a.method,
                            "link": f"../compare-{place + 1}.html",
                            "formula": None
                            if formula is None
                            else view_formula(formula, self._site.links),
                            "compared": compared,
                        }
                    )
        return told

    def _pictures(self, unit: UnitFacts) -> Mapping[str, Any] | None:
        """What the page draws its pictures from."""
        site = self._site
        if site.pictures is None or unit.unit not in site.shown or site.images is None:
            return None
        shown = site.shown[unit.unit]
        table = self._site.layer.source
        assert table is not None
        chain = None if unit.formula is None else unit.formula.canonical
        return {
            "shape": list(table.table.require_map("The report").location_shape) or [1, 1],
            "concepts": [] if chain is None else [shown_name(name) for name in chain.concepts],
            "operators": []
            if chain is None
            else [[int(o.p), int(o.q), int(o.r)] for o in chain.operators],
            "galleries": [
                {"title": GALLERIES[order][0], "text": GALLERIES[order][1], "samples": list(chosen)}
                for order, chosen in shown.galleries.items()
            ],
            "samples": {
                str(sample): {
                    "name": shown_name(site.images.name(sample)),
                    "photo": f"../{site.pictures.photos[sample].file}",
                    "width": site.pictures.photos[sample].width,
                    "height": site.pictures.photos[sample].height,
                    "areas": list(areas),
                    "masks": list(site.pictures.masks[unit.unit][sample]),
                }
                for sample, areas in shown.areas.items()
            },
        }

    def _activation(self, unit: int, active: ActivationRange | None) -> Markup | None:
        values = self._values.read(unit)
        if values is None or active is None or active.skipped is not None:
            return None
        return self._charts.activation(values, active)

    def _null(self, unit: UnitFacts) -> Markup | None:
        if unit.result.null is None or unit.found is None:
            return None
        return self._charts.null(unit.result.null, unit.found.iou)


def _single_name(unit: UnitFacts) -> str | None:
    if unit.neuron is None or unit.neuron.single.concept is None:
        return None
    return shown_name(unit.neuron.single.concept)


class _RawValues:
    """Raw activations of one unit after another; the chunk of the last one is kept."""

    def __init__(self, source: object):
        self._layer = source if isinstance(source, LayerUnits) else None
        self._first = 0
        self._held = np.empty((0, 0, 0, 0), np.float32)

    def range_of(self, unit: int) -> ActivationRange | None:
        return None if self._layer is None else self._layer.range_of(unit)

    def read(self, unit: int) -> Float32[np.ndarray, " cells"] | None:
        if self._layer is None:
            return None
        store = self._layer.store
        if not self._first <= unit < self._first + self._held.shape[1]:
            self._first = unit - unit % store.units_per_chunk
            stop = min(self._first + store.units_per_chunk, store.shape[1])
            self._held = store.units(self._first, stop)
        return self._held[:, unit - self._first].reshape(-1)
