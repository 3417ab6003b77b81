"""A formula as pages show it: with links, and to be copied."""

from collections.abc import Mapping
from dataclasses import dataclass

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.text import escape_unprintable
from optexp_jax.report.formula_text import as_latex, as_python

KINDS = {"OR": "adds", "AND": "narrows", "AND NOT": "removes"}
"""How an operator is marked, by what it does to the formula so far."""


@dataclass(frozen=True)
class FormulaPart:
    """A concept of a formula, with the operator before it."""

    operator: str | None
    kind: str
    concept: str
    link: str | None
    """From the layer's folder."""


@dataclass(frozen=True)
class FormulaView:
    """A formula in its canonical order."""

    parts: tuple[FormulaPart, ...]
    text: str
    latex: str
    python: str


def view_formula(formula: Formula, links: Mapping[str, str]) -> FormulaView:
    """The view of a formula; `links` leads from concepts to their pages."""
    chain = formula.canonical
    parts = tuple(
        FormulaPart(
            None if not place else str(chain.operators[place - 1]),
            "first" if not place else KINDS.get(str(chain.operators[place - 1]), "joins"),
            shown_name(concept),
            links.get(concept),
        )
        for place, concept in enumerate(chain.concepts)
    )
    return FormulaView(parts, str(chain), as_latex(chain), as_python(chain))


def shown_name(name: str) -> str:
    """A name for a page: characters that do not print are escaped, and nothing is empty."""
    return "".join(map(escape_unprintable, name)) or '""'
