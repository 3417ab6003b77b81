"""Which ratios got worse, and the program that says so."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from optexp_jax.bench.baseline import compare_ratios, read_baseline, watched_ratios, write_baseline
from optexp_jax.bench.machine import Machine
from optexp_jax.bench.report import BenchFigure, SuiteReport, write_reports
from optexp_jax.bench.turns import Spread

ROOT = Path(__file__).resolve().parents[2]


def written(path: Path, **ratios: float) -> Path:
    figures = [
        BenchFigure(name, ratio, spread=Spread(ratio, 0.9 * ratio, 1.1 * ratio), watched=True)
        for name, ratio in ratios.items()
    ]
    figures.append(BenchFigure("seconds", 3.0, spread=Spread(3.0, 2.0, 4.0)))
    report = SuiteReport("suite", "A suite", tuple(figures))
    write_reports(path, [report], Machine.here())
    return path


@pytest.fixture
def program() -> Any:
    return runpy.run_path(str(ROOT / "benchmarks/worse.py"))["main"]


def test_only_watched_ratios_are_kept(tmp_path: Path):
    document = json.loads(written(tmp_path / "a.json", one=2.0).read_text())
    assert watched_ratios(document) == {"suite: one": Spread(2.0, 1.8, 2.2)}


def test_quick_runs_have_ratios_of_their_own():
    figure = BenchFigure("one", 2.0, spread=Spread(2.0, 1.0, 3.0), watched=True)
    report = SuiteReport("suite", "", (figure,), settings={"quick": True})
    assert set(watched_ratios({"suites": [report.as_json()]})) == {"suite, quick: one"}


def test_ratios_of_other_suites_stay_in_the_baseline(tmp_path: Path):
    kept = tmp_path / "baseline.json"
    for name, ratio in (("one", 2.0), ("two", 3.0), ("one", 4.0)):
        write_baseline(kept, json.loads(written(tmp_path / "a.json", **{name: ratio}).read_text()))
    assert {name: each.median for name, each in read_baseline(kept).items()} == {
        "suite: one": 4.0,
        "suite: two": 3.0,
    }


def test_another_file_is_refused():
    with pytest.raises(ValueError, match="optexp bench --json"):
        watched_ratios({"suites": [{}]})


def test_a_quarter_is_the_limit():
    one = Spread(1.0, 1.0, 1.0)
    before = {"s: a": Spread(4.0, 4.0, 4.0), "s: gone": one, "another: b": one}
    same = compare_ratios(before, {"s: a": Spread(5.0, 5.0, 5.0), "s: new": one})
    assert same.worse == ()
    assert same.missing == ("s: gone",)
    assert same.new == ("s: new",)
    (worse,) = compare_ratios(before, {"s: a": Spread(5.01, 3.9, 6.0)}).worse
    assert worse.name == "s: a"
    assert "overlap" in str(worse)
    assert "overlap" not in str(compare_ratios(before, {"s: a": Spread(8.0, 7.0, 9.0)}).worse[0])


def test_the_program_tells_and_fails(
    tmp_path: Path, program: Any, capsys: pytest.CaptureFixture[str]
):
    kept = tmp_path / "baseline.json"
    before = written(tmp_path / "before.json", one=2.0, two=3.0, three=1.0)
    assert program([str(before), "--baseline", str(kept), "--keep"]) == 0
    assert set(read_baseline(kept)) == {"suite: one", "suite: two", "suite: three"}
    assert program([str(before), "--baseline", str(kept)]) == 0
    capsys.readouterr()
    after = written(tmp_path / "after.json", one=9.0, two=2.0, three=1.3)
    assert program([str(after), "--baseline", str(kept)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("worse: suite: one")
    assert lines[1].startswith("worse: suite: three")
    assert lines[-1] == "3 ratios compared, 2 worse by more than 25 %."


def test_the_projects_baseline_can_be_read():
    kept = read_baseline(ROOT / "benchmarks/baseline.json")
    assert any("TightBounds / lower limit" in name for name in kept)
    assert all(0 < each.low <= each.median <= each.high for each in kept.values())
