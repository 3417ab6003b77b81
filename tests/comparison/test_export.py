"""Comparisons as files: everything is there, and nothing in a name is run by who reads it."""

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from helpers.comparison_cases import found, stored_run

import optexp_jax as ox
from optexp_jax.comparison import Comparison
from optexp_jax.comparison.comparison import COMPARISON_COLUMNS
from optexp_jax.comparison.export import (
    RUNS,
    comparison_as_json,
    comparison_as_markdown,
    examples_of,
    write_comparison_csv,
    write_comparison_json,
    write_comparison_markdown,
)
from optexp_jax.runs.export import text_of_csv

EVIL = "=1+1|<b>`x`"


@pytest.fixture
def made(tmp_path: Path) -> Comparison:
    evil = ox.Explanation(ox.Formula.concept(EVIL), 1, 9, 1.0, ox.Status.FEASIBLE)
    first = {0: evil, 1: found("a", 2, 9), 2: found("a OR b", 2, 9), 3: found("a", 1, 9)}
    second = {
        0: found("a", 5, 9, optimal=True),
        1: found("a", 2, 9, optimal=True),
        2: found("a AND b", 3, 9, optimal=True),
        3: found("c", 2, 9, optimal=True),
    }
    stored_run(tmp_path / "a", first)
    stored_run(tmp_path / "b", second, ox.Optimal(3))
    return ox.compare(tmp_path / "a", tmp_path / "b")


def test_csv_has_every_unit_and_runs_no_formula(made: Comparison, tmp_path: Path):
    folder = "=HYPERLINK(1)"
    called = dataclasses.replace(made, a=dataclasses.replace(made.a, path=folder))
    write_comparison_csv([called, made], tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == (*RUNS, *COMPARISON_COLUMNS)
    assert len(rows) == 8
    cell = rows[0][header.index("formula_a")]
    stored = str(ox.Formula.concept(EVIL))
    assert text_of_csv(cell) == stored
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
    assert rows[0][0] == f"'{folder}"
    assert text_of_csv(rows[0][0]) == folder
    assert rows[-1][0] == made.a.path


def test_json_is_all_of_it(made: Comparison, tmp_path: Path):
    write_comparison_json([made], tmp_path / "x.json")
    (read,) = json.loads((tmp_path / "x.json").read_text())
    assert read == json.loads(json.dumps(comparison_as_json(made)))
    assert (read["n_units"], read["n_differing"]) == (4, 3)
    assert [row["ious"]["n"] for row in read["categories"]] == [2, 1, 0, 0]
    assert read["units"] == made.rows()


def test_markdown_keeps_its_tables(made: Comparison, tmp_path: Path):
    text = comparison_as_markdown(made)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:
        plain = row.replace("\\|", "")
        assert plain.count("|") in (6, 7)  # five or six columns
    assert "<b>" not in text
    write_comparison_markdown([made, made], tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text() == f"{text}\n{text}"


def test_examples_are_of_every_category(made: Comparison):
    assert [unit.unit for unit in examples_of(made, 1)] == [0, 2]
    assert [unit.unit for unit in examples_of(made, 9)] == [0, 3, 2]
    assert examples_of(made, 0) == []
