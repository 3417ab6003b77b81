"""`optexp explain` and `optexp results`: options, configuration files, displays, exit codes."""

import dataclasses
import io
import json
import logging
import sys
import typing
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from helpers.run_cases import rows_without_times, stored_layer
from rich.console import Console

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli.explain_options import GROUPS, THE_METHOD
from optexp_jax.cli.fields import fields_in, read_fields
from optexp_jax.cli.methods import (
    FAMILIES,
    METHODS,
    NOT_OPTIONS,
    make_method,
    starting_method,
)
from optexp_jax.cli.options import make_option
from optexp_jax.cli.progress import LiveDisplay, PlainLines
from optexp_jax.cli.values import CONVERTERS, SHOWN_DEFAULTS, parse_bounds, parse_operators
from optexp_jax.runs import Counts, Run, UnitResult, explain_layer
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.settings import find_class
from optexp_jax.runs.task import UnitProgress


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> StoredLayer:
    return stored_layer(tmp_path_factory.mktemp("layer"), 6)


def explain(layer: StoredLayer, run: Path, *options: str) -> int:
    arguments = ["--table", layer.table, "--activations", layer.activations]
    return cli.main(["explain", *arguments, "--range", layer.range, "--run", str(run), *options])


def test_a_layer_by_command_is_the_layer_in_python(
    layer: StoredLayer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert (
        explain(layer, tmp_path / "run", "--length", "2", "--top-k", "2", "--units", "1-3,5") == 0
    )
    captured = capsys.readouterr()
    assert captured.out.startswith("4 units explained. Show them: optexp results")
    lines = captured.err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "[1/4] unit 1",
        "[2/4] unit 2",
        "[3/4] unit 3",
        "[4/4] unit 5",
    ]
    assert "\x1b" not in captured.err
    method = ox.Optimal(length=2, top_k=2)
    run = explain_layer(tmp_path / "python", layer, method, units=[1, 2, 3, 5])
    assert cli.main(["results", str(tmp_path / "run"), "--json"]) == 0
    shown = capsys.readouterr().out
    assert cli.main(["results", str(run.path), "--json"]) == 0
    assert rows_without_times(shown) == rows_without_times(capsys.readouterr().out)
    stored = json.loads(shown)
    assert stored["configuration"] == run.configuration
    assert stored["origin"]["key"]["weights"], "the checksum of the weights is kept"
    assert stored["sessions"][0]["versions"]["jax"]
    assert cli.main(["results", str(run.path)]) == 0
    table = capsys.readouterr().out
    for row in run.rows():
        assert row["formula"] in table
    assert "4 units explained, 0 failed, 0 left" in table
    assert cli.main(["results", str(run.path), "--csv", str(tmp_path / "no" / "a.csv")]) == 1
    assert f"no folder {tmp_path / 'no'} for a.csv" in capsys.readouterr().err


def test_the_same_command_goes_on_and_another_is_refused(
    layer: StoredLayer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    options = ("--method", "netdissect", "--units", "0-2")
    assert explain(layer, tmp_path / "run", *options, "-q") == 0
    assert capsys.readouterr().err == ""
    assert explain(layer, tmp_path / "run", *options) == 0
    assert capsys.readouterr().err == "going on: 3 of 3 units done already\n"
    assert explain(layer, tmp_path / "run", "--method", "netdissect") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "units was [0, 1, 2] and is now [0, 1, 2, 3, 4, 5]" in line
    assert cli.main(["explain", "--run", str(tmp_path / "run"), "-q"]) == 0
    assert Run(tmp_path / "run").counts.done == 3


def test_options_may_stand_in_a_file(
    layer: StoredLayer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    config = tmp_path / "layer.toml"
    config.write_text(
        f'table = "{layer.table}"\nactivations = "{layer.activations}"\nrange = "{layer.range}"\n'
        f'run = "{tmp_path / "run"}"\nmethod = "vanilla"\nlength = 2\nunits = [0, 2]\nsize = 3\n'
        "null = 3\nnull_shift = true\n"
    )
    assert cli.main(["explain", "--config", str(config), "--length", "1", "-q", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["configuration"]
    assert shown["units"] == [0, 2]
    assert shown["method"]["length"] == 1, "the command line is over the file"
    assert shown["method"]["size"] == 3
    assert shown["method"]["guide"] is None
    assert shown["null"] == {
        "class": "optexp_jax:NullModel",
        "n": 3,
        "shift": True,
        "seed": 0,
        "stop": None,
    }
    for wrong, named in (("lenght = 2", "Did you mean length?"), ("length = 'x'", "whole number")):
        config.write_text(wrong)
        assert cli.main(["explain", "--config", str(config)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line
    config.write_text("length = ")
    assert cli.main(["explain", "--config", str(config)]) == 1
    assert "not a TOML file" in capsys.readouterr().err


def test_log_records_as_json(
    layer: StoredLayer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert explain(layer, tmp_path / "run", "--method", "netdissect", "--log-json") == 0
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.err.splitlines()]
    assert [record["unit"] for record in records if record["message"] == "unit done"] == [*range(6)]
    assert {record["level"] for record in records} == {"info"}
    assert captured.out == ""
    assert logging.getLogger("optexp_jax").level == logging.NOTSET


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["--method", "magic"], 2, "magic"),
        (["--length", "two"], 2, "whole number"),
        (["--bounds", "loose"], 2, "tight, paper or module:Class"),
        (["--bounds", "os:getcwd"], 2, "not a class"),
        (["--bounds", "io:StringIO"], 2, "not a family of bounds"),
        (["--operators", "OR,XOR"], 2, "XOR"),
        (["--operators", "helpers.run_cases:NAMES"], 2, "not an Operator"),
        (["--operators", "or,OR"], 2, "two operators are named OR"),
        (["--bounds", "papr"], 2, "Did you mean paper?"),
        (
            ["--no-bounds-rewriting"],
            1,
            "not a setting of the bounds tight; it goes with",
        ),
        (["--bounds", "paper", "--bounds-beam", "3"], 1, "it goes with --bounds tight"),
        (["--method", "beam", "--no-bounds-rewriting"], 1, "it is one of optimal"),
        (["--max-nodes", "0"], 1, "--max-nodes must be a whole number"),
        (["--top-k", "2", "--within", "0.1"], 1, "Ask for the --top-k formulas"),
        (["--method", "beam", "--top-k", "2"], 1, "--top-k is not a setting of beam; it is one"),
        (["--length", "0"], 1, "--length must be a whole number"),
        (["--units", "3-1"], 1, "ends before it begins"),
        (["--units", "7"], 1, "no unit 7"),
        (["--units", "1", "--random", "2"], 1, "not both"),
        (["--null-seed", "1"], 1, "go with --null"),
        (["--workers", "0"], 1, "at least one worker"),
        (["--workers", "1", "--scheduler", "x"], 1, "not several"),
        (["--model", "demo"], 1, "--activations, or with --model"),
    ],
)
def test_bad_options_are_one_line(
    layer: StoredLayer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    named: str,
):
    assert explain(layer, tmp_path / "run", *options) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line
    assert not (tmp_path / "run").exists(), "nothing was begun"


def test_missing_inputs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["explain"]) == 1
    assert "--table" in capsys.readouterr().err
    assert cli.main(["explain", "--table", "no.zarr", "--activations", "no2.zarr"]) == 1
    assert "nothing at no.zarr" in capsys.readouterr().err
    assert cli.main(["results", str(tmp_path)]) == 1
    assert "no run at" in capsys.readouterr().err


def test_options_are_those_of_the_methods():
    names = {option.name for option in GROUPS[THE_METHOD]}
    for method in METHODS:
        fields = {field.name for field in dataclasses.fields(starting_method(method))}
        assert fields - {"callback", "guide"} <= names
    made = make_method("optimal", {"bounds": parse_bounds("paper"), "gap": 0.5})
    assert made == ox.Optimal(bounds=ox.PaperBounds(), gap=0.5)
    assert make_method("vanilla", {"size": 2}) == ox.Beam(size=2, guide=None)
    assert parse_operators("or, and_not") == (ox.OR, ox.AND_NOT)
    assert parse_bounds("optexp_jax.bounds:PaperBounds") == ox.PaperBounds()
    given = {"bounds": ox.PaperBounds(), "bounds_rewriting": False, "bounds_discards": False}
    bounds = ox.PaperBounds(rewriting=False, discards=False)
    assert make_method("optimal", given) == ox.Optimal(bounds=bounds)
    assert make_method("optimal", {"bounds_beam": 3}) == ox.Optimal(bounds=ox.TightBounds(beam=3))


OWN = """
import optexp_jax as ox
from optexp_jax.bounds import PublishedVectors

XOR = ox.Operator("XOR", p=True, q=True, r=False)

class Mine(ox.PaperBounds):
    pass

class Vectors(PublishedVectors):
    pass
"""


def test_code_of_ones_own_is_found_in_the_current_folder(
    layer: StoredLayer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    (tmp_path / "own_code_here.py").write_text(OWN)
    (tmp_path / "jax.py").write_text("raise RuntimeError('the wrong one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    options = ("--operators", "or,and,own_code_here:XOR", "--units", "0", "--length", "2")
    own = ("--bounds", "own_code_here:Mine", "--no-bounds-rewriting")
    vectors = ("--bounds-vectors", "own_code_here:Vectors")
    assert explain(layer, tmp_path / "run", *options, *own, *vectors, "-q") == 0
    assert capsys.readouterr().out.startswith("1 unit explained. ")
    method = Run(tmp_path / "run").configuration["method"]
    assert method["operators"][2] == {"operator": {"name": "XOR", "bits": [1, 1, 0]}}
    assert method["bounds"]["class"] == "own_code_here:Mine"
    assert method["bounds"]["rewriting"] is False
    assert method["bounds"]["vectors"]["class"] == "own_code_here:Vectors"
    assert sys.path[-1] == str(tmp_path), "it comes last: no file there hides an installed module"
    assert cli.main(["explain", "--run", "run", "-q"]) == 1
    assert "pass --allow own_code_here:" in capsys.readouterr().err
    allowed = "own_code_here:Mine,own_code_here:Vectors"
    assert cli.main(["explain", "--run", "run", "-q", "--allow", allowed]) == 0
    assert cli.main(["verify", "run", "--allow", allowed]) == 0
    assert "1 unit checked, 1 optimum re-proved, 0 wrong" in capsys.readouterr().out


def test_a_run_alone_does_not_have_the_current_folder_searched(
    layer: StoredLayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert explain(layer, tmp_path / "run", "--units", "0", "--method", "netdissect", "-q") == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert cli.main(["explain", "--run", "run", "-q"]) == 0
    assert cli.main(["verify", "run"]) == 0
    assert str(tmp_path) not in sys.path


def test_options_are_what_the_classes_say():
    named = {*METHODS.values(), *FAMILIES.values(), *OTHERS}
    for name in named:
        cls = find_class(name)
        hints = typing.get_type_hints(cls)
        read, real = read_fields(name), dataclasses.fields(cls)
        assert [field.name for field in read] == [field.name for field in real], name
        for field, true in zip(read, real, strict=True):
            if field.name in NOT_OPTIONS:
                continue
            kind = hints[field.name]
            expected = [each for each in (typing.get_args(kind) or [kind]) if each is not NoneType]
            assert field.kind in (_written(each) for each in [kind, *expected])
            value = None if true.default is dataclasses.MISSING else true.default
            shown = SHOWN_DEFAULTS.get(field.default or "", field.default)
            assert (value is None) == (shown is None), field
            if shown is not None:
                assert CONVERTERS[field.kind](shown) == value, field


OTHERS = (
    "optexp_jax.cli.inputs:LayerInputs",
    "optexp_jax.runs.selection:UnitChoice",
    "optexp_jax.runs.null:NullModel",
    "optexp_jax.cli.explaining:Execution",
)


def _written(kind: Any) -> str:
    return (
        kind.__name__ if isinstance(kind, type) else str(kind).replace(f"{ox.OR.__module__}.", "")
    )


def test_help_comes_from_what_is_written_about_fields():
    source = '''
class Settings:
    """How to do it. The `depth` is how deep."""

    depth: int = 3
    name: str | None = None
    """Whose it is."""
'''
    depth, name = (make_option(field, field.name) for field in fields_in(source, "Settings"))
    assert depth.help == "the depth is how deep (default: 3)"
    assert name.help == "whose it is"
    assert depth.convert("4") == 4
    beam, way = read_fields("optexp_jax.bounds.tight.family:TightBounds")
    assert way.help.startswith("Whether the search goes over")
    assert beam.help.startswith("Labels of each length")


def test_every_option_has_help(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["explain", "--help"]) == 0
    shown = capsys.readouterr().out
    for group in GROUPS.values():
        for option in group:
            assert f"--{option.key}" in shown


FOUND = ox.Explanation(ox.Formula.parse("sea OR sky"), 3, 4, 0.75, ox.Status.OPTIMAL)


def test_the_live_display_shows_the_search():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = LiveDisplay(console)
    display.begin(Counts(waiting=4, claimed=0, done=1, failed=0))
    display.unit_started(3)
    display.unit_progress(UnitProgress(3, "(sea OR sky)", 0.25, 0.5, 1.0))
    display.unit_finished(UnitResult(2, FOUND, seconds=1.0), Counts(2, 1, 2, 0))
    display._live.refresh()
    display.end(Counts(0, 0, 5, 0))
    shown = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    for part in ("2/5", "(sea OR sky)", "0.2500", "0.5000", "100.0%", "unit 2:", "units/s"):
        assert part in shown, part


def test_plain_lines_tell_of_failures(capsys: pytest.CaptureFixture[str]):
    display = PlainLines()
    display.unit_finished(UnitResult(7, error="ValueError:\n never fires"), Counts(0, 1, 2, 1))
    display.waiting(Counts(0, 3, 2, 1))
    assert capsys.readouterr().err.splitlines() == [
        "[3/4] unit 7: failed: ValueError: never fires",
        "waiting for 3 units that other processes work on",
    ]


@pytest.mark.slow
def test_a_model_and_a_dataset_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("torch")
    options = [
        *("explain", "--data", "shapes:n=24", "--mask-size", "28", "--model", "demo"),
        *("--layer", "conv4", "--units", "0-2", "--length", "2", "--run", str(tmp_path / "run")),
    ]
    assert cli.main([*options, "-q"]) == 0, capsys.readouterr().err
    run = Run(tmp_path / "run")
    assert run.counts.total == 3
    assert run.origin["key"]["model"] == "demo"
    assert cli.main([*options, "-q"]) == 0, "table and activations are taken as they are"
    capsys.readouterr()
    options[2] = "shapes:n=25"
    assert cli.main(options) == 1
    assert "was built of" in capsys.readouterr().err
