"""`optexp bench`: what it takes, prints, writes and refuses."""

import json
from pathlib import Path

import pytest

from optexp_jax import cli
from optexp_jax.bench import suites
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.report import BenchFigure, BenchTable, SuiteReport, number
from optexp_jax.bench.turns import Spread, Tell
from optexp_jax.cli import bench_output

TABLE = BenchTable("A table", ("method", "time"), (("TightBounds", "1"),), ("time",))
GOOD = SuiteReport("growth", "Time against size", (BenchFigure("exponent", 1.5),), (TABLE,))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, BenchPlan]]:
    """Suites that were asked for; they report what is good, at once."""
    found: list[tuple[str, BenchPlan]] = []

    def run_suite(name: str, plan: BenchPlan, tell: Tell) -> SuiteReport:
        found.append((name, plan))
        tell(f"{name}: a turn")
        return GOOD

    monkeypatch.setattr(suites, "run_suite", run_suite)
    return found


def test_two_suites_are_run_when_none_is_named(asked: list[tuple[str, BenchPlan]]):
    assert cli.main(["bench"]) == 0
    assert [name for name, _ in asked] == ["alternatives", "growth"]
    assert asked[0][1] == BenchPlan()


def test_options_reach_the_suites(asked: list[tuple[str, BenchPlan]]):
    words = ["bench", "all", "--quick", "--turns", "9", "--budget", "4", "--data", "folder:x"]
    assert cli.main([*words, "--reference", "PaperBounds"]) == 0
    assert [name for name, _ in asked] == list(suites.SUITES)
    assert asked[0][1] == BenchPlan(True, 9, 4.0, "PaperBounds", "folder:x")


def test_results_and_what_is_being_done_go_apart(
    asked: list[tuple[str, BenchPlan]], capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["bench", "growth"]) == 0
    printed = capsys.readouterr()
    assert "TightBounds" in printed.out
    assert "a turn" not in printed.out
    assert "growth: a turn" in printed.err


def test_figures_are_written_where_they_are_asked_for(
    asked: list[tuple[str, BenchPlan]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli.main(["bench", "growth"]) == 0
    assert list((tmp_path / "here").iterdir()) == []
    path = tmp_path / "new" / "figures.json"
    assert cli.main(["bench", "growth", "--json", str(path)]) == 0
    content = json.loads(path.read_text())
    assert content["suites"][0]["figures"][0]["value"] == 1.5
    assert content["machine"]["cpu_count"] >= 1


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (SuiteReport("growth", "", faults=("one proved IoU 1/2 and two 1/3",)), "1/3"),
        (SuiteReport("growth", "", (BenchFigure("build", 11.0, "s", 10.0),)), "build"),
    ],
)
def test_what_is_wrong_fails_after_the_figures_are_written(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    report: SuiteReport,
    said: str,
):
    monkeypatch.setattr(suites, "run_suite", lambda *_: report)
    path = tmp_path / "figures.json"
    assert cli.main(["bench", "growth", "--json", str(path)]) == 1
    assert said in capsys.readouterr().err
    assert path.exists()


def test_mistakes_are_told_before_anything_runs(
    asked: list[tuple[str, BenchPlan]], capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["bench", "grwth"]) == 1
    assert "growth" in capsys.readouterr().err
    assert cli.main(["bench", "table", "--plot", "x.svg"]) == 1
    assert "--plot" in capsys.readouterr().err
    assert asked == []


def test_every_suite_is_a_module_with_run():
    from importlib import import_module

    for name in suites.SUITES:
        assert callable(import_module(f"optexp_jax.bench.suites.{name}").run)
    with pytest.raises(ValueError, match="alternatives"):
        suites.run_suite("none", BenchPlan(), lambda _: None)


def test_lines_come_now_and_then(capsys: pytest.CaptureFixture[str]):
    with bench_output.Doings() as doings:
        for k in range(5):
            doings.tell(f"turn {k}")
    assert capsys.readouterr().err == "turn 0\n"


def test_numbers_for_people():
    assert [number(x) for x in (0.0, 12.0, 0.12345, 1234.5, float("inf"))] == [
        "0",
        "12",
        "0.123",
        "1,234",
        "never",
    ]
    assert number(3.25, "s") == "3.25 s"


def test_what_never_ended_has_no_number_in_json(tmp_path: Path):
    from optexp_jax.bench.machine import Machine
    from optexp_jax.bench.report import reports_as_json

    figure = BenchFigure("worst", float("inf"), "s", 5.0, spread=Spread(1.0, 0.5, float("inf")))
    content = reports_as_json([SuiteReport("tight", "", (figure,))], Machine.here())
    (told,) = content["suites"][0]["figures"]
    assert told["value"] is None
    assert told["spread"]["high"] is None
    assert told["met"] is False
