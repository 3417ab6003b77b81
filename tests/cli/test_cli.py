"""The command line, run in this process: exit codes, what goes to stdout and stderr, JSON."""

import subprocess
import sys
from pathlib import Path

import jax
import pytest

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli import demo
from optexp_jax.cli.failures import in_option_spelling, plural

LARGE = ["jax", "equinox", "torch", "zarr", "pandas", "numpy", "scipy"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["explain", "--help"],
        ["explain", "--lenght", "3"],
        ["layers", "--help"],
        ["activations", "--help"],
        ["models", "convert", "--help"],
        ["bench", "--help"],
        ["fly"],
    ],
)
def test_help_and_mistakes_do_not_wait_for_large_imports(arguments: list[str]):
    code = (
        "import sys\n"
        "from optexp_jax.cli import main\n"
        f"main({arguments!r})\n"
        f"print(*set({LARGE!r}) & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr.splitlines()[-1] == ""


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
        (["explian"], "Did you mean explain? Run `optexp --help`"),
        (["--versoin"], "Did you mean --version? Run `optexp --help`"),
        (["explain", "--lenght", "3"], "no option --lenght. Did you mean --length? Run `optexp ex"),
        (["explain", "--max_nodes=3"], "Did you mean --max-nodes? Run `optexp explain --help`"),
        (["explain", "--len", "3"], "no option --len"),
        (["data", "biuld"], "Did you mean build? Run `optexp data --help`"),
        (["data", "build", "shapes", "--ot", "x"], "Did you mean --out? Run `optexp data build -"),
        (["layers", "demo", "--layout", "nchv"], "Did you mean nchw? Run `optexp layers --help`"),
        (["data", "build", "shapes", "--add", "colours"], "Did you mean colour?"),
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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.toml"), "nothing at x.toml; check"),
        (PermissionError(13, "Permission denied", "x"), "x may not be read or written by you"),
        (IsADirectoryError(21, "Is a directory", "x"), "x is a folder; name a file"),
        (OSError(28, "No space left on device", "x"), "No space is left for x; make room"),
        (OSError(28, "No space is left for it. Make room"), "No space is left for it. Make room."),
        (OSError(121, "Remote I/O error", "x"), "x: Remote I/O error."),
        (ConnectionError("The connection broke."), "The connection broke."),
    ],
)
def test_errors_of_the_system_are_told_in_words(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    said: str,
):
    monkeypatch.setattr(demo, "make_demo", _fail_with(error))
    assert cli.main(["demo"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert "Errno" not in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["results", "NOWHERE"],
        ["verify", "NOWHERE"],
        ["explain", "--run", "NOWHERE"],
        ["explain", "--config", "NOWHERE"],
        ["explain", "--table", "NOWHERE", "--activations", "NOWHERE"],
        ["data", "info", "NOWHERE"],
        ["data", "show", "NOWHERE", "--concept", "sky"],
        ["data", "build", "folder", "--root", "NOWHERE", "--out", "t.zarr"],
        ["data", "build", "arrays", "--root", "NOWHERE", "--out", "t.zarr"],
        ["data", "build", "NOWHERE:photographs", "--out", "t.zarr"],
    ],
)
def test_what_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    assert "NOWHERE" in line
    assert "Errno" not in line
    assert not list(tmp_path.iterdir()), "nothing was made"


def test_runs_that_there_are_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "conv1").mkdir(parents=True)
    (tmp_path / "runs" / "conv1" / "run.sqlite").touch()
    assert cli.main(["results", "runs/conv2"]) == 1
    assert "no such folder. There are runs at runs/conv1." in capsys.readouterr().err


def test_counts_of_one_are_singular():
    assert plural(1, "unit") == "1 unit"
    assert plural(0, "unit") == "0 units"
    assert plural(2, "optimum", "optima") == "2 optima"


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("max_nodes must be 1.", "--max-nodes must be 1."),
        ("length must be 1.", "--length must be 1."),
        ("The length must be 1.", "The length must be 1."),
        ("too long: past max_work=10. Use Optimal", "too long: past --max-work 10. Use Optimal"),
        ("(top_k, length)", "(--top-k, length)"),
        ("other_name must be 1.", "other_name must be 1."),
        ("", ""),
    ],
)
def test_options_are_spelled_as_on_the_command_line(text: str, spelled: str):
    names = ("max_nodes", "max_work", "top_k", "length")
    assert in_option_spelling(text, names) == spelled


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
