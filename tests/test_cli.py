"""The command line, run in this process: exit codes, what goes to stdout and stderr, JSON."""

import json
from typing import Any

import numpy as np
import pytest

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.demo import make_demo


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_version(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"optexp {ox.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help_shows_an_example_that_parses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
):
    assert cli.main(arguments) == 0
    (example,) = [
        line.removeprefix("example: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("example: ")
    ]
    command, *rest = example.split()
    assert command == "optexp"
    monkeypatch.setattr(cli.demo, "make_demo", _fail_with(ValueError("not run, only parsed")))
    assert cli.main(rest) == 1
    assert "not run, only parsed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["demo", "--length", "0"], "--length"),
        (["demo", "--length", "three"], "three"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", "1.5"], "1.5"),
        (["demo", "--wrong"], "--wrong"),
        (["demo", "extra"], "extra"),
    ],
)
def test_bad_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert named in line
    assert "--help" in line


@pytest.mark.parametrize("kind", [ValueError, TypeError, FileNotFoundError, KeyboardInterrupt])
def test_failures_have_no_traceback(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
):
    monkeypatch.setattr(cli.demo, "make_demo", _fail_with(kind("something\nis wrong")))
    assert cli.main(["demo"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert kind is KeyboardInterrupt or "something is wrong" in captured.err


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli.demo, "make_demo", _fail_with(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["demo"])


def _fail_with(error: BaseException):
    def fail(*_: object):
        raise error

    return fail


def test_demo_json_recomputes(capsys: pytest.CaptureFixture[str]):
    shown = run_json(capsys, "demo", "--seed", "3")
    demo = make_demo(3)
    assert shown["table"]["concepts"] == list(demo.table.names)
    assert len(shown["neurons"]) == len(demo.neurons) >= 5
    masks = {name: demo.table.mask(name) for name in demo.table.names}
    for entry, neuron in zip(shown["neurons"], demo.neurons, strict=True):
        assert entry["active"] == np.count_nonzero(neuron.bitmap)
        for found in (entry["single"], entry["best"]):
            mask = ox.Formula.parse(found["formula"], demo.table).evaluate(masks)
            assert found["intersection"] == np.count_nonzero(mask & neuron.bitmap)
            assert found["union"] == np.count_nonzero(mask | neuron.bitmap)
            assert found["iou"] == found["intersection"] / found["union"]
            assert found["status"] == "optimal"
            assert found["upper_bound"] == found["iou"]
        best_concept = max(overlap(mask, neuron.bitmap) for mask in masks.values())
        assert entry["single"]["iou"] == best_concept
        assert entry["best"]["iou"] >= best_concept
        if len(neuron.built_from) <= 3:
            assert entry["best"]["iou"] >= overlap(neuron.built_from.evaluate(masks), neuron.bitmap)


def overlap(mask: np.ndarray, bitmap: np.ndarray) -> float:
    return np.count_nonzero(mask & bitmap) / np.count_nonzero(mask | bitmap)


def test_demo_finds_what_the_neurons_were_built_from(capsys: pytest.CaptureFixture[str]):
    neurons = run_json(capsys, "demo")["neurons"]
    built = [ox.Formula.parse(entry["built_from"]) for entry in neurons]
    found = [ox.Formula.parse(entry["best"]["formula"]) for entry in neurons]
    short = [k for k, formula in enumerate(built) if len(formula) <= 3]
    assert short != list(range(len(built))), "one neuron must need more than three concepts"
    assert [found[k] for k in short] == [built[k] for k in short]


def test_length_limits_the_formulas(capsys: pytest.CaptureFixture[str]):
    neurons = run_json(capsys, "demo", "--length", "2")["neurons"]
    lengths = {len(ox.Formula.parse(entry["best"]["formula"])) for entry in neurons}
    assert lengths == {1, 2}


def test_demo_is_determined_by_its_seed(capsys: pytest.CaptureFixture[str]):
    first, again, other = (
        run_json(capsys, "demo", "--length", "1", "--seed", seed) for seed in ("5", "5", "6")
    )
    assert first == again
    assert first["neurons"] != other["neurons"]


def test_demo_table_is_plain_when_piped(capsys: pytest.CaptureFixture[str]):
    shown = run_json(capsys, "demo", "--length", "2")
    assert cli.main(["demo", "--length", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "", "a progress bar belongs on a terminal only"
    assert "\x1b" not in captured.out
    lines = captured.out.splitlines()
    for entry in shown["neurons"]:
        (row,) = [line for line in lines if line.startswith(entry["neuron"])]
        assert entry["built_from"] in row
        assert entry["best"]["formula"] in row
        assert f"{entry['best']['iou']:.3f}" in row
        assert "optimal" in row
    assert repr(make_demo(0).table) in lines
    assert "README" in lines[-1]
