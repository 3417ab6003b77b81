"""The snippets of the documentation run, and print what the page says they print."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from support import as_users_run_it

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md",
    "docs/how_to/activations.md",
    "docs/explanation/beam.md",
    "docs/how_to/building.md",
    "docs/how_to/concepts.md",
    "docs/how_to/datasets.md",
    "docs/reference/formulas.md",
    "docs/how_to/own_bounds.md",
    "docs/explanation/paper_bounds.md",
    "docs/how_to/runs.md",
    "docs/explanation/tight_bounds.md",
]

# A Python block, with the text block behind it if there is one.
SNIPPET = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("page", PAGES)
def test_snippets(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    snippets = list(SNIPPET.finditer(text))
    assert len(snippets) == text.count("```python") > 0, "there is a block that is not closed"
    names: dict[str, Any] = {}
    for snippet in snippets:
        line = text.count("\n", 0, snippet.start("code")) + 1
        # Blank lines in front, so that a traceback shows the lines of the page.
        code = compile("\n" * (line - 1) + snippet["code"], page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), as_users_run_it():
            exec(code, names)
        if snippet["output"] is not None:
            assert printed.getvalue() == snippet["output"], f"{page}, line {line}"
