"""The what-if editor against Python: thousands of texts, the same integers, the same errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.browser import console_errors
from helpers.support import thorough
from helpers.whatif_cases import (
    NAMES,
    Case,
    damage,
    in_browser,
    in_python,
    is_typed,
    make_case,
    random_text,
    write_case,
)

import optexp_jax as ox

N_TEXTS = 20_000 if thorough() else 1500


def open_editor(browser: Any, page: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(page.as_uri())
    ready = "return Boolean(document.getElementById('what-if').whatIf)"
    WebDriverWait(browser, 20).until(lambda driver: driver.execute_script(ready))


def as_floats(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "iou": float(found["iou"])} if "iou" in found else found


@pytest.mark.parametrize("scale", [1, 2**20, 2**44, 2**46])
def test_formulas_in_browser_and_python(browser: Any, tmp_path: Path, fresh_seed: int, scale: int):
    rng = np.random.default_rng(fresh_seed)
    case = make_case(rng, scale)
    assert (case.table.n_locations > 2**53) == (scale >= 2**44)
    found = ox.explain(case.table, case.counts, ox.NetDissect())
    console_errors(browser)
    open_editor(browser, write_case(tmp_path / "page", case, found))
    right = [random_text(rng, NAMES) for _ in range(N_TEXTS)]
    wrong = [damage(rng, text) for text in right]
    synonyms = ["bus", "car", "tram", "x", "bus OR car", 'bus OR "bus, coach"']
    synonyms += ["buss", "cra", "tra"]
    texts = [*filter(is_typed, [*right, *wrong]), "", " ", str(found.formula), "a" * 247, *synonyms]
    wanted = [in_python(case, found, text) for text in texts]
    assert sum("iou" in each for each in wanted) > N_TEXTS // 3
    assert sum("error" in each for each in wanted) > N_TEXTS // 3
    for start in range(0, len(texts), 1000):
        chunk = slice(start, start + 1000)
        shown = in_browser(browser, texts[chunk])
        for text, mine, other in zip(texts[chunk], wanted[chunk], shown, strict=True):
            assert as_floats(other) == mine, repr(text)
    assert console_errors(browser) == []
    assert browser.execute_script("return window.bitten") is None


def test_a_unit_that_nothing_overlaps(browser: Any, tmp_path: Path):
    table = ox.ConceptTable.from_signatures([[0], [1]], [3, 4], ["a", "b"], n_locations=9)
    counts = ox.NeuronCounts.from_signatures(table, [0, 0], uncovered=1)
    found = ox.explain(table, counts, ox.Optimal(2))
    assert found.formula is None
    case = Case(table, counts, ox.DEFAULT_OPERATORS)
    open_editor(browser, write_case(tmp_path / "page", case, found))
    texts = ["a", "a OR b", "a AND b", "a XOR b", "c"]
    for text, other in zip(texts, in_browser(browser, texts), strict=True):
        assert as_floats(other) == in_python(case, found, text)
    status = browser.find_element("css selector", "#whatif-result").text
    assert status == "Type a concept, or choose one below."


def test_quotients_are_rounded_as_python_rounds_them(browser: Any, tmp_path: Path, fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    half = (2**53 + 1) << 60  # over 2**113: half way between two floating-point numbers
    pairs = [(half, 2**113), (half + 1, 2**113), (half - 1, 2**113), (0, 2**60), (2**60, 2**60)]
    for _ in range(300):
        below = int(rng.integers(1, 2**62)) << int(rng.integers(0, 40))
        pairs.append((int(rng.integers(0, 2**62)) * below >> 62, below))
    case = make_case(rng)
    found = ox.explain(case.table, case.counts, ox.NetDissect())
    open_editor(browser, write_case(tmp_path / "page", case, found))
    shown = browser.execute_script(
        "return arguments[0].map(([a, b]) => window.OptexpWhatIf.ratio(BigInt(a), BigInt(b))"
        ".toString())",
        [[str(above), str(below)] for above, below in pairs],
    )
    assert [float(text) for text in shown] == [above / below for above, below in pairs]


def test_how_a_formula_stands_to_the_best_one(browser: Any, tmp_path: Path):
    table = ox.ConceptTable.from_signatures([[0], [1], [2]], [4, 4, 4], ["a", "b", "c"])
    counts = ox.NeuronCounts.from_signatures(table, [4, 3, 0])
    case = Case(table, counts, ox.DEFAULT_OPERATORS)
    for method, ends in (
        (ox.Optimal(1), "below the proved optimum (0.5714)."),
        (ox.Beam(1), "below the best formula found (0.5714)."),
    ):
        found = ox.explain(table, counts, method)
        open_editor(browser, write_case(tmp_path / type(method).__name__, case, found, length=1))
        status = {text: told(browser, text) for text in ("a", "b", "a OR b", "c")}
        name = "the proved optimum" if found.status == "optimal" else "the best formula found"
        assert status["a"] == f"IoU exactly that of {name}."
        assert status["b"] == f"IoU 0.1964 {ends}"
        above = f"IoU 0.3036 above {name} (0.5714): the search used at most 1 concept."
        assert status["a OR b"] == above
        assert status["c"].startswith("IoU 0.5714 below")


def told(browser: Any, text: str) -> str:
    browser.execute_script("document.getElementById('what-if').whatIf.write(arguments[0])", text)
    return browser.find_element("css selector", ".whatif-compared").text
