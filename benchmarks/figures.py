"""Measures what docs/benchmarks.md shows, and writes it there. Run it on a quiet machine.

    python benchmarks/figures.py            # an hour or so
    python benchmarks/figures.py --quick    # three minutes, to try it; writes the page too

The figures go to benchmarks/results/figures.json as well.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optexp_jax import cli
from optexp_jax.bench.machine import Machine
from optexp_jax.bench.report import BenchTable

ROOT = Path(__file__).resolve().parent.parent
PAGE, PLOT = ROOT / "docs/benchmarks.md", ROOT / "docs/images/growth.svg"
RESULTS = ROOT / "benchmarks/results/figures.json"
SUITES = ("alternatives", "growth")


def main() -> int:
    given = sys.argv[1:]
    options = ["--json", str(RESULTS), "--plot", str(PLOT)]
    code = cli.main(["bench", *SUITES, *options, *given])
    if not code:
        words = " ".join(["optexp bench", *SUITES, *given])
        document = json.loads(RESULTS.read_text(encoding="utf-8"))
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), document, words))
        print(f"Written to {PAGE.relative_to(ROOT)}.")
    return code


def with_figures(page: str, document: Mapping[str, Any], command: str) -> str:
    """The page with what stands between its marks replaced."""
    machine = Machine(**document["machine"])
    page = _between(page, "machine", f"Measured with `{command}` on {machine}.")
    for suite in document["suites"]:
        tables = [BenchTable(**table) for table in suite["tables"]]
        shown = [
            table.markdown() if len(tables) == 1 else f"**{table.title}**\n\n{table.markdown()}"
            for table in tables
        ]
        page = _between(page, suite["suite"], "\n\n".join([*shown, *suite["notes"]]))
    return page


def _between(page: str, mark: str, text: str) -> str:
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    if begin not in page or end not in page:
        raise ValueError(f"The page has no place for {mark}: {begin} and {end} are missing.")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


if __name__ == "__main__":
    sys.exit(main())
