"""Comparisons for other programs and for papers: CSV, JSON, Markdown."""

import csv
import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from optexp_jax.comparison.comparison import COMPARISON_COLUMNS, ComparedUnit, Comparison
from optexp_jax.comparison.summary import IoUSummary
from optexp_jax.runs.export import csv_text, whole_or_not

RUNS = ("run_a", "run_b")
"""Columns in front of a CSV file's others: it may hold several comparisons."""
CATEGORY_COLUMNS = ("category", "units", "share", "IoU of A", "IoU of B", "same locations")
UNIT_COLUMNS = ("unit", "category", "gain", "A", "B")


def write_comparison_csv(comparisons: Iterable[Comparison], path: Path) -> None:
    """One line a unit and comparison; text as `csv_text` writes it."""
    with whole_or_not(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*RUNS, *COMPARISON_COLUMNS))
        for comparison in comparisons:
            for row in comparison.rows():
                cells = (row[name] for name in COMPARISON_COLUMNS)
                runs = comparison.a.path, comparison.b.path
                writer.writerow([csv_text(cell) for cell in (*runs, *cells)])


def write_comparison_json(comparisons: Iterable[Comparison], path: Path) -> None:
    """All of `comparison_as_json`, in a list."""
    found = [comparison_as_json(comparison) for comparison in comparisons]
    text = json.dumps(found, indent=2) + "\n"
    with whole_or_not(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_comparison_markdown(
    comparisons: Sequence[Comparison], path: Path, top: int = 5, examples: int = 1
) -> None:
    """All of `comparison_as_markdown`, one after another."""
    parts = [comparison_as_markdown(each, top, examples) for each in comparisons]
    with whole_or_not(path) as partial:
        partial.write_text("\n".join(parts), encoding="utf-8")


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything in a comparison as JSON."""
    return {
        "a": dataclasses.asdict(comparison.a),
        "b": dataclasses.asdict(comparison.b),
        "notes": list(comparison.notes),
        "n_units": len(comparison.units),
        "n_differing": len(comparison.differing),
        "share_differing": comparison.share_differing,
        "ious": dataclasses.asdict(comparison.ious()),
        "categories": [
            {
                "category": row.category.value,
                "meaning": row.category.meaning,
                "share": row.share,
                "same_locations": row.same_locations,
                "ious": dataclasses.asdict(row.ious),
            }
            for row in comparison.categories()
        ],
        "units": comparison.rows(),
    }


def category_cells(comparison: Comparison) -> list[tuple[str, ...]]:
    """The table of categories as text, all that differ last, in `CATEGORY_COLUMNS`."""
    rows = comparison.categories()
    found = [(row.category.label, row.share, row.ious, row.same_locations) for row in rows if row.n]
    if not found:
        return []
    total = sum(row.same_locations for row in rows)
    found.append(("all that differ", 1.0, comparison.ious(), total))
    return [
        (label, str(ious.n), f"{share:.1%}", *_mean_cells(ious), str(same))
        for label, share, ious, same in found
    ]


def _mean_cells(ious: IoUSummary) -> tuple[str, str]:
    return f"{ious.mean_a:.4f} ± {ious.std_a:.4f}", f"{ious.mean_b:.4f} ± {ious.std_b:.4f}"


def unit_cells(unit: ComparedUnit) -> tuple[str, ...]:
    """A unit as text, in `UNIT_COLUMNS`."""
    same = ", same locations" if unit.same_locations and unit.category.differs else ""
    return (
        str(unit.unit),
        f"{unit.category.value}{same}",
        f"{unit.gain:+.4f}",
        *(
            f"{'none' if found.formula is None else found.formula} ({found.iou:.4f})"
            for found in (unit.a, unit.b)
        ),
    )


def examples_of(comparison: Comparison, n: int) -> list[ComparedUnit]:
    """Up to `n` units of each category: those with the largest gains, then the first ones."""
    return [
        unit
        for row in comparison.categories()
        for unit in sorted(comparison.of(row.category), key=lambda unit: -abs(unit.gain))[:n]
    ]


def comparison_as_markdown(comparison: Comparison, top: int = 5, examples: int = 1) -> str:
    """Sentences, the table of categories, the `top` largest gains and `examples` of each category.

    GitHub and others show it.
    """
    lines = [f"- {_plain(sentence)}" for sentence in comparison.sentences()]
    blocks = (
        ("By category", CATEGORY_COLUMNS, category_cells(comparison)),
        ("Largest gains", UNIT_COLUMNS, [unit_cells(x) for x in comparison.largest_gains(top)]),
        ("Examples", UNIT_COLUMNS, [unit_cells(x) for x in examples_of(comparison, examples)]),
    )
    for heading, columns, rows in blocks:
        if rows:
            lines += ["", f"**{heading}**", "", _table_row(columns)]
            lines += [_table_row(["---"] * len(columns))]
            lines += [_table_row([_plain(cell) for cell in row]) for row in rows]
    return "\n".join(lines) + "\n"


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text without what Markdown would take for its own signs, or a page for a tag."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~#" else c for c in text)
