"""A report that tests look at, built once, and a browser to look at it with."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import open_browser
from helpers.report_cases import ReportRuns, make_runs
from optexp_jax.report import build_report


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ReportRuns:
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def site(runs: ReportRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "report"
    build_report([runs.optimal, runs.beam], out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened
