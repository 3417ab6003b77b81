"""Charts of comparisons: what they show, and files that nothing in a name can break."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.comparison_cases import found
from PIL import Image

import optexp_jax as ox
from optexp_jax.charts import comparison_chart, gain_histogram, iou_scatter, save_chart
from optexp_jax.comparison import ComparedRun, ComparedUnit, Comparison
from optexp_jax.comparison.category import category_of

EVIL = "</script><script>alert(1)</script>"


def comparison(pairs: list[tuple[ox.Explanation, ox.Explanation]]) -> Comparison:
    units = tuple(ComparedUnit(k, a, b, category_of(a, b), None) for k, (a, b) in enumerate(pairs))
    return Comparison(ComparedRun("runs/a", "Beam", 0), ComparedRun("runs/b", "Optimal", 0), units)


EVIL_RESULT = ox.Explanation(ox.Formula.concept(EVIL), 1, 9, 1.0, ox.Status.FEASIBLE)
MADE = comparison(
    [
        (found("a", 2, 9), found("a", 2, 9)),
        (EVIL_RESULT, found("b", 3, 9)),
        (found("a OR b", 3, 9), found("a AND b", 4, 9)),
        (found("a", 3, 9), found("b", 3, 9)),
    ]
)


def values(chart: Any) -> list[dict[str, Any]]:
    """The units of a chart."""
    tables = json.loads(chart.to_json())["datasets"].values()
    return [row for table in tables for row in table if "unit" in row]


def test_every_unit_is_a_point_and_every_gain_is_counted():
    assert sorted(row["unit"] for row in values(iou_scatter(MADE))) == [0, 1, 2, 3]
    gains = values(gain_histogram(MADE))
    assert [(row["unit"], row["gain"]) for row in gains] == [
        (unit.unit, unit.gain) for unit in MADE.largest_gains()
    ]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("kind", ["png", "svg", "html"])
def test_charts_become_files(tmp_path: Path, kind: str, n: int):
    path = tmp_path / f"chart.{kind}"
    save_chart(comparison_chart(*[MADE] * n), path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if kind == "png":
        with Image.open(path) as image:
            assert image.size[0] > 800
            assert image.size[1] > 600 * n
    else:
        text = path.read_text(encoding="utf-8")
        assert ("<svg" if kind == "svg" else "vegaEmbed") in text


def test_pages_run_no_names_and_load_nothing(tmp_path: Path):
    save_chart(comparison_chart(MADE), tmp_path / "x.html", title="<b>")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<title>&lt;b&gt;</title>" in text
    assert not re.search(r"<(?:script|link)[^>]*(?:src|href)=", text)
    chart = re.search(r'vegaEmbed\("#chart", (\{.*\}), \{renderer', text)
    assert chart is not None
    assert json.loads(chart[1]) == json.loads(comparison_chart(MADE).to_json())


def test_runs_that_do_not_differ_have_a_chart(tmp_path: Path):
    same = comparison([(found(None, 0, 9), found(None, 0, 9))])
    save_chart(comparison_chart(same), tmp_path / "x.svg")
    assert "0 of 1 units differ" in (tmp_path / "x.svg").read_text()


def test_other_kinds_of_files_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"end in \.png, \.svg or \.html"):
        save_chart(comparison_chart(MADE), tmp_path / "x.pdf")


def test_many_units_are_drawn():
    many = comparison([(found("a", k, 9000), found("b", k + 1, 9000)) for k in range(6000)])
    assert len(values(iou_scatter(many))) == 6000
