"""Tables, texts and a page for tests of the what-if editor."""

import dataclasses
import html
import itertools
import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import optexp_jax as ox
from optexp_jax.report import whatif_data
from optexp_jax.report.pages import POLICY

XOR = ox.Operator("XOR", p=True, q=True, r=False)
NOT_YET = ox.Operator("NOT YET", p=False, q=True, r=False)
OPERATORS = (*ox.DEFAULT_OPERATORS, XOR, NOT_YET)
NAMES = (
    *("sky", "sea", "sea-s", "season", "traffic light", "AND", "NOT", "XOR", "A", "OR-c", "Or"),
    *("<script>window.bitten = 1</script>", "</script>", "&amp;", 'say "yes"', "it's", "\\", "\\n"),
    *("", " ", "\n", "\t", "\x00", "\u200b", "\xa0", "\u2028", "é", "e\u0301", "日本", "\u0378"),
    *("\U0001f600", "\ud83d\ude00", "\ud83d", "\U000e0001", "(", "x,y", "[a]", "'", "`"),
    *("bus, coach", "car, auto", "car; wagon", " tram , trolley"),
    *("nothing", "nothing else", "all", "all again", "a" * 250, "a" * 249 + "b"),
)
"""Names that are hard to read, to print or to put on a page."""
EMPTY, ALL = ("nothing", "nothing else"), ("all", "all again")
SCRIPTS = ("whatif_nearest", "whatif_text", "whatif_counts", "whatif")


@dataclass(frozen=True, eq=False)
class Case:
    """A table with the counts of a unit."""

    table: ox.ConceptTable
    counts: ox.NeuronCounts
    operators: tuple[ox.Operator, ...] = OPERATORS


def make_case(rng: np.random.Generator, scale: int = 1, n: int = 90) -> Case:
    """Random concept sets, whose sizes are multiplied by `scale` and then made uneven."""
    some = [k for k, name in enumerate(NAMES) if name not in EMPTY and name not in ALL]
    always = [NAMES.index(name) for name in ALL]
    rows = [
        [*rng.choice(some, rng.integers(0, 9), replace=False).tolist(), *always] for _ in range(n)
    ]
    plain = ox.ConceptTable.from_signatures(rows, np.ones(n, np.int64), NAMES, n_locations=n + 7)
    sizes = rng.integers(1, 1000, len(plain.patches)) * scale + rng.integers(
        0, scale, len(plain.patches), endpoint=True
    )
    table = dataclasses.replace(plain, patches=dataclasses.replace(plain.patches, size=sizes))
    active = np.flatnonzero(rng.random(len(sizes)) < 0.6)
    inside = np.array([int(rng.integers(0, sizes[k], endpoint=True)) for k in active], np.int64)
    return Case(table, ox.NeuronCounts.from_patches(table, active[inside > 0], inside[inside > 0]))


def random_text(rng: np.random.Generator, names: tuple[str, ...]) -> str:
    """A formula written down in one of many ways, distinct concepts or not."""
    length = int(rng.integers(1, 6))
    if rng.random() < 0.9:
        chosen = [names[k] for k in rng.permutation(len(names))[:length]]
    else:
        chosen = [names[k] for k in rng.integers(0, len(names), length)]
    text, opened = "", 0
    for place, name in enumerate(chosen):
        written = repr_name(rng, name)
        while rng.random() < 0.15:
            written = f"({gap(rng)}{written}{gap(rng)})"
        if place:
            operator = OPERATORS[rng.integers(len(OPERATORS))].name.replace(" ", "  ")
            text = f"{text} {operator} {gap(rng)}{written}"
        else:
            text = written
        if rng.random() < 0.4:
            text, opened = f"{text}{gap(rng)})", opened + 1
    return "(" * opened + text


def repr_name(rng: np.random.Generator, name: str) -> str:
    """A name as a formula has it, or in quotes with needless escapes."""
    if rng.random() < 0.6:
        return str(ox.Formula.concept(name))
    return '"' + "".join(written_character(rng, character) for character in name) + '"'


def written_character(rng: np.random.Generator, character: str) -> str:
    code = ord(character)
    plain = character not in '"\\' and not 0xD800 <= code < 0xE000
    if plain and rng.random() < 0.5:
        return character
    return f"\\u{code:04x}" if code < 0x10000 and rng.random() < 0.7 else f"\\U{code:08X}"


def gap(rng: np.random.Generator) -> str:
    return str(rng.choice(["", "", " ", "\t", "\n ", "\u3000", "\x1c", "\xa0"]))


ODD = (
    *"()[]{}\"\\'` ,\n\x00\x1f\x7fABNORTXandseaxu0Uf",
    *("\u200b", "\u0378", "é", "\ud83d", "\U0001f600", "AND", "NOT", "OR", "XOR", "sea", "\\u"),
)
"""What damage puts in."""


def damage(rng: np.random.Generator, text: str) -> str:
    """The text with some characters put in, taken out or doubled."""
    characters = list(text)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(0, len(characters) + 1))
        match int(rng.integers(0, 3)):
            case 0:
                characters.insert(place, ODD[rng.integers(len(ODD))])
            case 1:
                del characters[place : place + 1]
            case _:
                characters[place:place] = characters[place : place + 3]
    return "".join(characters)


def is_typed(text: str) -> bool:
    """Whether a browser can hold the text: there, two halves in a row are one character."""
    return not any(
        0xD800 <= ord(a) < 0xDC00 <= ord(b) < 0xE000 for a, b in itertools.pairwise(text)
    )


def write_case(folder: Path, case: Case, found: ox.Explanation, length: int | None = 3) -> Path:
    """A page with the editor alone, under the report's policy."""
    folder.mkdir(parents=True, exist_ok=True)
    whatif_data.write_layer(folder / "layer.js", whatif_data.layer_data(case.table, case.operators))
    unit = whatif_data.unit_data(case.table, case.counts, 0, found, length=length)
    whatif_data.write_unit(folder / "unit.js", unit)
    shutil.copytree(str(files("optexp_jax.report") / "static"), folder / "static")
    scripts = "".join(f'<script src="static/{name}.js"></script>' for name in SCRIPTS)
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>What if</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        '<link rel="stylesheet" href="static/report.css">'
        '<link rel="stylesheet" href="static/whatif.css"></head><body><main><h1>What if</h1>'
        '<section id="what-if" data-layer="layer.js" data-unit="unit.js" data-samples="samples/">'
        f"</section></main>{scripts}</body></html>",
        encoding="utf-8",
    )
    return page


EVALUATE = """
const kit = window.OptexpWhatIf;
const data = document.getElementById("what-if").whatIf.data;
return arguments[0].map(function (points) {
  const text = points.map((point) => String.fromCodePoint(point)).join("");
  try {
    const found = kit.evaluate(data, text);
    return {
      intersection: found.score.intersection.toString(),
      union: found.score.union.toString(),
      iou: found.iou.toString(),
      sign: kit.compareScores(found.score, data.best),
      text: data.language.formatChain(found.chain),
    };
  } catch (error) {
    if (!(error instanceof kit.FormulaError)) throw error;
    return { error: error.message };
  }
});
"""


def in_browser(browser: Any, texts: list[str]) -> list[dict[str, Any]]:
    """What the open page makes of some texts."""
    return browser.execute_script(EVALUATE, [list(map(ord, text)) for text in texts])


def in_python(case: Case, found: ox.Explanation, text: str) -> dict[str, Any]:
    """The same from Python."""
    try:
        formula = ox.Formula.parse(text, case.table, case.operators)
    except ValueError as error:
        return {"error": str(error).replace("; pass operators= to use others", "")}
    score = ox.iou(case.table, case.counts, formula)
    sign = (score.ratio > found.score.ratio) - (score.ratio < found.score.ratio)
    return {
        "intersection": str(score.intersection),
        "union": str(score.union),
        "iou": score.iou,
        "sign": sign,
        "text": repr(formula).removeprefix("<Formula ").removesuffix(">"),
    }
