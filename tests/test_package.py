"""The package as a whole: what importing it does, its metadata, and what the repository holds."""

import ast
import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
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
        "import optexp_jax as ox\n"
        "for name in dir(ox): getattr(ox, name)\n"
        "loaded = {'torch', 'torchvision'} & set(sys.modules)\n"
        "assert not loaded, f'import optexp_jax imported {loaded}'\n"
        "after = dict(jax.config.values)\n"
        "changed = sorted(k for k in before if before[k] != after[k])\n"
        "assert not changed, f'import optexp_jax changed {changed}'"
    )


def test_import_alone_loads_nothing_large():
    run_python(
        "import sys, optexp_jax\n"
        "large = {'jax', 'equinox', 'torch', 'numpy', 'scipy', 'zarr', 'rich'} & set(sys.modules)\n"
        "assert not large, f'import optexp_jax imported {large}'"
    )


def test_every_public_name_is_found_in_any_order():
    # The module `explain` would hide the function of that name, if it were imported first.
    run_python(
        "import sys\n"
        "import optexp_jax.explain, optexp_jax.demo, optexp_jax as ox\n"
        "assert callable(ox.explain)\n"
        "for name in dir(ox): assert getattr(ox, name) is getattr(ox, name), name\n"
        "from optexp_jax import *\n"
        "assert explain is ox.explain and datasets is sys.modules['optexp_jax.datasets']"
    )


def test_public_names_are_the_same_for_people_and_for_type_checkers():
    tree = ast.parse((ROOT / "optexp_jax" / "__init__.py").read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {(module, name) for module, names in ox._HOMES.items() for name in names}
    assert imported == homes | {("optexp_jax", part) for part in ox._PARTS}
    assert sorted(ox.__all__) == sorted(name for _, name in imported)
    assert dir(ox) == sorted([*ox.__all__, "__version__"])
    for module, name in homes:
        assert getattr(ox, name) is getattr(importlib.import_module(module), name)


def test_names_that_there_are_not():
    with pytest.raises(AttributeError, match="no attribute 'Optimum'"):
        _ = ox.Optimum  # pyright: ignore[reportAttributeAccessIssue]


def test_import_needs_no_extra():
    # A None in sys.modules makes the import of that name fail, as if it were not installed.
    run_python(
        "import sys\n"
        "extras = ['torch', 'torchvision', 'timm', 'transformers', 'matplotlib', 'pandas']\n"
        "extras += ['dask', 'distributed']\n"
        "sys.modules.update(dict.fromkeys(extras))\n"
        "import optexp_jax as ox\n"
        "for name in dir(ox): getattr(ox, name)"
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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert command.value == project["scripts"]["optexp"], "install the package again"


def third_party_imports() -> set[str]:
    """What the package imports that is neither Python's nor its own."""
    found: set[str] = set()
    for path in (ROOT / "optexp_jax").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").partition(".")[0])
    return found - sys.stdlib_module_names - {"optexp_jax"}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    used = [*project["dependencies"], *(want for name in RUNTIME_EXTRAS for want in extras[name])]
    return {re.split(r"[\[><=]", want)[0].replace("-", "_") for want in used}


RUNTIME_EXTRAS = ("torch", "models", "coco", "table", "report", "plot", "dask", "bench")
IMPORT_NAMES = {"pillow": "PIL", "pyyaml": "yaml", "vl_convert_python": "vl_convert"}
NOT_IMPORTED = {"jaxlib", "pyarrow", "dask", "torchvision", "timm", "transformers"}
"""What JAX and pandas import; what brings distributed; what is imported by a name in a string."""
BROUGHT = {"distributed", "IPython"}
"""By dask, and by the notebook in which a card is shown."""


def test_what_is_imported_is_declared_and_the_other_way_round():
    names = {IMPORT_NAMES.get(name, name) for name in declared()}
    assert third_party_imports() == (names - NOT_IMPORTED) | BROUGHT


@pytest.mark.slow
def test_the_built_package_works_outside_the_checkout(tmp_path: Path):
    """The sdist, the wheel made of it, and both commands and examples in an environment of its own.

    What it depends on is taken from this environment, so that no network is needed; the package
    itself is not, because files that make it importable here are not read there.
    """
    pytest.importorskip("build")
    checkout = tmp_path / "checkout"
    for path in repository_files():
        target = checkout / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    built = tmp_path / "dist"
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), str(checkout)])
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    for name in ("README.md", "LICENSE", "pyproject.toml", "Makefile", "tests/conftest.py"):
        assert name in inside, name
    assert not [name for name in inside if name.endswith(".pyc")]
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", str(wheel)])
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    shown = run([str(python), "-c", "import optexp_jax; print(optexp_jax.__file__)"], cwd=tmp_path)
    assert Path(shown.strip()).is_relative_to(packages)
    code, printed = readme_example()
    assert run([str(python), "-c", code], cwd=tmp_path) == printed
    optexp = str(tmp_path / "venv" / "bin" / "optexp")
    assert run([optexp, "--version"], cwd=tmp_path) == f"optexp {ox.__version__}\n"
    assert "usage: optexp explain" in run([optexp, "explain", "--help"], cwd=tmp_path)
    if importlib.util.find_spec("torch") is not None:
        assert "proved to be the best" in run([optexp, "demo"], cwd=tmp_path)


def run(command: list[str], cwd: Path | None = None) -> str:
    """What a command prints, run without this checkout's settings."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_package_is_marked_as_typed():
    assert (importlib.resources.files("optexp_jax") / "py.typed").is_file()


def readme_example() -> tuple[str, str]:
    """README.md's first example, and what it prints."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md shows no Python example followed by its output"
    return block[1], block[2]


def test_readme_example_prints_what_it_shows():
    code, printed = readme_example()
    assert run_python(code) == printed


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
