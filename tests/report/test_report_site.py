"""The folder of a report: what is in it, what it replaces, and reports without pictures."""

import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.report_cases import IMAGE, N_UNITS, SCRIPT, ReportRuns, make_runs
from helpers.run_cases import small_table

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.report import ReportSettings, build_report
from optexp_jax.runs import BitmapUnits, explain_layer
from optexp_jax.runs.store import RunStore

ROOT = Path(__file__).resolve().parent.parent.parent
VENDORED = (
    "vendor/tabulator.min.js",
    "vendor/tabulator.min.css",
    "vendor/tabulator.LICENSE.txt",
    "vendor/README.md",
    "report.css",
    "report.js",
)


def test_every_link_leads_to_a_file(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > N_UNITS
    for page in pages:
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            assert not re.match(r"\w+:", link), f"{page}: {link} leaves the disk"
            assert (page.parent / link).is_file(), f"{page}: {link}"


def test_names_are_escaped_in_every_file(site: Path):
    for path in [*site.rglob("*.html"), *site.glob("*.js"), *(site / "whatif").rglob("*.js")]:
        text = path.read_text()
        assert SCRIPT not in text, path
        assert IMAGE not in text, path
        assert "<img src=x" not in text, path


def test_pages_have_a_policy_without_eval(site: Path):
    for page in site.rglob("*.html"):
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page.read_text())
        assert "unsafe" not in policy
        assert "default-src &#39;none&#39;" in policy


def test_pages_say_whether_formulas_hold(site: Path, runs: ReportRuns):
    overview = (site / "index.html").read_text()
    assert "On images that they were not found on, formulas have a mean IoU of" in overview
    assert "Corrected for the number of units" in overview
    assert "activation range of all images" in overview
    table = (site / "units.js").read_text()
    for field in ('"held":', '"recurs":', '"family":'):
        assert field in table
    for result in runs.optimal.results:
        page = (site / "units" / f"{result.unit}.html").read_text()
        row = result.row()
        assert f"<dd>{row['held_out_iou']:.4f}</dd>" in page
        assert f"out of bag {row['out_of_bag_iou']:.4f}" in page
        assert f"{row['confidence_size']}" in page
        assert "p of all units" in page
        assert "cannot be told from the best" in page


def test_a_report_is_replaced_and_nothing_else_is(runs: ReportRuns, tmp_path: Path):
    out = tmp_path / "report"
    build_report([runs.beam], out)
    (out / "units" / "old.html").write_text("old")
    page = build_report([runs.beam.path], out)
    assert page == out / "index.html"
    assert not (out / "units" / "old.html").exists()
    assert "No formula is proved" in page.read_text()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a report"):
        build_report([runs.beam], mine)
    assert (mine / "thesis.tex").read_text() == "years of work"


def test_units_in_memory_have_a_report_without_pictures(tmp_path: Path):
    table = small_table()
    bitmaps = np.random.default_rng(0).random((3, 10, 6, 6)) < 0.3
    bitmaps[2] = False  # a unit that is nowhere active fails
    source = BitmapUnits(table, bitmaps)
    run = explain_layer(tmp_path / "run", source, ox.Optimal(length=2))
    page = build_report([run], tmp_path / "out")
    assert "No pictures" in page.read_text()
    assert "cannot be opened again" in (tmp_path / "out/units/0.html").read_text()
    assert "could not be explained" in (tmp_path / "out/units/2.html").read_text()
    page = build_report([run], tmp_path / "out", sources={run.path: source})
    assert "Step by step" in (tmp_path / "out/units/0.html").read_text()
    assert "unique" in (tmp_path / "out/units/0.html").read_text()


def test_runs_that_are_not_done_yet(tmp_path: Path):
    source = BitmapUnits(small_table(), np.random.default_rng(0).random((4, 10, 6, 6)) < 0.3)
    one = explain_layer(tmp_path / "one", source, ox.Optimal(length=2), units=[0])
    other = explain_layer(tmp_path / "other", source, ox.NetDissect(), units=[3])
    text = build_report([one, other], tmp_path / "out").read_text()
    assert "Not compared" in text
    RunStore.create(tmp_path / "new", one.asked, inputs=None).close()
    text = build_report([tmp_path / "new"], tmp_path / "out").read_text()
    assert "No unit is explained yet; 1 were asked for" in text


def test_a_photograph_that_cannot_be_read_costs_the_pictures_only(tmp_path: Path):
    runs = make_runs(tmp_path)
    (photo, *_) = sorted((tmp_path / "data/images").iterdir())
    held = photo.stat()
    photo.write_bytes(b"x" * held.st_size)
    os.utime(photo, ns=(held.st_atime_ns, held.st_mtime_ns))
    page = build_report([runs.optimal], tmp_path / "out")
    assert "No pictures" in page.read_text()
    assert photo.name in page.read_text()
    test_every_link_leads_to_a_file(tmp_path / "out")


def test_several_layers_have_an_index(runs: ReportRuns, tmp_path: Path):
    source = BitmapUnits(small_table(), np.random.default_rng(0).random((2, 10, 6, 6)) < 0.3)
    other = explain_layer(tmp_path / "other", source, ox.NetDissect())
    page = build_report([runs.optimal, other, runs.beam], tmp_path / "out")
    assert "2 layers are explained" in page.read_text()
    links = re.findall(r'href="([^"]+index.html)"', page.read_text())
    assert links == ["1-layer-conv-of-b-net-b/index.html", "2-other/index.html"]
    test_every_link_leads_to_a_file(tmp_path / "out")


def test_the_threshold_is_a_setting(runs: ReportRuns, tmp_path: Path):
    build_report([runs.optimal], tmp_path / "out", ReportSettings(threshold=1.0))
    assert "IoU below 1" in (tmp_path / "out/units/0.html").read_text()
    with pytest.raises(ValueError, match="0 to 1"):
        ReportSettings(threshold=4.0)


def test_the_command(runs: ReportRuns, tmp_path: Path, capsys, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "out"
    words = ["report", str(runs.optimal.path), str(runs.beam.path), "--out", str(out), "--open"]
    assert cli.main(words) == 0
    assert f"{out / 'index.html'} shows {2 * N_UNITS} units of 2 runs" in capsys.readouterr().out
    assert opened == [(out / "index.html").as_uri()]
    assert cli.main(["report", str(tmp_path / "none")]) == 1
    assert "There is no run" in capsys.readouterr().err


def test_the_wheel_holds_the_libraries_and_their_licences(tmp_path: Path):
    build = pytest.importorskip("hatchling.builders.wheel")
    (wheel,) = build.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    held = set(zipfile.ZipFile(wheel).namelist())
    for name in VENDORED:
        assert f"optexp_jax/report/static/{name}" in held
    templates = {path.name for path in (ROOT / "optexp_jax/report/templates").iterdir()}
    assert {f"optexp_jax/report/templates/{name}" for name in templates} <= held
