"""The package as a whole: what importing it does, its metadata, and what the repository holds."""

import importlib.metadata
import importlib.resources
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import optexp_jax as ox

ROOT = Path(__file__).resolve().parent.parent


def run_python(code: str) -> str:
    """What `code` prints in a fresh interpreter, where nothing else has imported anything."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_leaves_torch_and_jax_flags_alone():
    run_python(
        "import sys, jax\n"
        "before = dict(jax.config.values)\n"
        "import optexp_jax\n"
        "loaded = {'torch', 'torchvision'} & set(sys.modules)\n"
        "assert not loaded, f'import optexp_jax imported {loaded}'\n"
        "after = dict(jax.config.values)\n"
        "changed = sorted(k for k in before if before[k] != after[k])\n"
        "assert not changed, f'import optexp_jax changed {changed}'"
    )


def test_import_needs_no_extra():
    # A None in sys.modules makes the import of that name fail, as if it were not installed.
    run_python(
        "import sys\n"
        "extras = ['torch', 'torchvision', 'matplotlib', 'pandas', 'dask', 'distributed']\n"
        "sys.modules.update(dict.fromkeys(extras))\n"
        "import optexp_jax"
    )


def test_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ox.__version__ == project["version"]
    assert importlib.metadata.version("optexp-jax") == project["version"], (
        "the installed metadata is out of date: install the package again"
    )


def test_citation_has_the_same_version():
    version = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] == ox.__version__


def test_console_command_loads():
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="optexp")
    assert callable(command.load())


def test_package_is_marked_as_typed():
    assert (importlib.resources.files("optexp_jax") / "py.typed").is_file()


def test_readme_example_prints_what_it_shows():
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md shows no Python example followed by its output"
    assert run_python(block[1]) == block[2]


# Folders that name one person's machine. Written in parts, so that this file does not match itself.
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:" + "|".join(["root", "home", "Users", "work", "tmp"]) + r")(?:/|\b)"
    r"|[A-Z]:\\Users\b"
)


def repository_files() -> list[Path]:
    """Every file that is committed or would be."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("folder", ["root", "home", "Users", "work", "tmp"])
def test_machine_paths_are_recognised(folder: str):
    path = f"/{folder}/someone"
    assert MACHINE_PATH.search(f"open('{path}')")
    assert MACHINE_PATH.search(path)
    assert not MACHINE_PATH.search(f"https://example.org{path}")
    assert not MACHINE_PATH.search(f"docs{path}")


def test_no_file_names_a_machine_path():
    files = repository_files()
    assert ROOT / "pyproject.toml" in files
    found: list[str] = []
    for path in files:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # not a text file
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, start=1)
            if MACHINE_PATH.search(line)
        ]
    assert not found, "\n".join(found)
