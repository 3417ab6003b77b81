"""`optexp data`, run in this process, and the sheets that it draws."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.download_server import Server, server, sha256
from helpers.support import as_users_run_it
from PIL import Image

from optexp_jax import ConceptTable, Formula, cli
from optexp_jax.cli import data_build, data_info, data_show
from optexp_jax.datasets import DatasetSpec, image_of
from optexp_jax.datasets import download as downloads
from optexp_jax.datasets.contact_sheet import (
    OUTLINE,
    SheetSettings,
    contact_sheet,
    samples_holding,
    spread_over,
)
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.datasets.shapes import Shapes

__all__ = ["server"]  # a fixture

BUILD = ["data", "build", "shapes", "--option", "n=6", "--option", "size=24", "--mask-size", "16"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data") / "shapes.zarr"
    with as_users_run_it():
        assert cli.main([*BUILD, "--out", str(out), "--add", "position"]) == 0
    return out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main([*map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    capsys.readouterr()
    assert cli.main([*map(str, arguments)]) == code
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "shapes.zarr"
    told = run_json(capsys, *BUILD, "--out", out, "--add", "position")
    table = ConceptTable.load(out)
    assert told["fingerprint"] == table.fingerprint
    assert told["concepts"] == table.n_concepts == 95 + 6
    assert (told["samples"], told["locations"]) == (6, 6 * 16 * 16)
    assert told["mask_shape"] == [16, 16]
    assert told["skipped"] == []
    assert read_provenance(out).spec == DatasetSpec.parse("shapes:n=6,size=24,add=position")
    assert "exists" in fails(capsys, 1, *BUILD, "--out", out)
    other = run_json(capsys, *BUILD, "--out", out, "--overwrite", "--mask-size", "8x4")
    assert other["mask_shape"] == [8, 4]
    assert other["fingerprint"] != told["fingerprint"]


def test_build_takes_a_whole_spec_and_prints_what_it_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "shapes.zarr"
    assert cli.main(["data", "build", "shapes:n=2,size=8", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert repr(ConceptTable.load(out)) in captured.out.splitlines()
    assert "2 generated scenes" in captured.out


def write_folder(root: Path) -> None:
    """Three images with label maps; the second image is damaged."""
    for name in ("images", "labels"):
        (root / name).mkdir(parents=True)
    (root / "labels.csv").write_text("value,name\n0,ground\n1,thing\n")
    for k in range(3):
        labels = np.zeros((6, 8), np.uint8)
        labels[:, k] = 1
        Image.fromarray(labels).save(root / "labels" / f"{k}.png")
        Image.fromarray(np.full((6, 8, 3), 90 * k, np.uint8)).save(root / "images" / f"{k}.png")
    whole = (root / "images" / "1.png").read_bytes()
    (root / "images" / "1.png").write_bytes(whole[:40])


def test_build_from_files_with_a_bad_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    write_folder(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    arguments = ["data", "build", "folder", "--root", "mine", "--add", "colour,position"]
    arguments += ["--mask-size", "3x4", "--out", "t.zarr"]
    said = fails(capsys, 1, *arguments)
    assert "1.png" in said
    assert "--skip-bad" in said
    told = run_json(capsys, *arguments, "--skip-bad")
    assert [skipped["name"] for skipped in told["skipped"]] == ["1.png"]
    assert told["samples"] == 2
    table = ConceptTable.load("t.zarr")
    assert table.mask("black-c")[0].all()
    assert table.mask("thing")[0, :, 0].all()

    info = run_json(capsys, "data", "info", "t.zarr")
    assert [skipped["index"] for skipped in info["provenance"]["skipped"]] == [1]
    (tmp_path / "mine").rename(tmp_path / "moved")
    shown = ["data", "show", "t.zarr", "--concept", "thing", "--out", "thing.png"]
    assert "mine" in fails(capsys, 1, *shown)
    told = run_json(capsys, *shown, "--root", "moved")
    assert [entry["name"] for entry in told["shown"]] == ["0.png", "2.png"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data"], "ACTION"),
        (["data", "fly"], "fly"),
        (["data", "build", "shapes"], "--out"),
        (["data", "build", "shapes", "--out", "t", "--mask-size", "0"], "--mask-size"),
        (["data", "build", "shapes", "--out", "t", "--mask-size", "4x"], "4x"),
        (["data", "build", "shapes", "--out", "t", "--workers", "0"], "--workers"),
        (["data", "build", "shapes", "--out", "t", "--add", "colour,smell"], "smell"),
        (["data", "build", "shapes", "--out", "t", "--option", "n"], "NAME=VALUE"),
        (["data", "show", "t"], "--concept"),
        (["data", "show", "t", "--concept", "a", "--formula", "a"], "--formula"),
        (["data", "info"], "TABLE"),
        (["data", "download", "imagenet", "--to", "."], "imagenet"),
        (["data", "download", "broden1_224"], "--to"),
        (["data", "download", "broden1_224", "--to", ".", "--sha256", "12"], "--sha256"),
    ],
)
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], named: str):
    said = fails(capsys, 2, *arguments)
    assert named in said
    assert "--help" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["build", "shaped", "--out", "t.zarr"], "Did you mean 'shapes'"),
        (["build", "shapes", "--option", "m=3", "--out", "t.zarr"], "no option 'm'"),
        (["build", "shapes", "--option", "n=0", "--out", "t.zarr"], "n is 0"),
        (["build", "shapes", "--add", "colour", "--out", "t.zarr"], "'colour' cannot be added"),
        (["build", "broden", "--out", "t.zarr"], "broden"),
        (["build", "broden", "--root", "nowhere", "--out", "t.zarr"], "nowhere"),
        (["build", "folder:a", "--root", "b", "--out", "t.zarr"], "given twice"),
        (["info", "none.zarr"], "none.zarr"),
        (["show", "none.zarr", "--concept", "a"], "none.zarr"),
    ],
)
def test_failures_are_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    named: str,
):
    monkeypatch.chdir(tmp_path)
    assert named in fails(capsys, 1, "data", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["", "build", "info", "show", "download"])
def test_help_shows_an_example_that_parses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, action: str
):
    assert cli.main(["data", *action.split(), "--help"]) == 0
    (example,) = [
        line.removeprefix("example: optexp ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("example: optexp data")
    ]
    for module, name in (
        (data_build, "_spec"),
        (data_info, "ConceptTable"),
        (data_show, "ConceptTable"),
        (downloads, "download"),
    ):
        monkeypatch.setattr(module, name, NotRun())
    assert "not run, only parsed" in fails(capsys, 1, *example.split())


class NotRun:
    """Stands for whatever an action would call."""

    def __call__(self, *_: object, **__: object) -> None:
        raise ValueError("not run, only parsed")

    def __getattr__(self, name: str) -> "NotRun":
        return self


def test_info(built: Path, capsys: pytest.CaptureFixture[str]):
    told = run_json(capsys, "data", "info", built, "--top", "3", "--verify")
    table = ConceptTable.load(built)
    assert told["fingerprint"] == table.fingerprint
    assert sum(count["n_concepts"] for count in told["categories"]) == table.n_concepts
    assert sum(count["n_empty"] for count in told["categories"]) == np.count_nonzero(
        table.concept_sizes == 0
    )
    for concept in told["largest"] + told["smallest"]:
        mask = table.mask(concept["name"])
        assert concept["n_locations"] == np.count_nonzero(mask)
        assert concept["n_samples"] == np.count_nonzero(mask.any(axis=(1, 2)))
    sizes = np.sort(table.concept_sizes[table.concept_sizes > 0])
    assert [concept["n_locations"] for concept in told["smallest"]] == sizes[:3].tolist()
    assert [concept["n_locations"] for concept in told["largest"]] == sizes[::-1][:3].tolist()
    assert told["provenance"]["dataset"] == "shapes:n=6,size=24,add=position"

    assert cli.main(["data", "info", str(built), "--top", "3"]) == 0
    printed = capsys.readouterr().out
    assert repr(table) in printed.splitlines()
    assert "shapes:n=6,size=24,add=position" in printed
    for concept in told["largest"] + told["smallest"]:
        assert concept["name"] in printed
    assert "\x1b" not in printed


def test_info_of_a_table_of_another_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    counts = ConceptTable.from_signatures([[0], [0, 1]], [2, 3], ["[bold]", ""])
    counts.save(tmp_path / "t.zarr")
    assert run_json(capsys, "data", "info", tmp_path / "t.zarr")["provenance"] is None
    assert cli.main(["data", "info", str(tmp_path / "t.zarr")]) == 0
    printed = capsys.readouterr().out
    assert "does not say" in printed
    assert "[bold]" in printed


def test_show(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "sheet.png"
    told = run_json(
        capsys, "data", "show", built, "--concept", "top-p", "--out", out, "--count", "3"
    )
    assert told["samples_holding"] == 6
    assert [shown["name"] for shown in told["shown"]] == [f"scene-00000{k}" for k in range(3)]
    assert {shown["locations"] for shown in told["shown"]} == {6 * 16}
    with Image.open(out) as sheet:
        assert sheet.size == (3 * (224 + 8) + 8, 224 + 16 + 8 + 16 + 2 * 8)


def test_show_formulas_and_default_names(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    table = ConceptTable.load(built)
    formula = Formula.parse("plain-t AND NOT top-p", table)
    told = run_json(capsys, "data", "show", built, "--formula", "plain-t AND NOT top-p", "--spread")
    areas = table.mask(formula).sum(axis=(1, 2))
    assert [shown["locations"] for shown in told["shown"]] == sorted(areas, reverse=True)
    (picture,) = tmp_path.iterdir()
    assert picture.name == told["out"] == "plain-t_AND_NOT_top-p.png"


def test_show_by_a_first_synonym(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    root = tmp_path / "mine"
    for folder, value in (("images", 90), ("labels", 1)):
        (root / folder).mkdir(parents=True)
        Image.fromarray(np.full((8, 8), value, np.uint8)).save(root / folder / "a.png")
    (root / "labels.csv").write_text('value,name\n1,"car, auto"\n2,"pole, post"\n3,"pole, rod"\n')
    built = tmp_path / "t.zarr"
    run_json(capsys, "data", "build", f"folder:{root}", "--out", built)
    for way in ("--concept", "--formula"):
        told = run_json(capsys, "data", "show", built, way, "car", "--out", tmp_path / "car.png")
        assert told["formula"] == '"car, auto"'
        said = fails(capsys, 1, "data", "show", built, way, "pole")
        assert 'several concepts are called pole: "pole, post", "pole, rod"' in said


def test_show_refuses(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert "did you mean top-p" in fails(capsys, 1, "data", "show", built, "--concept", "top")
    never = "top-p AND bottom-p"
    assert "holds nowhere" in fails(capsys, 1, "data", "show", built, "--formula", never)
    ConceptTable.from_masks(np.ones((1, 2, 3, 3), bool), ["a"]).save("t.zarr")
    assert "does not say" in fails(capsys, 1, "data", "show", "t.zarr", "--concept", "a")


def test_sheets_mark_the_place(built: Path):
    table, dataset = ConceptTable.load(built), Shapes(6, size=24)
    formula = Formula.concept("top-p")
    sheet = contact_sheet(
        table,
        formula,
        samples_holding(table, formula)[:1],
        image=lambda sample: image_of(dataset, sample),
        name=str,
        settings=SheetSettings(columns=1, tile=160),
    )
    tile = np.asarray(sheet)[32 : 32 + 160, 8 : 8 + 160].astype(int)
    height = 6 * 160 // 16  # the third of 16 rows, rounded up, at ten pixels a row
    outlined = (tile == OUTLINE).all(axis=2)
    assert outlined[height - 2 : height].all()
    assert not outlined[height:].any()
    assert not outlined[: height - 2, 2:-2].any()
    original = np.repeat(np.repeat(image_of(dataset, 0), 7, 0), 7, 1)[:160, :160]
    assert tile[: height - 2].mean() == pytest.approx(original[: height - 2].mean(), abs=6)
    assert tile[height + 1 :].mean() < 0.7 * original[height + 1 :].mean()


def test_samples_are_ordered_by_area():
    masks = np.zeros((1, 5, 4), bool)
    for sample, area in enumerate([1, 3, 0, 4, 3]):
        masks[0, sample, :area] = True
    table = ConceptTable.from_masks(masks, ["a"])
    holding = samples_holding(table, Formula.concept("a"))
    assert [(h.sample, h.n_locations) for h in holding] == [(3, 4), (1, 3), (4, 3), (0, 1)]
    assert [h.sample for h in spread_over(holding, 2)] == [3, 0]
    assert spread_over(holding, 9) == holding


def test_wide_images_and_long_names(tmp_path: Path):
    table = ConceptTable.from_masks(np.ones((1, 1, 2, 2), bool), ["a"])
    sheet = contact_sheet(
        table,
        Formula.concept("a"),
        samples_holding(table, Formula.concept("a")),
        image=lambda _: np.zeros((50, 400, 3), np.uint8),
        name=lambda _: "a/very/long/name/" * 9 + "end.png",
        settings=SheetSettings(tile=200),
    )
    assert sheet.size == (200 + 16, 25 + 16 + 8 + 16 + 16)


def test_download(tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Server):
    arguments = ["data", "download", "broden1_224", "--to", tmp_path, "--url", server.url]
    told = run_json(capsys, *arguments)
    assert told["sha256"] == sha256(server.content)
    assert not told["verified"]
    assert (Path(told["folder"]) / "index.csv").exists()
    assert cli.main([*map(str, arguments), "--sha256", told["sha256"]]) == 0
    printed = capsys.readouterr().out
    assert f"sha256 {told['sha256']} (as expected)" in printed
    assert f"optexp data build broden --root {tmp_path / 'broden1_224'}" in printed
    assert "does not match" in fails(capsys, 1, *arguments, "--sha256", "0" * 64)


@pytest.mark.parametrize("name", ["ade20k", "cityscapes"])
def test_datasets_that_need_a_registration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
):
    assert cli.main(["data", "download", name, "--to", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("1. Register at https://")
    assert f"optexp data build {name}" in captured.out
    assert "registered users" in captured.err
    assert cli.main(["data", "download", name, "--to", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["downloaded"] is False


@pytest.mark.slow
def test_the_command_itself_works_with_workers(tmp_path: Path):
    command = [sys.executable, "-m", "optexp_jax.cli", "data", "build", "shapes:n=100,size=16"]
    command += ["--out", str(tmp_path / "t.zarr"), "--workers", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout)["samples"] == 100
    assert done.stderr == ""
