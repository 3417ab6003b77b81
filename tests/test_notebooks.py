"""The notebooks of the documentation run, and their stored outputs are those of such a run."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def outputs(book: Any) -> list[list[tuple[str, ...]]]:
    """What kinds of outputs each cell has; pieces of a stream count as one."""
    found: list[list[tuple[str, ...]]] = []
    for cell in book.cells:
        kinds: list[tuple[str, ...]] = []
        for output in cell.get("outputs", ()):
            kind = (output.output_type, output.get("name", ""), *sorted(output.get("data", {})))
            if kind not in kinds:
                kinds.append(kind)
        found.append(kinds)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# What jupyter_core and zmq say of themselves.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("torch")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    run_notebook = importlib.import_module("run_notebooks").run_notebook
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    done = run_notebook(path)
    assert outputs(done) == outputs(stored), "run scripts/run_notebooks.py"
    assert not any("stderr" in kind for cell in outputs(done) for kind in cell)
    del sys.modules["run_notebooks"]


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["layer_in_ten_minutes", "own_bounds"]
