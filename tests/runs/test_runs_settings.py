"""Settings as JSON and back, and which units are chosen."""

import json
import random

import equinox as eqx
import numpy as np
import pytest
from helpers.strategies import XOR
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.runs import UnitChoice, parse_units, sample_units
from optexp_jax.runs.settings import describe, differences, find_class, rebuild

METHODS = [
    ox.Optimal(),
    ox.Optimal(4, bounds=ox.PaperBounds(rewriting=False), top_k=5, gap=0.01, time_limit=2.5),
    ox.Optimal(operators=(ox.OR, XOR), batch_size=1),
    ox.Beam(2, size=7, guide=ox.MMESHGuide()),
    ox.Beam(guide=None),
    ox.NetDissect(),
    ox.Exhaustive(2),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_methods_are_made_again(method: ox.AbstractMethod):
    stored = json.loads(json.dumps(describe(method)))
    again = rebuild(stored)
    assert again == method
    assert describe(again) == stored


def test_all_methods_differ():
    texts = {json.dumps(describe(method)) for method in METHODS}
    assert len(texts) == len(METHODS)


def test_callbacks_are_no_settings():
    assert describe(ox.Optimal(callback=print)) == describe(ox.Optimal())


class WithArray(eqx.Module):
    weights: np.ndarray


def test_arrays_are_told_apart_but_not_made_again():
    one, same, other = (describe(WithArray(np.full(3, x))) for x in (1, 1, 2))
    assert one == same != other
    with pytest.raises(ValueError, match="cannot be made again"):
        rebuild(one, [WithArray])


def test_what_is_no_setting_is_refused():
    with pytest.raises(TypeError, match="cannot be kept"):
        describe(object())
    with pytest.raises(ValueError, match="module:Class"):
        find_class("os")
    with pytest.raises(ValueError, match="can be imported"):
        find_class("os:NotThere")


def test_differences_name_single_fields():
    before = describe(ox.Optimal(3, bounds=ox.TightBounds(beam=6)))
    after = describe(ox.Optimal(3, bounds=ox.TightBounds(beam=7), gap=0.1))
    assert differences(before, after) == [
        "bounds.beam was 6 and is now 7",
        "gap was 0.0 and is now 0.1",
    ]
    assert differences(before, before) == []


PUBLISHED_512 = (
    "1 14 41 63 64 75 82 93 95 97 101 103 111 142 143 145 150 195 209 223 227 244 249 256 265 266 "
    "288 298 308 310 317 323 327 333 338 341 362 366 394 408 414 430 444 453 458 483 488 497 501 "
    "505"
)


def test_random_units_are_the_published_ones():
    assert UnitChoice(random=50).choose(512) == tuple(map(int, PUBLISHED_512.split()))
    random.seed(3)
    wanted = tuple(sorted(random.sample(range(100), 7)))
    assert sample_units(100, 7, 3) == wanted


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=5))
def test_ranges_of_units(parts: list[tuple[int, int]]):
    text = ", ".join(f"{first}-{first + more}" if more else str(first) for first, more in parts)
    wanted = {k for first, more in parts for k in range(first, first + more + 1)}
    assert set(parse_units(text)) == wanted
    assert UnitChoice(units=text).choose(100) == tuple(sorted(wanted))


@pytest.mark.parametrize("text", ["", "a", "3-", "-3", "4-2", "1,,2", "1.5"])
def test_bad_ranges_are_refused(text: str):
    with pytest.raises(ValueError, match="range"):
        parse_units(text)


def test_choices_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="not both"):
        UnitChoice(units="1", random=2)
    with pytest.raises(ValueError, match="no unit 12"):
        UnitChoice(units="3,12").choose(12)
    with pytest.raises(ValueError, match="cannot be drawn"):
        UnitChoice(random=13).choose(12)
    assert UnitChoice().choose(3) == (0, 1, 2)
