"""Nodes of the tight search in words, for reports."""

from collections.abc import Sequence

import numpy as np

from optexp_jax.bounds.tight.forms import OPERATORS
from optexp_jax.bounds.tight.nodes import TightNodes
from optexp_jax.formulas.text import format_chain, quote_name


def node_text(nodes: TightNodes, row: int, names: Sequence[str]) -> str:
    """A node from the inside outward, such as `(a OR b), 1 more step, then AND NOT c`."""
    labels = nodes.labels(np.array([row]))
    inner: list[int] = labels.inner[0].tolist()
    concepts = [names[concept] for concept in inner]
    if concepts:
        further = int(nodes.further[row])
        label = format_chain(concepts, [OPERATORS[form] for form in labels.forms[0].tolist()])
        inside = f"{label}, {further} more step{'' if further == 1 else 's'}"
    else:
        inside = "any three concepts or more"
    outer = [
        f", then {OPERATORS[step.form]} {quote_name(names[step.concept])}"
        for step in reversed(nodes.spot(row).steps)
    ]
    return inside + "".join(outer)
