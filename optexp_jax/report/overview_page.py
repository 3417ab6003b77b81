"""The overview of a layer."""

import json
from typing import Any

from optexp_jax.report.formula_view import shown_name
from optexp_jax.report.layer_facts import LayerFacts
from optexp_jax.report.overview_charts import overview_figures
from optexp_jax.report.pages import write_data, write_page
from optexp_jax.report.picture_data import THUMB, THUMB_COLUMNS
from optexp_jax.report.summary import middle, reading
from optexp_jax.report.unit_facts import UnitFacts


def write_overview(site: LayerFacts) -> None:
    """Write the overview and the data of its table."""
    differs = {
        compared.unit: compared.category.differs
        for comparison in site.comparisons[:1]
        for compared in comparison.units
    }
    write_data(
        site.folder / "units.js",
        "optexpUnits",
        {
            "rows": [_row(site, unit, differs) for unit in site.summary.units],
            "threshold": site.threshold,
            "thumb": {"side": THUMB, "columns": THUMB_COLUMNS}
            if site.pictures is not None and site.pictures.thumbs
            else None,
            "differs": site.comparisons[0].a.method if site.comparisons else None,
        },
    )
    summary = site.summary
    write_page(
        site.folder / "index.html",
        "overview.html",
        title=site.layer.title,
        root=site.root,
        up=site.up,
        layer=site.layer,
        summary=summary,
        reading=reading(summary, site.threshold),
        medians={
            "iou": middle(summary.ious),
            "single": middle(summary.singles),
            "precision": middle(summary.precisions),
            "recall": middle(summary.recalls),
            "active": middle(summary.active_shares),
            "chance": middle(summary.null_ious),
        },
        figures=overview_figures(summary, site.threshold),
        about=_about(site),
        comparisons=[
            (f"compare-{place + 1}.html", comparison)
            for place, comparison in enumerate(site.comparisons)
        ],
        concepts=[
            (shown_name(name), site.links[name], n, summary.category(name))
            for name, n in summary.concepts.most_common()
        ],
        no_pictures=site.no_pictures,
        not_compared=site.not_compared,
        threshold=site.threshold,
    )


def _row(site: LayerFacts, unit: UnitFacts, differs: dict[int, bool]) -> dict[str, Any]:
    neuron = unit.neuron
    return {
        "unit": unit.unit,
        "formula": None if unit.formula is None else str(unit.formula),
        "error": unit.result.error,
        "iou": unit.iou,
        "concept": None
        if neuron is None or neuron.single.concept is None
        else shown_name(neuron.single.concept),
        "one": None if neuron is None else neuron.single.iou,
        "p": unit.p_value,
        "family": site.summary.corrected(unit.unit),
        "held": None if unit.held_out is None else unit.held_out.iou,
        "recurs": None if unit.stability is None else unit.stability.recurrence,
        "active": None if neuron is None else neuron.active_share,
        "precision": unit.precision,
        "recall": unit.recall,
        "status": unit.status,
        "differs": differs.get(unit.unit),
        "thumb": None if site.pictures is None else site.pictures.thumbs.get(unit.unit),
    }


def _about(site: LayerFacts) -> list[tuple[str, str]]:
    """What was explained, and with what: pairs of a word and what it is."""
    run, origin = site.layer.run, site.layer.origin
    asked = run.configuration
    told = [
        ("Model", origin.model),
        ("Weights", origin.weights),
        ("Layer", origin.layer),
        ("Dataset", origin.dataset),
        ("Preprocessing", origin.preprocessing),
        ("Activation range", origin.range),
        ("Table", None if site.layer.source is None else repr(site.layer.source.table)),
        ("Method", _settings(asked["method"])),
        ("Null model", None if asked["null"] is None else _settings(asked["null"])),
        ("Other images", _other_images(asked)),
        ("Run", str(run.path.resolve().name)),
        ("Checksum of the table", asked["table"]),
        ("Checksum of the activations", asked["source"]),
    ]
    versions: dict[str, set[str]] = {}
    for session in run.sessions:
        for name, version in session["versions"].items():
            versions.setdefault(name, set()).add(version)
    shown = ", ".join(f"{name} {' and '.join(sorted(each))}" for name, each in versions.items())
    return [(word, text) for word, text in [*told, ("Versions", shown)] if text]


def _other_images(asked: dict[str, Any]) -> str | None:
    """Folds and resamples, and of how many groups; what is active was decided on all images."""
    if asked["other_images"] is None:
        return None
    groups = asked["groups"]
    of = "" if groups is None else f", of {len(set(groups))} groups"
    return f"{_settings(asked['other_images'])}{of}; activation range of all images"


def _settings(described: dict[str, Any]) -> str:
    """Settings as a run keeps them, in one line; those that are not set are left out."""
    name = str(described.get("class", "")).rpartition(":")[2]
    parts = [
        f"{key}={_value(value)}"
        for key, value in described.items()
        if key != "class" and value is not None
    ]
    return f"{name}({', '.join(parts)})"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return str(value["operator"]) if "operator" in value else _settings(value)
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    return json.dumps(value)
