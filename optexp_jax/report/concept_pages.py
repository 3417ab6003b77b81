"""A page for each concept that some formula uses: in which units, and how."""

from collections.abc import Mapping
from dataclasses import dataclass

from optexp_jax.report.formula_view import FormulaView, shown_name, view_formula
from optexp_jax.report.layer_facts import LayerFacts
from optexp_jax.report.pages import write_page
from optexp_jax.report.summary import LayerSummary
from optexp_jax.report.unit_facts import UnitFacts

ROLES = {
    "": "is the first concept",
    "OR": "is added (OR)",
    "AND": "narrows (AND)",
    "AND NOT": "is taken away (AND NOT)",
}


@dataclass(frozen=True)
class ConceptUse:
    """A unit whose formula uses a concept."""

    unit: UnitFacts
    formula: FormulaView
    role: str


def concept_links(summary: LayerSummary) -> Mapping[str, str]:
    """The page of each concept that is used, from the layer's folder; numbered by name."""
    return {name: f"concepts/{k}.html" for k, name in enumerate(sorted(summary.concepts))}


def write_concepts(site: LayerFacts) -> None:
    """Write a page for each concept that is used."""
    (site.folder / "concepts").mkdir()
    uses: dict[str, list[ConceptUse]] = {name: [] for name in site.links}
    for unit in site.summary.units:
        if unit.formula is not None:
            view = view_formula(unit.formula, site.links)
            chain = unit.formula.canonical
            for place, name in enumerate(chain.concepts):
                operator = str(chain.operators[place - 1]) if place else ""
                role = ROLES.get(operator, f"is joined ({operator})")
                uses[name].append(ConceptUse(unit, view, role))
    names = list(site.links)
    for place, name in enumerate(names):
        found = sorted(uses[name], key=lambda use: -(use.unit.iou or 0.0))
        near: dict[str, int] = {}
        for use in found:
            assert use.unit.formula is not None
            for other in use.unit.formula.concepts:
                if other != name:
                    near[other] = near.get(other, 0) + 1
        roles: dict[str, int] = {}
        for use in found:
            roles[use.role] = roles.get(use.role, 0) + 1
        table = None if site.layer.source is None else site.layer.source.table
        write_page(
            site.folder / site.links[name],
            "concept.html",
            title=f"Concept {shown_name(name)}",
            root=f"../{site.root}",
            up="../index.html",
            layer=site.layer.title,
            name=shown_name(name),
            category=site.summary.categories.get(name),
            concept=None if table is None else table.concept(name),
            table=table,
            uses=found,
            roles=roles,
            near=[
                (shown_name(other), site.links[other], n)
                for other, n in sorted(near.items(), key=lambda item: (-item[1], item[0]))
            ],
            before=None if not place else site.links[names[place - 1]],
            after=None if place + 1 == len(names) else site.links[names[place + 1]],
            threshold=site.threshold,
        )
