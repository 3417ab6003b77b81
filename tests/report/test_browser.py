"""The report as a reader meets it, in a browser, from disk."""

from pathlib import Path
from typing import Any

import pytest
from helpers.browser import accessibility_findings, console_errors, open_browser, requested
from helpers.report_cases import N_UNITS, SCRIPT

PAGES = ("index.html", "units/0.html", "concepts/0.html", "compare-1.html")


def visit(browser: Any, page: Path, where: str = "") -> None:
    browser.get("about:blank")  # or else another fragment would not load the page again
    console_errors(browser)
    browser.get(page.as_uri() + where)


def texts(browser: Any, selector: str) -> list[str]:
    return [found.text for found in browser.find_elements("css selector", selector)]


def one(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def units_shown(browser: Any) -> list[int]:
    return [int(text) for text in texts(browser, "#units .tabulator-row a:not(.thumb)")]


@pytest.mark.parametrize("page", PAGES)
def test_pages_load_nothing_else_and_complain_of_nothing(browser: Any, site: Path, page: str):
    requested(browser)
    visit(browser, site / page)
    assert console_errors(browser) == []
    asked = requested(browser) - {"about:blank"}
    assert (site / page).as_uri() in asked
    assert all(url.startswith((site.as_uri(), "data:")) for url in asked), asked
    assert "bitten" not in browser.title
    assert one(browser, "h1").is_displayed()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_nothing_serious_keeps_people_out(browser: Any, site: Path, page: str, theme: str):
    visit(browser, site / page)
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    assert accessibility_findings(browser) == []


def test_sorting_and_filtering(browser: Any, site: Path):
    visit(browser, site / "index.html")
    assert len(units_shown(browser)) == N_UNITS
    ious = [float(text) for text in texts(browser, "#units .bar-cell .value")]
    assert ious == sorted(ious, reverse=True)
    header = "#units .tabulator-col[tabulator-field=unit] .tabulator-col-title"
    one(browser, header).click()
    assert units_shown(browser) == list(range(N_UNITS))
    one(browser, "#search").send_keys("water")
    formulas = texts(browser, "#units .cell-formula")
    assert 0 < len(formulas) < N_UNITS
    assert one(browser, "#shown").text == f"{len(formulas)} of {N_UNITS} units"
    address = browser.current_url
    assert "search=water" in address
    visit(browser, site / "index.html", address[address.index("#") :])
    assert texts(browser, "#units .cell-formula") == formulas
    one(browser, "#least").send_keys("0.99")
    assert units_shown(browser) == []


def test_opening_a_unit_by_keyboard_and_turning_pages(browser: Any, site: Path):
    from selenium.webdriver.common.keys import Keys

    visit(browser, site / "index.html", "#sort=unit&dir=asc")
    body = one(browser, "body")
    body.send_keys("j", "j")
    assert browser.switch_to.active_element.text == "1"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.current_url == (site / "units/1.html").as_uri()
    one(browser, "body").send_keys(Keys.ARROW_RIGHT)
    assert one(browser, "h1").text.startswith("Unit 2")
    one(browser, "a[rel=prev]").click()
    assert one(browser, "h1").text.startswith("Unit 1")
    assert console_errors(browser) == []


def press(browser: Any, selector: str) -> None:
    """Click what may be far down: pages scroll smoothly, and a click does not wait for it."""
    found = one(browser, selector)
    way = "{block: 'center', behavior: 'instant'}"
    browser.execute_script(f"arguments[0].scrollIntoView({way})", found)
    found.click()


def test_paging_images_and_showing_a_concept_alone(browser: Any, site: Path):
    visit(browser, site / "units/0.html")
    first = texts(browser, "#gallery .name")
    assert len(first) == 8
    widths = browser.execute_script(
        "return [...document.querySelectorAll('#gallery img')].map((i) => i.naturalWidth)"
    )
    assert all(widths)
    press(browser, "#page-on")
    assert set(texts(browser, "#gallery .name")).isdisjoint(first)
    assert one(browser, "#page-place").text == "2 of 2"
    assert not one(browser, "#page-on").is_enabled()
    painted = "return document.querySelector('#gallery canvas').toDataURL()"
    before = browser.execute_script(painted)
    press(browser, "#concept-keys button")
    assert browser.execute_script(painted) != before
    press(browser, "#concept-keys button")
    assert browser.execute_script(painted) == before
    press(browser, "#tab-3")
    assert one(browser, "#tab-3").get_attribute("aria-selected") == "true"
    assert one(browser, "#page-place").text.startswith("1 of")


def test_the_theme_is_kept(browser: Any, site: Path):
    visit(browser, site / "index.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(ground)
    one(browser, "#theme").click()
    after = browser.execute_script(ground)
    assert after != before
    visit(browser, site / "units/0.html")
    assert browser.execute_script(ground) == after
    one(browser, "#theme").click()


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_needs_no_sideways_scrolling(site: Path, page: str):
    with open_browser(600, 900) as phone:
        phone.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        )
        visit(phone, site / page)
        wide = phone.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390


def test_names_are_shown_as_they_are(browser: Any, site: Path):
    visit(browser, site / "index.html")
    assert SCRIPT in " ".join(texts(browser, ".cloud a"))
    one(browser, "#search").send_keys("<script>")
    assert texts(browser, "#units .cell-formula")
    assert all(SCRIPT in text for text in texts(browser, "#units .cell-formula"))
    assert not browser.find_elements("css selector", "img[src='x']")
    assert browser.title.startswith("Layer conv of <b>net</b>")
