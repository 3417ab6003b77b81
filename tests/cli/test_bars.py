"""Progress where there is no terminal: a line every few seconds, and none for quick work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from optexp_jax import cli
from optexp_jax.cli import bars
from optexp_jax.cli.bars import ProgressLines, bar


def clock(*times: float) -> Iterator[float]:
    yield from times


@pytest.mark.parametrize(
    ("in_bytes", "line"),
    [
        (False, "Reading: 50 of 200 (25%), 6 s, about 18 s left"),
        (True, "Reading: 0.0 MB of 0.0 MB (25%), 6 s, about 18 s left"),
    ],
)
def test_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str], in_bytes: bool, line: str):
    ticks = clock(0.0, 1.0, 6.0, 10.9, 11.0)
    tell = ProgressLines("Reading", in_bytes, lambda: next(ticks))
    tell(10, 200)
    assert capsys.readouterr().err == ""
    tell(50, 200)
    assert capsys.readouterr().err == f"{line}\n"
    tell(90, 200)
    assert capsys.readouterr().err == ""
    tell(100, None)
    assert capsys.readouterr().err.endswith(", 11 s\n")


def test_quiet_work_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bars, "LINE_EVERY", 0.0)
    with bar("Reading", quiet=True) as tell:
        tell(1, 2)
    assert capsys.readouterr().err == ""
    with bar("Reading") as tell:
        tell(1, 2)
    assert capsys.readouterr().err.startswith("Reading: 1 of 2 (50%)")


def test_tables_and_activations_tell_their_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("torch")
    monkeypatch.setattr(bars, "LINE_EVERY", 0.0)
    monkeypatch.chdir(tmp_path)
    build = ["data", "build", "shapes", "--option", "n=4", "--mask-size", "28", "--out", "t.zarr"]
    assert cli.main(build) == 0
    assert "Reading samples: 4 of 4 (100%)" in capsys.readouterr().err
    record = ["activations", "--model", "demo", "--layer", "conv4", "--data", "t.zarr"]
    assert cli.main([*record, "--out", "a.zarr"]) == 0
    assert "Recording activations: 4 of 4 (100%)" in capsys.readouterr().err
