"""A page that compares another run with the layer's main one."""

from typing import TYPE_CHECKING, Any

from optexp_jax.report.formula_view import view_formula
from optexp_jax.report.pages import write_data, write_page

if TYPE_CHECKING:
    from optexp_jax.report.layer_site import LayerSite

MOST_SHOWN = 12
"""Units that are shown side by side."""


def write_comparison(site: "LayerSite", place: int) -> None:
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
        drawings=None,
        figures=comparison_figures(comparison),
        threshold=site.threshold,
    )
