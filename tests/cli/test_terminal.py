"""Names out of files reach neither a terminal nor a spreadsheet as commands."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from rich.live import Live
from rich.table import Table
from rich.text import Text

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.cli.terminal import EscapingStream, SafeConsole, shown
from optexp_jax.datasets import ArrayDataset, build_table
from optexp_jax.runs import BitmapUnits, explain_layer
from optexp_jax.runs.export import csv_text, text_of_csv

BAD = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\r=1+1"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""What rich itself writes for bold and colours."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    masks = np.zeros((3, 2, 4, 4), bool)
    masks[0, :, :2], masks[1, 0, 1:], masks[2, 1, :, 1:3] = True, True, True
    images = np.zeros((2, 4, 4, 3), np.uint8)
    dataset = ArrayDataset.from_masks(
        images, masks, [BAD, "=cmd", "plain"], [BAD, None, "b"], sample_names=[f"{BAD}1", "s2"]
    )
    path = tmp_path_factory.mktemp("tables") / "t.zarr"
    build_table(dataset, path, mask_shape=(4, 4))
    return path


def check_printed(text: str) -> None:
    bare = COLOURS.sub("", text)
    assert all(c.isprintable() or c == "\n" for c in bare), repr(bare)


@pytest.mark.parametrize("terminal", [False, True])
def test_tables_of_names(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["data", "info", str(table)]) == 0
    printed = capsys.readouterr().out
    check_printed(printed)
    assert "\\u001b" in printed
    assert ("\x1b[" in printed) == terminal


def test_errors_and_usage(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    for arguments in (
        ["data", "show", str(table), "--concept", f"{BAD}?"],
        ["data", "info", str(tmp_path / "a\x1b[2Jb")],
        ["data", "build", f"x\x1b[31m:{BAD}", "--out", str(tmp_path / "t")],
        ["data", "build", "shapes", "--option", BAD, "--out", "t"],
        ["\x1b[31m"],
        ["results", f"{tmp_path}/\x1b[31m"],
    ):
        assert cli.main(arguments) != 0
        printed = capsys.readouterr()
        check_printed(printed.err)
        assert re.search(r"\\u001b|\\x1b", printed.err)


def test_a_live_display_and_prints():
    raw = io.StringIO()
    console = SafeConsole(file=raw, force_terminal=True, width=200)
    shown_table = Table("name")
    shown_table.add_row(Text(BAD))
    with Live(shown_table, console=console, transient=True):
        console.print(BAD, markup=False)
    found = raw.getvalue()
    assert "owned" in found
    assert "\x1b]0" not in found
    assert "\x1b[2J" not in found.replace("\x1b[2K", "")
    assert "\u202e" not in found
    stream = EscapingStream(raw)
    assert stream.write("a\x1bb\n") == 4
    assert raw.getvalue().endswith("a\\u001bb\n")
    assert not stream.isatty()


@examples(100)
@given(st.text())
def test_what_is_shown_prints(text: str):
    assert all(c.isprintable() or c in "\n\t" for c in shown(text))
    if text.isprintable():
        assert shown(text) == text


# Spreadsheets.


@examples(150)
@given(st.one_of(st.text(), st.from_regex(r"\A[=+\-@'\t\r].*", fullmatch=True)))
def test_cells_are_read_back(text: str):
    cell = csv_text(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert text_of_csv(cell) == text


def test_a_run_of_such_names(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = ox.ConceptTable.load(table)
    bitmaps = np.stack([found.mask(name) for name in found.names])
    run = tmp_path / "run"
    explain_layer(run, BitmapUnits(found, bitmaps), ox.NetDissect())
    assert cli.main(["results", str(run)]) == 0
    check_printed(capsys.readouterr().out)
    assert cli.main(["results", str(run), "--csv", str(tmp_path / "r.csv")]) == 0
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["formula"][:2] for row in rows] == ['"\\', "'=", "pl"]
    read = [ox.Formula.parse(text_of_csv(row["formula"]), found) for row in rows]
    assert [formula.concepts for formula in read] == [(name,) for name in found.names]


def test_numbers_stay_numbers():
    assert [csv_text(value) for value in (-1, -0.5, None, True)] == [-1, -0.5, None, True]
