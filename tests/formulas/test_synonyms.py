"""Concepts by their first synonym."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.formulas.text import find_concept

NAMES = [
    "car, auto, automobile",
    "sky",
    "building;edifice",
    "bar",
    "bar, rod",
    "pole, post",
    "pole, rod",
]
MASKS = np.random.default_rng(0).random((len(NAMES), 3, 4, 5)) < 0.4
TABLE = ox.ConceptTable.from_masks(MASKS, NAMES)


def test_formulas():
    found = ox.Formula.parse("car OR building AND NOT sky", TABLE)
    assert found.concepts == ("car, auto, automobile", "building;edifice", "sky")
    assert ox.Formula.parse(str(found), TABLE) == found
    assert ox.Formula.parse(str(found)) == found
    np.testing.assert_array_equal(TABLE.mask(found), (MASKS[0] | MASKS[2]) & ~MASKS[1])


def test_selections_and_masks():
    assert TABLE.select(["building", "car"]).names == (NAMES[0], NAMES[2])
    assert TABLE.concept("car").name == "car, auto, automobile"
    np.testing.assert_array_equal(TABLE.mask("building"), MASKS[2])


def test_the_whole_name_comes_first():
    assert ox.Formula.parse("bar", TABLE).concepts == ("bar",)


def test_what_is_refused():
    shared = r'several concepts are called pole: "pole, post", "pole, rod"; write one of these'
    for read in (lambda: ox.Formula.parse("sky OR pole", TABLE), lambda: TABLE.select(["pole"])):
        with pytest.raises(ValueError, match=shared):
            read()
    with pytest.raises(ValueError, match="unknown concept auto"):
        ox.Formula.parse("auto", TABLE)
    with pytest.raises(ValueError, match="must be distinct"):
        ox.Formula.parse('car OR "car, auto, automobile"', TABLE)
    # What is stored goes by whole names.
    with pytest.raises(ValueError, match='unknown concept car; did you mean "car, auto, automob'):
        TABLE.holds(ox.Formula.concept("car"))


def test_messages_know_first_synonyms():
    with pytest.raises(ValueError, match='unknown concept cra; did you mean "car, auto, automob'):
        ox.Formula.parse("cra", TABLE)
    both = r'unknown concept poel; did you mean "pole, post" or "pole, rod"\?'
    with pytest.raises(ValueError, match=both):
        TABLE.select(["poel"])


@given(st.lists(st.text("ab,; ", min_size=1, max_size=6), unique=True, min_size=1))
def test_a_name_is_found_as_itself(names: list[str]):
    for name in names:
        assert find_concept(name, names) == name
