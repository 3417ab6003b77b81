"""The what-if editor as a reader uses it, on the page of a unit."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.browser import accessibility_findings, console_errors, requested
from helpers.report_cases import ReportRuns

import optexp_jax as ox
from optexp_jax.formulas.text import quote_name
from optexp_jax.report import whatif_data


@pytest.fixture
def page(browser: Any, site: Path) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")
    console_errors(browser)
    requested(browser)
    browser.get((site / "units/0.html").as_uri())
    assert not browser.find_elements("css selector", ".whatif")
    browser.execute_script("document.getElementById('what-if').scrollIntoView()")
    drawn = """
    const editor = document.getElementById('what-if').whatIf;
    return Boolean(editor) && editor.maps.size === editor.gallery.children.length;
    """
    WebDriverWait(browser, 20).until(lambda driver: driver.execute_script(drawn))
    yield browser
    assert console_errors(browser) == []
    asked = requested(browser) - {"about:blank"}
    assert all(url.startswith((site.as_uri(), "data:")) for url in asked), asked


def one(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def type_over(browser: Any, text: str) -> None:
    one(browser, "#whatif-text").clear()
    one(browser, "#whatif-text").send_keys(text)


def facts(browser: Any) -> list[str]:
    found = browser.find_elements("css selector", ".whatif-facts dd")
    return [each.text.replace("\u202f", "") for each in found]


def wanted_facts(run: ox.Run, formula: ox.Formula) -> list[str]:
    source = run.open_source()
    score = ox.iou(source.table, source.counts([0])[0], formula)
    return [f"{score.iou:.4f}", str(score.intersection), str(score.union)]


def explanation(run: ox.Run) -> ox.Explanation:
    found = run.results[0].explanation
    assert found is not None
    return found


def test_the_explanation_stands_there_first(page: Any, runs: ReportRuns):
    run = runs.optimal
    found = explanation(run)
    assert found.formula is not None
    assert one(page, "#whatif-text").get_attribute("value") == str(found.formula)
    assert facts(page) == wanted_facts(run, found.formula)
    assert one(page, ".whatif-compared").text == "IoU exactly that of the proved optimum."


def test_typing_another_formula(page: Any, runs: ReportRuns):
    run = runs.optimal
    table = run.open_source().table
    one_concept = ox.Formula.concept(table.names[0])
    type_over(page, str(one_concept))
    assert facts(page) == wanted_facts(run, one_concept)
    assert re.search(r"0\.\d{4} below the proved optimum", one(page, ".whatif-compared").text)
    type_over(page, f"{one_concept} OR")
    assert "expected a concept, found the end of the text" in one(page, "#whatif-result").text
    assert one(page, "#whatif-text").get_attribute("aria-invalid") == "true"
    one(page, ".whatif-add button[type=button]").click()
    assert one(page, "#whatif-text").get_attribute("value") == str(explanation(run).formula)


def test_choosing_from_the_list_by_keyboard(page: Any, runs: ReportRuns):
    from selenium.webdriver.common.keys import Keys

    names = runs.optimal.open_source().table.names
    name = next(name for name in names if quote_name(name) == name)
    type_over(page, name[:-1])
    assert one(page, "#whatif-text").get_attribute("aria-expanded") == "true"
    options = [each.text for each in page.find_elements("css selector", "#whatif-list li")]
    assert name in options
    field = one(page, "#whatif-text")
    field.send_keys(*[Keys.ARROW_DOWN] * (options.index(name) + 1))
    assert field.get_attribute("aria-activedescendant") == f"whatif-option-{options.index(name)}"
    field.send_keys(Keys.ENTER)
    assert field.get_attribute("value") == f"{name} "
    assert field.get_attribute("aria-expanded") == "false"
    field.send_keys("A", Keys.ESCAPE)
    assert field.get_attribute("aria-expanded") == "false"


def test_picking_steps(page: Any, runs: ReportRuns):
    run = runs.optimal
    names = [quote_name(name) for name in run.open_source().table.names[:2]]
    type_over(page, names[0])
    one(page, ".whatif-add input").send_keys(names[1])
    one(page, ".whatif-add button[type=submit]").click()
    field = one(page, "#whatif-text")
    assert field.get_attribute("value") == f"{names[0]} OR {names[1]}"
    select = "const s = document.querySelector('.whatif-steps select'); s.value = '2';"
    page.execute_script(select + "s.dispatchEvent(new Event('change'))")
    assert field.get_attribute("value") == f"({names[0]} AND NOT {names[1]})"
    formula = ox.Formula.parse(field.get_attribute("value"))
    assert facts(page) == wanted_facts(run, formula)
    page.find_elements("css selector", ".whatif-steps button")[0].click()
    assert field.get_attribute("value") == names[1]


def test_pictures_are_drawn_again(page: Any, runs: ReportRuns, site: Path):
    run = runs.optimal
    source = run.open_source()
    formula = ox.Formula(source.table.names[:2], (ox.OR,))
    painted = "return document.querySelector('.whatif-pictures canvas').toDataURL()"
    before = page.execute_script(painted)
    type_over(page, str(formula))
    assert page.execute_script(painted) != before
    shown = [each.text for each in page.find_elements("css selector", ".whatif-pictures .areas")]
    data = json.loads(one(page, "#picture-data").get_attribute("textContent"))
    samples = data["galleries"][0]["samples"][:12]
    active, held = source.bitmap(0), source.table.mask(formula)
    wanted = [
        [(active & held), (active & ~held), (held & ~active)]
        for active, held in ((active[x], held[x]) for x in samples)
    ]
    assert shown == [" · ".join(str(np.count_nonzero(m)) for m in masks) for masks in wanted]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_keeps_people_out(page: Any, theme: str):
    page.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    assert accessibility_findings(page, "#what-if") == []
    type_over(page, "sk")
    assert accessibility_findings(page, "#what-if") == []
    console_errors(page)  # axe-core wants to fetch the styles, which the page forbids.


def test_numbers_of_seven_bits():
    values = np.array([0, 1, 127, 128, 300, 2**28 - 1, 2**28, 2**62, 2**63 - 1])
    packed, found, place = whatif_data.varints(values), [], 0
    value = 0
    for byte in packed:
        value |= (byte & 127) << place
        place = place + 7 if byte & 128 else 0
        if not byte & 128:
            found.append(value)
            value = 0
    assert found == values.tolist()
    assert whatif_data.varints(values[:0]) == b""
    with pytest.raises(ValueError, match="negative"):
        whatif_data.varints(np.array([-1]))


def test_the_editor_fits_a_phone(page: Any):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
