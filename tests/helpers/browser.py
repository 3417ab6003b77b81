"""A browser for tests of pages on disk: Debian's chromium, driven by Selenium."""

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "OPTEXP_REQUIRE_BROWSER"
"""Set by `.ci/run`: a browser that is missing is an error then, and not a reason to skip."""
HOW = "Install one: apt-get install chromium chromium-driver"
AXE = Path(__file__).parent.parent / "report" / "axe.min.js"


def find_programs() -> tuple[str, str]:
    """Browser and driver, or the test is skipped."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        missing = f"There is no {'browser' if browser is None else 'chromedriver'}. {HOW}"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return browser, driver


@contextmanager
def open_browser(width: int = 1280, height: int = 900) -> Generator[Any]:
    """A browser without a window, which keeps a log of its console and of every request."""
    browser, driver = find_programs()
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()


def console_errors(browser: Any) -> list[str]:
    """What the console has complained about since it was last asked."""
    return [entry["message"] for entry in browser.get_log("browser")]


def requested(browser: Any) -> set[str]:
    """Addresses that pages have asked for since it was last asked."""
    found: set[str] = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.add(message["params"]["request"]["url"])
    return found


def accessibility_findings(browser: Any, part: str = "html") -> list[str]:
    """Serious and critical findings of axe-core on the page that is open, or on a part of it."""
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const [part, done] = arguments;axe.run(part).then((result) => done(result.violations));",
        part,
    )
    return [
        f"{each['id']} ({each['impact']}): {node['html']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]
