"""The command line, run in this process: exit codes, what goes to stdout and stderr, JSON."""

import jax
import pytest

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli import demo


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
    monkeypatch.setattr(demo, "make_demo", _fail_with(ValueError("not run, only parsed")))
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


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, FileNotFoundError, MemoryError, KeyboardInterrupt]
)
def test_failures_have_no_traceback(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
):
    monkeypatch.setattr(demo, "make_demo", _fail_with(kind("something\nis wrong")))
    assert cli.main(["demo"]) == (130 if kind is KeyboardInterrupt else 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert kind is KeyboardInterrupt or "something is wrong" in captured.err


def test_a_device_without_memory_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    error = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory\nallocating 9 GB")
    monkeypatch.setattr(demo, "make_demo", _fail_with(error))
    assert cli.main(["demo"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "out of memory" in line


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo, "make_demo", _fail_with(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["demo"])


def _fail_with(error: BaseException):
    def fail(*_: object):
        raise error

    return fail
