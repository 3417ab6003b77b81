"""What a report says of units, against what counts and masks say by other ways."""

import base64
import itertools
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.report_cases import ReportRuns
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.counts.formula_steps import formula_steps
from optexp_jax.counts.quantities import formula_quantities
from optexp_jax.formulas.operators import operator_from_json
from optexp_jax.report.formula_text import as_latex, as_python
from optexp_jax.report.formula_view import shown_name
from optexp_jax.report.layers import report_layers
from optexp_jax.report.pages import to_json
from optexp_jax.report.picture_data import pack_mask
from optexp_jax.report.unit_facts import highest_of_any_formula

XOR = ox.Operator("XOR", p=True, q=True, r=False)


BITS = st.lists(st.booleans(), min_size=12, max_size=12)
MASKS = st.lists(BITS, min_size=1, max_size=4)


def small_unit(masks: list[list[bool]], bitmap: list[bool]):
    n = len(masks)
    names = [f"c{k}" for k in range(n)]
    table = ox.ConceptTable.from_masks(np.array(masks).reshape(n, 2, 6), names)
    return table, table.count(np.array(bitmap).reshape(2, 6))


@given(MASKS, BITS, st.data())
def test_steps_are_the_published_quantities(masks, bitmap, data: st.DataObject):
    table, counts = small_unit(masks, bitmap)
    names = data.draw(st.permutations(table.names))
    operators = data.draw(
        st.lists(
            st.sampled_from([*ox.DEFAULT_OPERATORS, XOR]),
            min_size=len(names) - 1,
            max_size=len(names) - 1,
        )
    )
    formula = ox.Formula(tuple(names), tuple(operators))
    steps = formula_steps(table, counts, formula)
    chain = formula.canonical
    for place, step in enumerate(steps):
        prefix = ox.Formula(chain.concepts[: place + 1], chain.operators[:place])
        parts = jax.tree.leaves(formula_quantities(table, counts, [prefix]).aggregate())
        iu, ic, eu, ec = (int(part[0, 0]) for part in parts)
        after = step.after
        assert (after.unique_intersection, after.common_intersection) == (iu, ic)
        assert (after.unique_extras, after.common_extras) == (eu, ec)
        assert step.score == ox.iou(table, counts, prefix)
    assert sum(step.change.intersection for step in steps) == steps[-1].after.intersection
    assert sum(step.change.extras for step in steps) == steps[-1].after.extras


@given(MASKS, BITS)
def test_no_set_of_signatures_is_above_the_limit_of_any_formula(masks, bitmap):
    _, counts = small_unit(masks, bitmap)
    rows = range(1, len(counts.inside))
    best = max(
        Fraction(
            int(counts.inside[list(chosen)].sum()),
            max(1, counts.size + int(counts.outside[list(chosen)].sum())),
        )
        for n in range(len(rows) + 1)
        for chosen in itertools.combinations(rows, n)
    )
    assert highest_of_any_formula(counts) == best


@given(st.integers(1, 9), st.integers(1, 9), st.randoms())
def test_masks_come_back_from_their_text(rows: int, columns: int, random):
    mask = np.array([[random.random() < 0.5 for _ in range(columns)] for _ in range(rows)])
    assert np.array_equal(unpack(pack_mask(mask), rows * columns), mask.reshape(-1))


def test_smooth_masks_are_runs_and_noisy_ones_bits():
    smooth = np.zeros((112, 112), bool)
    smooth[20:60, 30:80] = True
    noisy = np.random.default_rng(0).random((112, 112)) < 0.5
    assert pack_mask(smooth)[0] == "r"
    assert pack_mask(noisy)[0] == "b"
    assert np.array_equal(unpack(pack_mask(noisy), noisy.size), noisy.reshape(-1))


def unpack(text: str, size: int) -> np.ndarray:
    if text[0] == "b":
        packed = np.frombuffer(base64.b64decode(text[1:]), np.uint8)
        return np.unpackbits(packed, count=size).astype(bool)
    runs = [int(run) for run in text[1:].split(",")]
    found = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    assert len(found) == size
    return found


def test_copied_python_makes_the_formula_again():
    plain = ox.Formula.parse('(("a\'b" OR "<script>") AND NOT c)')
    own = ox.Formula(("a", "b", "c"), (XOR, ox.AND))
    for formula in (plain, own):
        assert eval(as_python(formula), {"ox": ox}) == formula
    assert operator_from_json("AND NOT") == ox.AND_NOT


def test_copied_latex_escapes_names():
    formula = ox.Formula.parse('(a_b OR "50% {x}") AND NOT "$"')
    assert as_latex(formula) == (r"$((\text{50\% \{x\}} \lor \text{a\_b}) \land \lnot \text{\$})$")


@given(st.text())
def test_json_can_stand_in_a_script_element(text: str):
    import json

    shown = str(to_json({"name": text}))
    assert not set(shown) & set("<>&\u2028\u2029")
    back = json.loads(shown)["name"]
    assert back == text.encode("utf-8", "replace").decode()


def test_names_that_do_not_print_are_shown_escaped():
    assert shown_name("a\u202eb\n") == "a\\u202eb\\u000a"
    assert shown_name("") == '""'


def test_runs_over_the_same_units_are_one_layer(runs: ReportRuns):
    (layer,) = report_layers([runs.beam, runs.optimal])
    assert layer.run is runs.optimal
    assert layer.others == (runs.beam,)
    assert layer.title == "Layer conv of <b>net</b>"
    with pytest.raises(ValueError, match="named twice"):
        report_layers([runs.beam, ox.Run(Path(runs.beam.path))])
