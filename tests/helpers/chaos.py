"""Figures of the tests that kill, damage and deceive: how many of each kind ended well.

A test marked `chaos("hostile files refused")` counts as one; one that does many things in a row
tells of them with the fixture `tally`. The figures stand at the end of pytest's report.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, cast

import pytest

PROPERTY = "chaos"

Count = Callable[[int, int], None]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "chaos(what): kills, damage and hostile files; `what` names its figure"
    )


@pytest.fixture
def tally(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Count:
    """Takes how many of how many ended well, in the place of the test as one."""
    marker = request.node.get_closest_marker("chaos")
    assert marker is not None, "a test that uses `tally` is marked `chaos`"
    return lambda good, total: record_property(PROPERTY, [marker.args[0], good, total])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    marker = item.get_closest_marker("chaos")
    ended = report.when == "call" or report.failed
    told = any(name == PROPERTY for name, _ in report.user_properties)
    if marker is not None and ended and not report.skipped and (not told or report.failed):
        report.user_properties.append((PROPERTY, [marker.args[0], int(report.passed), 1]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            if not isinstance(report, pytest.TestReport) or report.when == "teardown":
                continue
            for name, value in getattr(report, "user_properties", ()):  # not of a collection
                if name == PROPERTY:
                    what, good, total = cast(tuple[str, int, int], value)
                    figures[what][0] += good
                    figures[what][1] += total
    if figures:
        terminalreporter.section("chaos")
        for what, (good, total) in sorted(figures.items()):
            terminalreporter.write_line(f"{what}: {good}/{total}")
