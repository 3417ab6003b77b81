"""`optexp results`: the table on the screen, its summary, and files of equal bytes."""

import io
import json
import statistics
from pathlib import Path

import pytest
from helpers.run_cases import memory_layer, stored_layer
from rich.console import Console

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli.result_table import make_table
from optexp_jax.runs import NullModel, Run, UnitResult, explain_layer
from optexp_jax.runs.summary import RunSummary


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("results")
    layer = stored_layer(folder, 5)
    return explain_layer(folder / "run", layer, ox.Optimal(length=2), null=NullModel(3))


def shown(run: Run, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert cli.main(["results", str(run.path), *options]) == 0
    return capsys.readouterr().out.splitlines()


def units(lines: list[str]) -> list[int]:
    return [int(line.split()[0]) for line in lines if line.split()[0].isdigit() and "(" in line]


def test_the_header_says_what_was_explained(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(run.path.parent)
    first, second, titles, *_ = shown(run, capsys)
    assert first == "model array, layer 0, table table.zarr, range range:0.5:"
    assert second == "Optimal, at most 2 concepts, 3 draws of the null model"
    words = "unit formula IoU one concept active precision recall status chance p p of all seconds"
    assert " ".join(titles.split()) == words


def test_each_row_tells_the_figures_of_its_unit(run: Run, capsys: pytest.CaptureFixture[str]):
    lines = shown(run, capsys, "--no-times")
    for row in run.rows():
        (line,) = (line for line in lines if line.split()[0] == str(row["unit"]))
        figures = (
            f"{row['iou']:.4f} {row['single_iou']:.4f} {row['active_share']:.4f} "
            f"{row['precision']:.3f} {row['recall']:.3f} optimal {row['null_mean']:.4f} "
            f"{row['p_value']:.3g} {row['p_family']:.3g}"
        )
        assert line.split()[-9:] == figures.split()
        assert row["formula"] in line


def test_the_summary_is_of_all_units(run: Run, capsys: pytest.CaptureFixture[str]):
    rows = run.rows()
    middle = {
        name: (statistics.fmean(row[name] for row in rows), statistics.median([*of(rows, name)]))
        for name in ("iou", "single_iou", "active_share", "null_mean")
    }
    *_, done, iou, active, chance, corrected = shown(run, capsys, "--top", "2")
    assert done == "5 units explained, 0 failed, 0 left; 5 of 5 formulas proved to be the best"
    (mean, median), (one_mean, one_median) = middle["iou"], middle["single_iou"]
    assert iou == (
        f"IoU: mean {mean:.4f}, median {median:.4f}; "
        f"with one concept: mean {one_mean:.4f}, median {one_median:.4f}"
    )
    mean, median = middle["active_share"]
    assert active == f"active: mean {mean:.4f}, median {median:.4f} of all locations"
    mean, median = middle["null_mean"]
    highest = max(of(rows, "null_highest"))
    above = sum(row["iou"] > row["null_highest"] for row in rows)
    assert chance.startswith(
        f"by chance: mean IoU {mean:.4f}, median {median:.4f}, highest {highest:.4f}; {above} unit"
    )
    assert corrected == (
        "of 5 units 0 have p at most 0.05 by themselves, 0 corrected for their number (max-T), "
        "0 by false discovery rate"
    )


def of(rows: list[dict[str, float]], name: str) -> list[float]:
    return [row[name] for row in rows]


@pytest.mark.parametrize("column", ["iou", "single_iou", "active", "precision", "recall"])
def test_figures_are_sorted_from_the_highest(
    run: Run, capsys: pytest.CaptureFixture[str], column: str
):
    rows = sorted(run.rows(), key=lambda row: (-row[column], row["unit"]))
    assert units(shown(run, capsys, "--sort", column)) == of(rows, "unit")
    lines = shown(run, capsys, "--sort", column, "--top", "2")
    assert units(lines) == of(rows, "unit")[:2]
    assert f"2 of 5 units, by {column}" in lines


def test_without_a_column_the_top_is_by_iou(run: Run, capsys: pytest.CaptureFixture[str]):
    rows = sorted(run.rows(), key=lambda row: -row["iou"])
    assert units(shown(run, capsys, "--top", "3")) == of(rows, "unit")[:3]
    assert units(shown(run, capsys)) == [0, 1, 2, 3, 4]


def test_p_values_and_formulas_are_sorted_from_the_lowest(
    run: Run, capsys: pytest.CaptureFixture[str]
):
    for column in ("p_value", "formula"):
        rows = sorted(run.rows(), key=lambda row: (row[column], row["unit"]))
        assert units(shown(run, capsys, "--sort", column)) == of(rows, "unit")


def test_files_have_all_units(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for options in (["--json"], ["--csv", str(tmp_path / "a.csv")]):
        assert cli.main(["results", str(run.path), "--top", "2", *options]) == 1
        assert "files have all units" in capsys.readouterr().err
    assert cli.main(["results", str(run.path), "--sort", "size"]) == 2
    assert "single_iou" in capsys.readouterr().err


def test_units_that_failed_come_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    layer = memory_layer(3)
    layer.bitmaps[0] = False
    run = explain_layer(tmp_path / "run", layer, ox.NetDissect())
    lines = shown(run, capsys, "--sort", "iou")
    assert lines[0] == "NetDissect"
    assert lines[4].split()[0] == "0"
    assert "never fires" in lines[4]
    assert "2 units explained, 1 failed, 0 left; 2 of 2 formulas proved to be the best" in lines
    assert not any("by chance" in line for line in lines)


def test_a_run_without_results_has_no_figures():
    summary = RunSummary.of([UnitResult(0, error="ValueError: no")])
    assert (summary.explained, summary.failed, summary.proved) == (0, 1, 0)
    assert summary.iou is summary.null_mean is summary.above_draws is None


def test_equal_runs_give_equal_bytes_without_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("pyarrow")
    layer = stored_layer(tmp_path, 4)
    runs = [
        explain_layer(tmp_path / name, layer, ox.Optimal(length=2, top_k=2), null=NullModel(2))
        for name in ("one", "other")
    ]
    files: list[dict[str, bytes]] = []
    for run in runs:
        paths = {kind: tmp_path / f"{run.path.name}.{kind}" for kind in ("csv", "json", "parquet")}
        options = [f"--{kind}={path}" for kind, path in paths.items()]
        assert cli.main(["results", str(run.path), "--no-times", *options]) == 0
        capsys.readouterr()
        assert cli.main(["results", str(run.path), "--no-times"]) == 0
        screen = capsys.readouterr().out.encode()
        files.append({kind: path.read_bytes() for kind, path in paths.items()} | {"": screen})
    assert files[0] == files[1]
    stored = json.loads(files[0]["json"])
    assert set(stored) == {"configuration", "origin", "units"}
    assert "seconds" not in stored["units"][0]
    assert stored["units"][0]["null_highest"] >= stored["units"][0]["null_mean"]
    assert list(runs[0].to_pandas(times=False).columns) == list(stored["units"][0])


@pytest.mark.parametrize(("width", "words"), [(80, ("seconds", "chance")), (100, ()), (140, ())])
def test_figures_are_whole_on_narrow_terminals(run: Run, width: int, words: tuple[str, ...]):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    console.print(make_table(console, run.results, times=True))
    printed = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= width
    for row in run.rows():
        for figure in (f"{row['iou']:.4f}", f"{row['single_iou']:.4f}", f"{row['recall']:.3f}"):
            assert figure in printed
    for word in ("seconds", "chance"):
        assert word not in words or word not in printed
