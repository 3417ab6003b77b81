"""What the documentation shows is run, and its pages, links and names exist.

Every fenced block of README.md and of the pages is one of these, or the test fails:

- `python`: it is run, after those before it on the page;
- `bash`: its commands, `optexp ...` and `python FILE`, are run;
- `text` behind one of them: what it printed; times at the ends of lines may differ;
- any language with `title="FILE"`: a file, which is there for what follows;
- a block after `<!-- run: WAY -->`, which is checked in one of the ways of `WAYS`;
- a block after `<!-- not run: REASON -->`.
"""

import ast
import contextlib
import io
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers.support import as_users_run_it, thorough
from PIL import Image

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.datasets import DatasetSpec
from optexp_jax.runs.columns import COLUMNS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = DOCS / "reference/commands.md"  # at build time, by scripts/command_reference.py
PAGES = sorted(set(DOCS.rglob("*.md")) - {MADE})
READ = [ROOT / "README.md", *PAGES]

FENCE = re.compile(r"^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)
TITLE = re.compile(r'title="([^"]+)"')
NOTE = re.compile(r"<!-- (run|not run): (.+?) -->\s*$")
TIME = re.compile(r"(?: +| in )\d+\.\d+(?= s\b|$)", re.M)
DECIMAL = re.compile(r"\d+\.\d+")

MODEL = """
import torch

def build():
    layers = [torch.nn.Conv2d(3, 4, 3, stride=16, padding=1), torch.nn.ReLU()]
    layers += [torch.nn.Conv2d(4, 4, 1) for _ in range(9)]
    model = torch.nn.Module()
    model.features = torch.nn.Sequential(*layers)
    model.forward = model.features.forward
    return model
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    body: str
    line: int
    file: str | None
    note: str | None
    reason: str
    adjoins: bool
    """Whether nothing stands between it and the block before."""


def blocks_of(text: str) -> Iterator[Block]:
    end = 0
    for fence in FENCE.finditer(text):
        before = text[end : fence.start()]
        note, title = NOTE.search(before), TITLE.search(fence["rest"])
        yield Block(
            fence["language"],
            fence["body"],
            text.count("\n", 0, fence.start("body")) + 1,
            title and title[1],
            note and note[1],
            note[2] if note else "",
            adjoins=not before.strip(),
        )
        end = fence.end()


def run_commands(block: Block) -> None:
    """Run the commands of a block in this process, which saves starting Python for each."""
    for line in block.body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            program, *arguments = words
            if program == "python":
                (script,) = arguments
                runpy.run_path(script, run_name="__main__")
            else:
                assert program == "optexp", f"{line!r}: only optexp and python FILE can be run"
                assert cli.main(arguments) == 0, line


def check_specs(block: Block) -> None:
    for line in block.body.splitlines():
        assert DatasetSpec.parse(line.split()[0]).kind in line


def check_dask_settings(block: Block) -> None:
    import dask.config
    import distributed  # fills in the settings that there are
    import yaml

    assert distributed

    def check(settings: Mapping[str, Any], place: str) -> None:
        for name, value in settings.items():
            assert dask.config.get(place + name, "no such setting") != "no such setting"
            if isinstance(value, Mapping):
                check(value, f"{place}{name}.")

    check(yaml.safe_load(block.body), "")


def check_script(block: Block) -> None:
    """The script prints these lines, times at their ends aside."""
    if not thorough():
        return  # it takes half a minute
    script = ROOT / block.reason
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    printed = untimed(done.stdout).splitlines()
    for line in block.body.splitlines():
        assert any(each.startswith(line) for each in printed), line


WAYS: Mapping[str, Callable[[Block], None]] = {
    "dataset specs": check_specs,
    "scripts/own_vectors.py": check_script,
    "settings of Dask": check_dask_settings,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


def make_files() -> None:
    """The model and the annotated images that the pages speak of."""
    Path("mymodel.py").write_text(MODEL)
    rng = np.random.default_rng(0)
    for part in ("images", "labels"):
        Path("data/mine", part).mkdir(parents=True)
    for name in "abcd":
        labels = np.repeat(np.repeat(rng.integers(0, 3, (4, 4), np.uint8), 16, 0), 16, 1)
        noise = rng.integers(0, 50, (64, 64, 3), np.uint8)
        Image.fromarray(labels).save(f"data/mine/labels/{name}.png")
        Image.fromarray(noise + labels[:, :, None] * 100).save(f"data/mine/images/{name}.png")
    Path("data/mine/labels.csv").write_text("value,name\n0,sky\n1,water\n2,boat\n")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_blocks(page: Path, folder: Path):
    text = page.read_text(encoding="utf-8")
    blocks = list(blocks_of(text))
    assert 2 * len(blocks) == len(re.findall(r"^```", text, re.M)), "a block is not closed"
    if "mymodel.py" not in {block.file for block in blocks}:
        make_files()
    names: dict[str, Any] = {}
    printed: str | None = None
    by_command = False
    for block in blocks:
        where = f"{name_of(page)}, line {block.line}"
        if block.note == "not run":
            continue
        if block.note == "run":
            WAYS[block.reason](block)
        elif block.file is not None:
            Path(block.file).write_text(block.body)
        elif block.language in ("python", "bash"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), as_users_run_it():
                if block.language == "bash":
                    run_commands(block)
                else:
                    # Blank lines in front, so that a traceback shows the lines of the page.
                    code = "\n" * (block.line - 1) + block.body
                    exec(compile(code, name_of(page), "exec"), names)
            printed, by_command = out.getvalue(), block.language == "bash"
        elif block.language == "text" and block.adjoins and printed is not None:
            shown = untimed(block.body)
            if by_command:
                assert_alike(untimed(printed), shown, where)
            else:
                assert printed == block.body, where
        else:
            raise AssertionError(f"{where}: say how this block is to be checked")


def untimed(text: str) -> str:
    return TIME.sub("", re.sub(r" +$", "", text, flags=re.M)).strip("\n")


def assert_alike(printed: str, shown: str, where: str) -> None:
    """The same words, and decimals that differ by little: torch rounds by the machine."""
    assert DECIMAL.sub("#", printed) == DECIMAL.sub("#", shown), where
    pairs = zip(DECIMAL.findall(printed), DECIMAL.findall(shown), strict=True)
    assert all(abs(float(one) - float(other)) <= 0.002 for one, other in pairs), where


def test_the_navigation_lists_every_page():
    listed = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in {*PAGES, MADE})


def test_pages_and_files_that_are_named_exist():
    named = re.compile(r"(?<![\w/])(?:docs|scripts|benchmarks|tests)/[\w/]+\.(?:md|py|svg|png|jpg)")
    files = [*ROOT.glob("*.md"), *PAGES, ROOT / "Makefile", ROOT / "mkdocs.yml"]
    for top in ("optexp_jax", "tests", "scripts", "benchmarks"):
        files += (ROOT / top).rglob("*.py")
    missing = [
        f"{name_of(file)} names {name}"
        for file in files
        for name in named.findall(file.read_text(encoding="utf-8"))
        if not (ROOT / name).is_file() and ROOT / name != MADE
    ]
    assert not missing


def test_links_lead_somewhere():
    # `make docs` checks this for the pages; nothing else does for the files beside them.
    broken = [
        f"{name_of(file)}: {link}"
        for file in [*ROOT.glob("*.md"), *PAGES]
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8"))
        if not (file.parent / link).is_file() and (file.parent / link).resolve() != MADE
    ]
    assert not broken


def test_the_reference_has_every_public_name():
    pages = "\n".join(page.read_text() for page in (DOCS / "reference/api").glob("*.md"))
    shown = re.findall(r"^::: optexp_jax\.(?:explain\.)?(\w+)$", pages, re.M)
    assert len(shown) == len(set(shown))
    parts = [name for name in shown if isinstance(getattr(ox, name, None), ModuleType)]
    among = {name for part in parts for name in getattr(ox, part).__all__}
    assert sorted(set(ox.__all__) - set(shown) - among) == []
    assert sorted(set(shown) - set(ox.__all__)) == ["pictures", "report", "search"]


def test_the_reference_of_commands_has_every_option(capsys: pytest.CaptureFixture[str]):
    script = runpy.run_path(str(ROOT / "scripts/command_reference.py"))
    page = script["page"]()
    sections = dict(re.findall(r"^## optexp ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    assert {"demo", "explain", "data build", "models convert"} <= set(sections)
    for command, section in sections.items():
        assert cli.main([*command.split(), "--help"]) == 0
        usage = capsys.readouterr().out.partition("\n\n")[0]
        options = set(re.findall(r"--[a-z][a-z-]*", usage))
        assert options <= set(re.findall(r"--[a-z][a-z-]*", section)), command


def test_every_result_column_is_explained():
    page = (DOCS / "reference/result_columns.md").read_text()
    explained = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert tuple(explained) == COLUMNS


def test_commands_of_the_makefile_are_those_of_the_readme():
    extras = re.search(
        r"\.installed-test:.*\n\t\$\(PIP\) -e \"(.+)\"", Path(ROOT / "Makefile").read_text()
    )
    assert extras is not None
    assert f'-e "{extras[1]}"' in (ROOT / "README.md").read_text()
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\w+", extras[1])) <= set(known)


def test_blocks_are_told_apart():
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n"
    page += "<!-- not run: why -->\n```text\nx\n```\n"
    page += '```python title="a.py"\nx = 1\n```\n'
    python, output, noted, file = blocks_of(page)
    assert python.line == 2
    assert output.adjoins
    assert (noted.note, noted.reason, noted.adjoins) == ("not run", "why", False)
    assert file.file == "a.py"
    assert ast.literal_eval(output.body) == 1
