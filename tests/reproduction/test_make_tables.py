"""Whole tables, from the layer to the text; stand-ins are marked everywhere."""

import csv
import dataclasses
import io
import json
import runpy
import sys
from pathlib import Path

import pytest

from optexp_jax.cli.command_line import run as run_command
from optexp_jax.reproduction import TableRequest, make_tables
from optexp_jax.reproduction.report import WARNING
from optexp_jax.reproduction.request import PRESETS

SCRIPTS = Path(__file__).parents[2] / "scripts"


LOW = TableRequest("low", units=2, small=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the table `LOW` was made: the others of these tests go on from there."""
    made = tmp_path_factory.mktemp("tables")
    said: list[str] = []
    make_tables(LOW, made, say=said.append)
    assert "generating disjoint-19x500x112" in said
    assert "row 1 of 6, Optimal, PaperBounds, batch 1: the first unit, to compile" in said
    assert said[-1] == "row 6 of 6, Beam, vanilla: 2 units"
    return made


def test_low_on_a_stand_in(folder: Path):
    # Everything is stored: nothing is made or explained a second time.
    said: list[str] = []
    report = make_tables(LOW, folder, say=said.append)
    assert not any(word.startswith(("generating", "planting")) for word in said)
    assert make_tables(LOW, folder).to_csv() == report.to_csv()
    assert report.is_stand_in
    records = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [record["algorithm"] for record in records] == [
        "Optimal, PaperBounds, batch 1",
        "Optimal, PaperBounds",
        "Optimal, TightBounds",
        "Beam, quantities",
        "Beam, MMESH",
        "Beam, vanilla",
    ]
    assert {record["data"] for record in records} == {"stand-in"}
    assert {record["units"] for record in records} == {"2"}
    # Where concepts are disjoint one exact score is enough, and all methods find the optimum.
    assert float(records[0]["visited_mean"]) == 1
    assert len({record["iou_mean"] for record in records}) == 1
    # The paper's estimates follow from its beams: 15 formulas expanded give 695 to 705.
    assert float(records[5]["visited_mean"]) == float(records[5]["estimated_mean"]) <= 705
    # The machine is the one that did the work, with the load that it had then.
    (kept,) = folder.glob("low-*-3-s/machine.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == dataclasses.asdict(report.machine)
    stored = json.loads(report.to_json())
    assert stored["stand_in"] is True
    assert stored["warning"] == WARNING
    assert {"jax", "optexp-jax", "python"} <= stored["machine"]["versions"].keys()
    for text in (report.to_markdown(), report.to_latex()):
        assert WARNING in text
        assert "STAND-IN: Table 2" in text
    assert "| published |" in report.to_markdown()


def test_budgets_are_told(folder: Path):
    request = dataclasses.replace(LOW, budget=1e-6)
    report = make_tables(request, folder)
    first = report.tables[0].rows[0]
    assert first[0] == "Optimal, PaperBounds, batch 1"
    assert first[5].startswith("> ")
    assert first[7] == "2 of 2"


def test_real_data_is_no_stand_in(tmp_path: Path):
    pytest.importorskip("torch")
    request = TableRequest(
        "categories", "resnet18", data="shapes:n=6,size=48", weights="random", units=3
    )
    report = make_tables(request, tmp_path)
    assert not report.is_stand_in
    text = report.to_markdown()
    assert "STAND-IN" not in text
    assert "published |" not in text  # the published figures are not of this dataset
    assert "3 of 512 units of layer4" in report.data


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="preset must be one of low"):
        TableRequest("lower")
    with pytest.raises(ValueError, match="model must be one of resnet18"):
        TableRequest("low", model="vgg")
    with pytest.raises(ValueError, match="go together"):
        TableRequest("low", data="cityscapes:/data")
    with pytest.raises(ValueError, match="small is for stand-ins"):
        TableRequest("low", data="cityscapes:/data", weights="w", small=True)


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = ["tables", "--preset", "low", "--small", "--units", "2", "--folder", str(folder), "-q"]
    assert run_command(asked) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("**STAND-IN: Table 2.")
    assert WARNING in printed
    out = tmp_path / "table.tex"
    assert run_command([*asked, "--format", "latex", "--out", str(out)]) == 0
    assert r"\toprule" in out.read_text(encoding="utf-8")
    assert run_command(["tables", "--preset", "lo"]) == 1
    assert run_command(["tables"]) == 1
    assert "--preset must be one of" in capsys.readouterr().err


@pytest.mark.parametrize("script", sorted(path.stem for path in SCRIPTS.glob("table*.py")))
def test_scripts_ask_for_published_tables(script: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    found = runpy.run_path(str(SCRIPTS / f"{script}.py"))
    assert all(isinstance(request, TableRequest) for request in found["REQUESTS"])


@pytest.mark.slow
def test_a_script_prints_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["table8.py", "--small", "--folder", str(tmp_path)])
    runpy.run_path(str(SCRIPTS / "table8.py"), run_name="__main__")
    assert "Table 8." in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_small(preset: str, tmp_path: Path):
    report = make_tables(TableRequest(preset, small=True), tmp_path)
    assert report.is_stand_in
    assert all(table.title.startswith("STAND-IN") for table in report.marked_tables())
    if preset == "figures":
        assert len(report.figures) == report.records[0]["count"] > 0
        assert all(path.is_file() for path in report.figures)
