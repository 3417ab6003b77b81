"""The charts of a layer's overview."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from optexp_jax.report.summary import LayerSummary
from optexp_jax.report.svg import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    YELLOW,
    Rows,
    chart,
    draw,
)

WIDE, HIGH = 400, 180
MOST_BARS = 24
"""Concepts that are drawn; the table has all."""
BINS = 30


@dataclass(frozen=True)
class Figure:
    """A chart, its title, and what it shows in words."""

    title: str
    text: str
    svg: Markup
    wide: bool = False


def overview_figures(summary: LayerSummary, threshold: float) -> list[Figure]:
    """All charts of a layer, those first that a reader wants first."""
    explained = [unit for unit in summary.units if unit.found is not None]
    if not explained:
        return []
    figures = [_ious(summary, threshold)]
    if any(unit.neuron is not None for unit in explained):
        figures.append(_against_one_concept(summary))
    figures.append(_concepts(summary))
    if summary.categories_known:
        figures.append(_categories(summary))
    return [*figures, _lengths(summary), _operators(summary), _seconds(summary)]


def histogram(values: Sequence[float], edges: np.ndarray) -> list[int]:
    """How many values lie in each bin; the last bin is closed."""
    return np.histogram(values, bins=edges)[0].tolist()


def _ious(summary: LayerSummary, threshold: float) -> Figure:
    import altair

    ious = summary.ious
    drawn = [
        score.iou for unit in summary.units if unit.result.null for score in unit.result.null.scores
    ]
    edges = np.linspace(0, max([*ious, *drawn, threshold * 1.5, 1e-9]) * 1.0001, BINS + 1)
    rows: list[dict[str, object]] = []
    for label, values in (("units", ious), ("by chance", drawn)):
        for low, high, n in zip(
            edges[:-1], edges[1:], histogram(values, edges) if values else [], strict=False
        ):
            rows.append({"low": low, "high": high, "share": n / len(values), "of": label})
    base = chart(rows, WIDE, HIGH)
    colour = altair.Color(
        "of:N",
        title=None,
        scale=altair.Scale(domain=["units", "by chance"], range=[BLUE, GREY]),
        legend=altair.Legend(orient="top-right") if drawn else None,
    )
    bars = base.mark_bar(opacity=0.75).encode(
        x=altair.X("low:Q", bin="binned", title="IoU"),
        x2="high:Q",
        y=altair.Y("share:Q", stack=None, title="share", axis=altair.Axis(format="%", tickCount=5)),
        color=colour,
    )
    line = chart([{"at": threshold}], WIDE, HIGH).mark_rule(color=YELLOW, strokeDash=[4, 3], size=2)
    picture = bars + line.encode(x="at:Q")
    text = (
        f"{len(ious)} units; median {np.median(ious):.3f}, highest {max(ious):.3f}. The dashed "
        f"line is the threshold {threshold:g}."
    )
    if drawn:
        text += (
            f" By chance, with the activation maps on other samples, the median is "
            f"{np.median(drawn):.3f} and the highest {max(drawn):.3f}."
        )
    return Figure("IoU of the formulas", text, draw(picture))


def _against_one_concept(summary: LayerSummary) -> Figure:
    import altair

    rows = [
        {
            "single": unit.neuron.single.iou,
            "formula": unit.iou,
        }
        for unit in summary.units
        if unit.neuron is not None and unit.iou is not None
    ]
    most = max([row[key] or 0.0 for row in rows for key in row] + [1e-9])
    scale = altair.Scale(domain=[0, most])
    dots = (
        chart(rows, WIDE, HIGH)
        .mark_circle(size=24, opacity=0.6, color=BLUE)
        .encode(
            x=altair.X("single:Q", title="IoU with one concept", scale=scale),
            y=altair.Y("formula:Q", title="IoU of the formula", scale=scale),
        )
    )
    equal = chart([{"a": 0, "b": 0}, {"a": most, "b": most}], WIDE, HIGH).mark_line(
        color=GREY, strokeDash=[4, 3]
    )
    picture = equal.encode(x="a:Q", y="b:Q") + dots
    gains = [(row["formula"] or 0.0) - (row["single"] or 0.0) for row in rows]
    text = (
        f"One dot a unit; above the dashed line the formula is better than any one concept. The "
        f"median unit gains {np.median(gains):.3f}."
    )
    return Figure("What more than one concept brings", text, draw(picture))


def _concepts(summary: LayerSummary) -> Figure:
    import altair

    most = summary.concepts.most_common(MOST_BARS)
    rows = [
        {"concept": name, "units": n, "category": summary.category(name), "place": place}
        for place, (name, n) in enumerate(most)
    ]
    names = sorted({str(row["category"]) for row in rows})
    picture = (
        chart(rows, 2 * WIDE + 60, HIGH)
        .mark_bar()
        .encode(
            x=altair.X(
                "concept:N",
                sort=altair.SortField("place"),
                title=None,
                axis=altair.Axis(labelAngle=-45),
            ),
            y=altair.Y("units:Q", title="units", axis=altair.Axis(tickMinStep=1)),
            color=altair.Color(
                "category:N",
                title=None,
                scale=altair.Scale(domain=names, range=palette(len(names))),
                legend=altair.Legend(orient="top-right") if summary.categories_known else None,
            ),
        )
    )
    told = ", ".join(f"{name} in {n}" for name, n in most[:3])
    text = f"{len(summary.concepts)} concepts are in some formula; most often {told or 'none'}."
    return Figure("Concepts", text, draw(picture), wide=True)


def _categories(summary: LayerSummary) -> Figure:
    import altair

    units: Counter[str] = Counter()
    for unit in summary.units:
        if unit.formula is not None:
            units.update({summary.category(name) for name in unit.formula.concepts})
    concepts = Counter(summary.category(name) for name in summary.concepts)
    rows = [
        {"category": name, "n": n, "of": of}
        for of, counted in (("units", units), ("concepts", concepts))
        for name, n in counted.items()
    ]
    picture = (
        chart(rows, WIDE, HIGH)
        .mark_bar()
        .encode(
            x=altair.X(
                "category:N",
                title=None,
                sort=[n for n, _ in units.most_common()],
                axis=altair.Axis(labelAngle=0),
            ),
            xOffset=altair.XOffset("of:N", sort=["units", "concepts"]),
            y=altair.Y("n:Q", title=None, axis=altair.Axis(tickMinStep=1)),
            color=_two("of", ["units", "concepts"]),
        )
    )
    told = "; ".join(f"{name} {n} and {concepts[name]}" for name, n in units.most_common())
    return Figure(
        "Categories",
        f"Units whose formula uses a category, and how many of its concepts they use: {told}.",
        draw(picture),
    )


def _lengths(summary: LayerSummary) -> Figure:
    counted = Counter(len(unit.formula) for unit in summary.units if unit.formula is not None)
    rows = [{"value": str(length), "n": n} for length, n in sorted(counted.items())]
    told = ", ".join(f"{n} of length {length}" for length, n in sorted(counted.items()))
    return Figure(
        "Lengths",
        f"Concepts in a formula: {told or 'none'}.",
        _bars(rows, "concepts in the formula"),
    )


def _operators(summary: LayerSummary) -> Figure:
    counted = Counter(
        str(operator)
        for unit in summary.units
        if unit.formula is not None
        for operator in unit.formula.operators
    )
    rows = [{"value": name, "n": n} for name, n in counted.most_common()]
    told = ", ".join(f"{name} {n}" for name, n in counted.most_common())
    return Figure(
        "Operators", f"In all formulas together: {told or 'none'}.", _bars(rows, "operator")
    )


def _seconds(summary: LayerSummary) -> Figure:
    import altair

    seconds = [max(unit.result.seconds, 1e-4) for unit in summary.units]
    low, high = math.floor(4 * math.log10(min(seconds))), math.ceil(4 * math.log10(max(seconds)))
    edges = 10 ** (np.arange(low, max(high, low + 1) + 1) / 4)
    rows: Rows = [
        {"low": a, "high": b, "n": n}
        for a, b, n in zip(edges[:-1], edges[1:], histogram(seconds, edges), strict=True)
    ]
    picture = (
        chart(rows, WIDE, HIGH)
        .mark_bar(color=BLUE)
        .encode(
            x=altair.X(
                "low:Q",
                bin="binned",
                title="seconds a unit",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(format="~g", tickCount=5),
            ),
            x2="high:Q",
            y=altair.Y("n:Q", title="units", axis=altair.Axis(tickMinStep=1)),
        )
    )
    text = (
        f"Median {np.median(seconds):.3g} s, longest {max(seconds):.3g} s, all together "
        f"{sum(seconds):.3g} s; counting, searching and the null model."
    )
    return Figure("Time per unit", text, draw(picture))


def _bars(rows: Rows, title: str) -> Markup:
    import altair

    return draw(
        chart(rows, WIDE, HIGH)
        .mark_bar(color=BLUE, size=44)
        .encode(
            x=altair.X("value:N", title=title, sort=None, axis=altair.Axis(labelAngle=0)),
            y=altair.Y("n:Q", title=None, axis=altair.Axis(tickMinStep=1)),
        )
    )


def _two(field: str, domain: Sequence[str]) -> object:
    import altair

    return altair.Color(
        f"{field}:N",
        title=None,
        scale=altair.Scale(domain=list(domain), range=[BLUE, GREY]),
        legend=altair.Legend(orient="top-right", labelColor=INK),
    )


def palette(n: int) -> list[str]:
    """So many colours, again from the first when they run out."""
    return [CATEGORIES[place % len(CATEGORIES)] for place in range(n)]


def layers_figure(layers: Mapping[str, LayerSummary]) -> Figure | None:
    """The IoUs of several layers side by side."""
    import altair

    rows = [{"layer": title, "iou": iou} for title, each in layers.items() for iou in each.ious]
    if not rows:
        return None
    picture = (
        chart(rows, 2 * WIDE, max(60, 44 * len(layers)))
        .mark_boxplot(color=BLUE, extent="min-max", size=18)
        .encode(
            y=altair.Y("layer:N", sort=list(layers), title=None, axis=altair.Axis(labelLimit=260)),
            x=altair.X("iou:Q", title="IoU"),
        )
    )
    text = "From the lowest to the highest IoU of each layer; half of its units lie in the box."
    return Figure("IoU by layer", text, draw(picture), wide=True)
