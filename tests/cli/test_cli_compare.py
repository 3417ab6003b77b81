"""`optexp compare`: what it prints and writes, and its exit codes."""

import json
import sys
from pathlib import Path

import pytest
from helpers.comparison_cases import found, stored_run

import optexp_jax as ox
from optexp_jax import cli

OPTIMAL = ox.Optimal(3)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    beam = {0: found("a", 2, 9), 1: found("a OR b", 3, 9), 2: found("a", 3, 9), 3: "no luck"}
    optima = {
        0: found("b", 3, 9, optimal=True),
        1: found("a AND b", 5, 9, optimal=True),
        2: found("a", 3, 9, optimal=True),
        3: found("a", 3, 9, optimal=True),
    }
    stored_run(tmp_path / "beam", beam)
    stored_run(tmp_path / "optimal", optima, OPTIMAL)
    stored_run(tmp_path / "wrong", {**optima, 1: found("c", 4, 9, optimal=True)}, OPTIMAL)
    stored_run(tmp_path / "fewer", {0: found("c", 3, 9, optimal=True)}, OPTIMAL)
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["compare", *arguments]) == 0
    return capsys.readouterr().out


def failed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert cli.main(["compare", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_the_summary_comes_first(runs: Path, capsys: pytest.CaptureFixture[str]):
    lines = ran(capsys, "beam", "optimal").splitlines()
    assert lines[0].startswith("A: beam (Beam length=3 size=5 guide=QuantityGuide), 0 of 3")
    assert lines[1].startswith("B: optimal (Optimal length=3 bounds=TightBounds), 3 of 3")
    assert lines[2] == "2 of 3 units differ (66.7%): the IoU of B is higher in 2, lower in 0"
    assert lines[3] == "Not compared: 1 unit failed in A (3)"
    rows = [" ".join(line.split()) for line in lines]
    assert "1: other concepts, other IoU 1 50.0% 0.2222 ± 0.0000 0.3333 ± 0.0000 0" in rows
    assert "all that differ 2 100.0% 0.2778 ± 0.0556 0.4444 ± 0.1111 0" in rows
    gains = rows[rows.index("Largest gains") + 2 :]
    assert gains[0] == "1 2 +0.2222 (a OR b) (0.3333) (a AND b) (0.5556)"
    assert rows[rows.index("Examples") + 2].startswith("0 1 +0.1111")


def test_tables_can_be_left_out(runs: Path, capsys: pytest.CaptureFixture[str]):
    said = ran(capsys, "beam", "optimal", "--top", "0", "--examples", "0")
    assert "By category" in said
    assert "Largest gains" not in said
    assert "Examples" not in said


def test_the_first_run_is_compared_with_each_other(runs: Path, capsys: pytest.CaptureFixture[str]):
    made = json.loads(ran(capsys, "optimal", "beam", "optimal", "--json"))
    assert [(each["a"]["path"], each["b"]["path"]) for each in made] == [
        ("optimal", "beam"),
        ("optimal", "optimal"),
    ]
    assert made[0]["n_differing"] == 2
    assert made[1]["n_differing"] == 0
    assert made[0]["units"][0]["gain"] < 0


def test_files_are_written(runs: Path, capsys: pytest.CaptureFixture[str]):
    files = [f"x.{kind}" for kind in ("csv", "json", "md", "svg")]
    options = ["--csv", files[0], "--json", files[1], "--markdown", files[2], "--plot", files[3]]
    said = ran(capsys, "beam", "optimal", *options)
    assert said.splitlines()[-4:] == [f"1 comparison written to {name}" for name in files]
    assert all((runs / name).stat().st_size for name in files)
    printed = ran(capsys, "beam", "optimal", "--markdown")
    assert printed == (runs / "x.md").read_text()


def test_contradictions_fail(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert "contradict each other in unit 1" in failed(capsys, "optimal", "wrong")
    assert "contradict each other in unit 1" in failed(capsys, "beam", "optimal", "wrong")


def test_other_units_are_refused_unless_common(runs: Path, capsys: pytest.CaptureFixture[str]):
    said = failed(capsys, "beam", "fewer", code=2)  # nothing was compared, nothing is wrong
    assert "3 only in beam: 1, 2, 3" in said
    assert "--common" in said
    assert "1 of 1 unit differ" in ran(capsys, "beam", "fewer", "--common")


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["nowhere"], "There is no run at nowhere", 1),
        (["optimal", "--csv", "no/x.csv"], "There is no folder no for x.csv", 1),
        (["optimal", "--plot", "x.pdf"], "x.pdf is no name for a chart", 1),
        (["optimal", "--json", "--markdown"], "cannot both be printed", 2),
    ],
)
def test_mistakes_are_one_line(
    runs: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str, code: int
):
    assert said in failed(capsys, "beam", *options, code=code)


def test_without_altair_the_extra_is_named(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in [name for name in sys.modules if name.startswith("optexp_jax.charts")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "optexp-jax[report]" in failed(capsys, "beam", "optimal", "--plot", "x.png")


def test_one_run_is_bad_usage(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", "beam"]) == 2
    assert "RUN_B" in capsys.readouterr().err
