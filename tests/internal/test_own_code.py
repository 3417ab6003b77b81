"""Code of the user's own: where `module:object` is looked for, and what is said if it is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from optexp_jax.internal.own_code import find_object, import_object

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which Python does not search."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_modules_of_the_current_folder_are_found(folder: Path):
    (folder / "own_first.py").write_text("import own_second\nclass A:\n    b = own_second.value\n")
    (folder / "own_second.py").write_text("value = 7\n")
    assert find_object("own_first:A.b") == 7
    assert sys.path[-1] == str(folder)
    (folder / "own_package").mkdir()
    (folder / "own_package" / "__init__.py").touch()
    (folder / "own_package" / "part.py").write_text("value = 8\n")
    assert find_object("own_package.part:value") == 8


def test_installed_modules_are_found(folder: Path):
    assert find_object("os.path:join") is __import__("os").path.join
    assert import_object("pathlib", "Path") is Path


def test_what_only_a_file_names_is_not_looked_for_here(folder: Path):
    (folder / "own_third.py").write_text("value = 9\n")
    with pytest.raises(ValueError, match="no module own_third"):
        import_object("own_third", "value")
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no_such_module:x", "there is no module no_such_module, installed or in the current"),
        ("no_such.module:x", "there is no module no_such, installed"),
        ("own_needs:x", "there is no module no_such_module, which own_needs imports,"),
        ("own_fails:x", "own_fails raised ZeroDivisionError: division by zero"),
        ("own_has:vlue", "own_has has no vlue. Did you mean value?"),
        ("own_has", "'own_has' does not name an object; write module:object"),
        (":x", "write module:object"),
        ("own has:x", "write module:object"),
        ("own_has:", "write module:object"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, text: str, said: str):
    (folder / "own_needs.py").write_text("import no_such_module\n")
    (folder / "own_fails.py").write_text("1 / 0\n")
    (folder / "own_has.py").write_text("value = 1\n")
    with pytest.raises(ValueError, match=re.escape(said)):
        find_object(text)
    assert "own_fails" not in sys.modules, "it can be tried again"


def test_a_file_of_the_current_folder_hides_no_installed_module(tmp_path: Path):
    """In a process of its own, where nothing is imported yet; -P as a console command has it."""
    (tmp_path / "rich.py").write_text("raise RuntimeError('the wrong one')")
    (tmp_path / "mine.py").write_text("import rich\nvalue = rich.__name__\n")
    code = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from optexp_jax.internal.own_code import find_object\n"
        "print(find_object('mine:value'))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "rich\n"
