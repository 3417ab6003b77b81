"""`optexp explain --folds`, `--bootstrap`, `--groups`, and the words auto and noise."""

import csv
import json
from pathlib import Path

import pytest
from helpers.run_cases import shapes_layer, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli.group_labels import labels_of, read_group_file, read_groups
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.runs import OtherImages, Run
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.validation import prefix_groups


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> StoredLayer:
    return stored_layer(tmp_path_factory.mktemp("layer"), 3)


def explain(layer: StoredLayer, run: Path, *options: str) -> int:
    arguments = ["--table", layer.table, "--activations", layer.activations]
    return cli.main(
        ["explain", *arguments, "--range", layer.range, "--run", str(run), "-q", *options]
    )


def write_groups(path: Path) -> Path:
    path.write_text("sample,group\n" + "".join(f"{n},video {n // 2}\n" for n in range(10)))
    return path


def test_everything_at_once_goes_on_and_is_shown(
    layer: StoredLayer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    groups = write_groups(tmp_path / "groups.csv")
    options = ("--length", "auto", "--max-length", "2", "--within", "noise", "--bootstrap", "3")
    more = ("--groups", str(groups), "--null", "5", "--null-stop", "2", "--resample-seed", "1")
    assert explain(layer, tmp_path / "run", *options, *more) == 0
    run = Run(tmp_path / "run")
    assert run.asked.other_images == OtherImages(
        folds=5, bootstrap=3, within="noise", length="auto", seed=1
    )
    assert run.asked.groups == tuple(f"video {n // 2}" for n in range(10))
    assert run.asked.method == ox.Optimal(length=2)
    assert run.asked.null is not None
    assert run.asked.null.stop == 2
    assert explain(layer, tmp_path / "run", *options, *more) == 0
    assert cli.main(["explain", "--run", str(tmp_path / "run"), "-q"]) == 0
    capsys.readouterr()
    assert cli.main(["results", str(tmp_path / "run"), "--no-times"]) == 0
    shown = capsys.readouterr().out
    assert "5 folds, 3 resamples, 5 groups" in shown
    assert "On images that they were not found on, formulas have a mean IoU of" in shown
    assert "each is left out once, in place of bootstraps" in shown
    for word in ("held out", "recurs", "within noise", "p of all", "(Holm)"):
        assert word in shown
    assert cli.main(["results", str(tmp_path / "run"), "--csv", str(tmp_path / "a.csv")]) == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        (first, *_) = csv.DictReader(file)
    assert float(first["held_out_iou"]) == run.rows()[0]["held_out_iou"]
    assert json.loads(first["in_all"]) == run.rows()[0]["in_all"]
    assert cli.main(["verify", str(tmp_path / "run")]) == 0
    assert "searches on folds and resamples done again" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-length", "3"), "--max-length goes with --length auto"),
        (("--resample-seed", "3"), "--resample-seed goes with"),
        (("--groups", "prefix"), "--groups goes with"),
        (("--folds", "1"), "at least two folds"),
        (("--folds", "2", "--groups", "prefix"), "has none. Pass a CSV"),
        (("--folds", "2", "--groups", "no.csv"), "There is no file no.csv"),
        (("--method", "netdissect", "--length", "auto"), "length is not a setting of netdissect"),
        (("--null-stop", "3"), "go with --null N"),
    ],
)
def test_what_makes_no_sense_is_said(
    layer: StoredLayer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    said: str,
):
    assert explain(layer, tmp_path / "run", *options) == 1
    assert said in capsys.readouterr().err


def test_groups_by_prefix_and_by_name(tmp_path: Path):
    table = Path(shapes_layer(tmp_path, 2, n_scenes=6).table)
    names = read_provenance(table).sample_names
    assert read_groups("prefix", table) == prefix_groups(names)
    file = tmp_path / "groups.csv"
    file.write_text("\n".join(f"{name},g{k % 2}" for k, name in enumerate(names)))
    assert read_groups(str(file), table) == tuple(f"g{k % 2}" for k in range(6))


def test_names_are_found_without_their_ending():
    groups = {"0001TP_006690": "0001TP", "b.jpg": "other"}
    assert labels_of(["0001TP_006690.jpg", "b.jpg"], groups, "file") == ["0001TP", "other"]
    with pytest.raises(ValueError, match=r"no group for the sample c\.jpg"):
        labels_of(["c.jpg"], groups, "file")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,c\n", "Line 1"),
        ("sample,group\na\n", "Line 2"),
        ("a,x\na,y\n", "a into x and into y"),
        ("sample,group\n", "names no sample"),
    ],
)
def test_files_of_groups_that_cannot_be_read(tmp_path: Path, text: str, said: str):
    file = tmp_path / "groups.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_group_file(file)
