"""Any text as a formula or a dataset's name: a result that reads back, or the documented error."""

import argparse
import json

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import assume, given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.cli.data_build import _mask_shape, _option
from optexp_jax.datasets import DatasetSpec, open_dataset

NAMES = ["a", "b c", "OR", "-x", "é", '"', "\x1b[2J", ""]
TABLE = ox.ConceptTable.from_masks(np.eye(len(NAMES), dtype=bool)[:, :, None], NAMES)

# Mostly pieces that mean something, so that more than the first word is reached.
pieces = st.sampled_from(
    [" ", "(", ")", "AND", "OR", "NOT", "AND NOT", "a", "b", '"b c"', '"', "\\", "\\u001b", "\\U",
     "\\U00110000", "-x", "é", "\0", "\ud800", ":", ",", "=", "n=1", "shapes", "folder:/x", "add=",
     "1e999", "9" * 30, "true", ".", "..", "/", "os.system", "+"]
)  # fmt: skip
texts = st.one_of(st.text(max_size=40), st.lists(pieces, max_size=14).map("".join))


@examples(300)
@given(texts)
def test_formulas(text: str):
    for known in (None, TABLE):
        try:
            found = ox.Formula.parse(text) if known is None else ox.Formula.parse(text, known)
        except ValueError:
            continue
        assert ox.Formula.parse(str(found)) == found


@pytest.mark.parametrize("text", ["(" * 50_000, "(" * 50_000 + "a" + ")" * 50_000,
                                  '"' + "\\" * 50_001, "a" + " OR a" * 20_000,
                                  "\\U" * 10_000])  # fmt: skip
def test_long_formulas(text: str):
    try:
        ox.Formula.parse(text)
    except ValueError:
        return


@examples(300)
@given(texts)
def test_specs(text: str):
    try:
        spec = DatasetSpec.parse(text)
    except ValueError:
        return
    assert DatasetSpec.from_json(spec.to_json()) == spec
    assert str(DatasetSpec.parse(str(spec))) == str(spec)


@examples(150)
@given(texts)
def test_datasets_by_any_name(text: str):
    # Only kinds that read nothing here, or nothing at all: no folder of this machine is walked.
    assume(not text.startswith(("folder", "coco", "ade20k", "arrays", "broden", "cityscapes")))
    assume("n=" not in text or "n=1" in text)
    try:
        open_dataset(text)
    except (ValueError, TypeError, OSError):
        return


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
specs = st.fixed_dictionaries(
    {"kind": json_values, "root": json_values, "options": json_values, "add": json_values}
)


@examples(200)
@given(json_values | specs)
def test_stored_specs(stored: object):
    for form in (json.dumps(stored), stored if isinstance(stored, dict) else "null"):
        try:
            spec = DatasetSpec.from_json(form)
        except ValueError:
            continue
        assert isinstance(spec.kind, str)
        assert DatasetSpec.from_json(spec.to_json()).kind == spec.kind


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"kind":' * 50_000, "null", "1"])
def test_stored_specs_that_are_none(text: str):
    with pytest.raises(ValueError, match="not a dataset spec"):
        DatasetSpec.from_json(text)


@examples(200)
@given(texts)
def test_options_of_the_command_line(text: str):
    for convert in (_option, _mask_shape):
        try:
            convert(text)
        except (ValueError, argparse.ArgumentTypeError):
            continue
