"""The unit card: right figures, nothing of a name obeyed, pictures inside."""

import base64
import io
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it, examples
from hypothesis import given
from PIL import Image

import optexp_jax as ox
from optexp_jax.explanation import RunnerUp

NAME = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """Tags, attributes and text of a piece of HTML."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def neuron(concept: str) -> ox.NeuronSummary:
    return ox.NeuronSummary(4, 20, ox.SingleConcept(concept, 2, 6))


def test_names_are_text():
    formula = ox.Formula.concept(NAME)
    found = ox.Explanation(
        formula,
        3,
        5,
        0.7,
        ox.Status.FEASIBLE,
        equivalents=(formula,),
        runners_up=(RunnerUp(formula, 1, 5),),
        neuron=neuron(NAME),
    )
    read = Reader(found._repr_html_())
    assert "script" not in read.tags
    assert not read.open
    assert read.text.count("<script>") == 4, "formula, one concept, equivalent and runner-up"
    assert not [name for name, _ in read.attributes if name.startswith("on")]


def test_figures():
    formula = ox.Formula.parse("sea OR sky")
    found = ox.Explanation(formula, 3, 5, 0.6, ox.Status.OPTIMAL, neuron=neuron("sky"))
    read = Reader(found.to_html())
    lines = read.text.splitlines()
    for label, value in (
        ("IoU", "0.6000"),
        ("one concept", "0.3333 (sky)"),
        ("active", "20.00%"),
        ("precision", "75.0%"),
        ("recall", "75.0%"),
        ("highest IoU for these sizes", "1.0000"),
    ):
        assert lines[lines.index(label) + 1] == value
    assert "optimal" in lines
    styles = [value or "" for name, value in read.attributes if name == "style"]
    assert any("width:60.00%" in style for style in styles)
    for part in (" captured 3", " missed 1", " extras 1"):
        assert part in lines


def test_the_card_of_a_method_alone_has_what_is_known():
    nothing = ox.Explanation(None, 0, 4, 0.5, ox.Status.FEASIBLE)
    read = Reader(nothing.to_html())
    assert "no concept overlaps the neuron" in read.text
    assert "feasible, upper bound 0.5000" in read.text
    assert "precision" not in read.text


@examples(30)
@given(case=cases())
def test_every_explanation_has_a_card(case: Case):
    if not case.neuron.size:
        return
    with as_users_run_it():
        found = ox.explain(case.table, case.neuron, ox.Exhaustive(2))
    read = Reader(found._repr_html_())
    assert not read.open
    assert f"{found.iou:.4f}" in read.text


def test_images_stand_in_the_card():
    found = ox.Explanation(ox.Formula.parse("a"), 3, 4, 0.75, ox.Status.OPTIMAL)
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    read = Reader(found.to_html([pixels]))
    (source,) = (value for name, value in read.attributes if name == "src")
    assert source is not None
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
    with pytest.raises(ValueError, match="arrays of bytes"):
        found.to_html([pixels / 2])


def test_show_prints_where_there_is_no_notebook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    found = ox.Explanation(ox.Formula.parse("a"), 3, 4, 0.75, ox.Status.OPTIMAL)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    found.show()
    assert capsys.readouterr().out == f"{found}\n"
    shown: list[str] = []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))
    monkeypatch.setitem(
        sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=shown.append)
    )
    found.show()
    assert shown == [found.to_html()]
