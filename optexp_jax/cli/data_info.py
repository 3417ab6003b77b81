"""`optexp data info`: what a concept table holds and where it comes from."""

import dataclasses
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import optexp_jax
from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import plural
from optexp_jax.cli.parsing import at_least
from optexp_jax.concepts import Concept, ConceptTable
from optexp_jax.datasets.provenance import Provenance, find_provenance


@dataclass(frozen=True)
class CategoryCount:
    """The concepts of a category."""

    category: str | None
    n_concepts: int
    n_empty: int
    """Concepts that occur nowhere."""


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Count a table's samples, concepts and categories, list its largest and "
        "smallest concepts, and say which dataset it was built from."
    )
    parser.epilog = "example: optexp data info broden.zarr --top 5"
    parser.add_argument("table", metavar="TABLE", type=Path, help="the table")
    parser.add_argument(
        "--top", metavar="N", type=at_least(1), default=10, help="concepts to list (default: 10)"
    )
    parser.add_argument(
        "--verify", action="store_true", help="check all of the table for damage, which takes time"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    table = ConceptTable.load(options.table, verify=options.verify)
    provenance = find_provenance(options.table)
    order = np.argsort(-table.concept_sizes, kind="stable").tolist()
    occurring = [k for k in order if table.concept_sizes[k]]
    largest = [table.concept(table.names[k]) for k in occurring[: options.top]]
    smallest = [table.concept(table.names[k]) for k in reversed(occurring[-options.top :])]
    counts = _count_categories(table)
    if options.json:
        told = _as_json(table, provenance, counts, largest, smallest)
        print(json.dumps({"table": str(options.table), **told}, indent=2))
    else:
        _print(table, provenance, counts, largest, smallest)


def _count_categories(table: ConceptTable) -> list[CategoryCount]:
    found: list[CategoryCount] = []
    for category in dict.fromkeys(table.categories):
        member = np.array([mine == category for mine in table.categories])
        empty = table.concept_sizes[member] == 0
        found.append(CategoryCount(category, len(empty), int(np.count_nonzero(empty))))
    return found


def _print(
    table: ConceptTable,
    provenance: Provenance | None,
    counts: Sequence[CategoryCount],
    largest: Sequence[Concept],
    smallest: Sequence[Concept],
) -> None:
    console = results_console()
    for line in (repr(table), *_origin(provenance)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()
    shown = _new_table(console, "category", "concepts", "of these empty")
    for count in counts:
        shown.add_row(Text(count.category or "-"), str(count.n_concepts), str(count.n_empty))
    console.print(shown)
    for title, concepts in (("largest concepts", largest), ("smallest concepts", smallest)):
        console.print()
        shown = _new_table(console, title, "locations", "share", "samples", "category")
        for concept in concepts:
            shown.add_row(
                Text(concept.name or '""'),
                str(concept.n_locations),
                f"{concept.n_locations / table.n_locations:.3%}",
                str(concept.n_samples),
                Text(concept.category or "-"),
            )
        console.print(shown)


def _origin(provenance: Provenance | None) -> list[str]:
    if provenance is None:
        return ["The table does not say which dataset it was built from."]
    spec = "a dataset object" if provenance.spec is None else str(provenance.spec)
    lines = [
        f"built from {spec} with optexp_jax {provenance.version}",
        provenance.description,
    ]
    if provenance.skipped:
        names = ", ".join(sample.name for sample in provenance.skipped[:5])
        more = ", ..." if len(provenance.skipped) > 5 else ""
        lines.append(
            f"{plural(len(provenance.skipped), 'sample')} could not be read: {names}{more}"
        )
    return lines


def _new_table(console: Console, first: str, *others: str) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column(first, overflow="fold", max_width=60)
    for name in others:
        table.add_column(name, justify="left" if name == "category" else "right", no_wrap=True)
    return table


def _as_json(
    table: ConceptTable,
    provenance: Provenance | None,
    counts: Sequence[CategoryCount],
    largest: Sequence[Concept],
    smallest: Sequence[Concept],
) -> dict[str, Any]:
    located = table.sample_map
    return {
        "version": optexp_jax.__version__,
        "concepts": table.n_concepts,
        "samples": table.n_samples,
        "locations": table.n_locations,
        "location_shape": None if located is None else list(located.location_shape),
        "signatures": len(table.signatures),
        "compression": table.compression,
        "fingerprint": table.fingerprint,
        "categories": [dataclasses.asdict(count) for count in counts],
        "largest": [dataclasses.asdict(concept) for concept in largest],
        "smallest": [dataclasses.asdict(concept) for concept in smallest],
        "provenance": None if provenance is None else _origin_json(provenance),
    }


def _origin_json(provenance: Provenance) -> dict[str, Any]:
    return {
        "dataset": None if provenance.spec is None else str(provenance.spec),
        "dataset_fingerprint": provenance.fingerprint,
        "description": provenance.description,
        "skipped": [dataclasses.asdict(sample) for sample in provenance.skipped],
        "version": provenance.version,
    }
