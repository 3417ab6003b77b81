"""Arbitrary text and JSON where runs take some: a valid result or the documented error."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.activations import parse_rule
from optexp_jax.activations.ranges import AbstractRangeRule
from optexp_jax.cli.explain_options import GROUPS
from optexp_jax.cli.methods import METHODS, make_method, starting_method
from optexp_jax.cli.options import read_file
from optexp_jax.counts.scores import Score
from optexp_jax.runs import NullResult, OtherImagesResult, RunStoreError, UnitChoice, UnitResult
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.settings import OWN_CLASSES, describe, rebuild
from optexp_jax.runs.store import RunStore
from optexp_jax.validation import (
    ChosenLength,
    ConfidenceMember,
    ConfidenceSet,
    FoldScore,
    HeldOut,
    ResampleScore,
    Scheme,
    Stability,
)

NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.integers(-3, 12), st.floats(), st.sampled_from(["", "1e999"])
)
ALMOST = st.lists(
    st.one_of(
        st.sampled_from(["0", "3-1", "0-9", "1-999999999999", " ", "-", "٣", "1_0"]), st.text()
    ),
    max_size=4,
).map(",".join)


@examples(300)
@given(ALMOST | st.text(), st.integers(1, 40))
def test_choices_of_units(text: str, n_units: int):
    try:
        chosen = UnitChoice(units=text).choose(n_units)
    except ValueError:
        return
    assert chosen
    assert list(chosen) == sorted(set(chosen))
    assert 0 <= chosen[0] <= chosen[-1] < n_units


PARTS = st.lists(NUMBERS.map(str) | st.text(max_size=5), max_size=4)


@examples(300)
@given(st.sampled_from(["quantile", "clusters", "range", ""]), PARTS, st.text())
def test_activation_ranges(kind: str, parts: list[str], rest: str):
    for text in (":".join([kind, *parts]), rest):
        try:
            rule = parse_rule(text)
        except ValueError:
            continue
        assert isinstance(rule, AbstractRangeRule)


EVERY = [option for group in GROUPS.values() for option in group]
VALUES = st.one_of(
    NUMBERS.filter(lambda value: value != ""),
    st.booleans(),
    st.text(max_size=20),
    st.sampled_from(["tight", "paper", "OR,AND", "no_such:Class", "a:b:c", ":", "optimal", "."]),
    st.lists(st.integers(0, 9) | st.text(max_size=3), max_size=3),
)


@examples(150)
@given(st.dictionaries(st.sampled_from([option.key for option in EVERY]), VALUES, max_size=4))
def test_files_of_options(given: dict[str, Any]):
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    check_file("\n".join(lines).encode())


@examples(100)
@given(st.binary(max_size=60) | st.text().map(str.encode))
def test_files_that_are_no_files_of_options(content: bytes):
    check_file(content)


def test_a_file_of_options_may_be_nested_deeply():
    with pytest.raises(ValueError, match="not a TOML file"):
        check_file(b"length = " + b"[" * 100_000, refused=True)


def check_file(content: bytes, *, refused: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "options.toml"
        path.write_bytes(content)
        try:
            found = read_file(path, EVERY)
        except ValueError:
            if refused:
                raise
            return
    assert set(found) <= {option.name for option in EVERY}


FIELDS = [option.name for option in GROUPS["the method"] if option.name not in ("method", "bounds")]
PLAIN = st.one_of(NUMBERS, st.booleans(), st.none(), st.text(max_size=5))


@examples(200)
@given(st.sampled_from(list(METHODS)), st.dictionaries(st.sampled_from(FIELDS), PLAIN, max_size=3))
def test_settings_of_methods(name: Any, given: dict[str, Any]):
    with as_users_run_it():
        try:
            method = make_method(name, given)
        except (ValueError, TypeError):
            return
    assert isinstance(method, ox.AbstractMethod)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
SETTINGS = [json.loads(json.dumps(describe(starting_method(name)))) for name in METHODS]


@st.composite
def almost_settings(draw: st.DrawFn) -> Any:
    """Settings of a method with some fields replaced or left out."""
    stored = dict(draw(st.sampled_from(SETTINGS)))
    for key in draw(st.lists(st.sampled_from(sorted(stored)), max_size=2)):
        stored[key] = draw(
            JSON
            | PLAIN
            | st.sampled_from([f"optexp_jax:{name}" for name in OWN_CLASSES])
            | st.sampled_from(SETTINGS)
        )
    for key in draw(st.lists(st.sampled_from(sorted(stored)), max_size=1)):
        if draw(st.booleans()):
            del stored[key]
    return stored


@examples(300)
@given(almost_settings() | JSON)
def test_stored_settings(stored: Any):
    with as_users_run_it():
        try:
            made = rebuild(stored)
        except ValueError:
            return
        kept = json.dumps(describe(made))
        assert json.dumps(describe(rebuild(json.loads(kept)))) == kept


CONFIGURATION = Configuration(ox.Optimal(), (0, 1), "table", "source").to_json()


@examples(150)
@given(st.fixed_dictionaries({key: JSON | st.just(value) for key, value in CONFIGURATION.items()}))
def test_stored_configurations(stored: Any):
    try:
        made = Configuration.from_json(stored)
    except ValueError:
        return
    assert isinstance(made, Configuration)


FOUND = ox.Explanation(
    ox.Formula.parse("a OR b"),
    3,
    4,
    0.75,
    ox.Status.OPTIMAL,
    equivalents=(ox.Formula.parse("b OR a AND NOT c"),),
    runners_up=(ox.RunnerUp(ox.Formula.parse("a"), 1, 4),),
)
FOLD = FoldScore(ox.Formula.parse("a"), Score(1, 2), Score(1, 3), proved=True)
HELD_OUT = HeldOut((FOLD, FoldScore(None, Score(0, 0), Score(0, 1), proved=True)), "two groups")
STABLE = Stability(
    ox.Formula.parse("a OR b"),
    FOUND.score,
    (
        ResampleScore(FOLD.formula, Score(1, 2), 0.5, True, Score(1, 3), Score(0, 1), recurs=False),
        ResampleScore(None, Score(0, 0), 0.0, True, Score(0, 3), Score(3, 4), recurs=False),
    ),
    Scheme.LEAVE_ONE_OUT,
)
NEAR = ConfidenceSet(
    (ConfidenceMember(ox.Formula.parse("a OR b"), FOUND.score),), STABLE.noise(), complete=True
)
OTHERS = (
    OtherImagesResult(HELD_OUT, STABLE, NEAR),
    OtherImagesResult(HELD_OUT, chosen=ChosenLength.of([HELD_OUT, HELD_OUT])),
)
RESULTS = [
    UnitResult(0, FOUND, NullResult.of([Score(1, 2)], FOUND.score, [bound]), other_images=other)
    for bound, other in zip((None, 0.7), OTHERS, strict=True)
]
STORED = [json.dumps(result.to_json()) for result in RESULTS]


def test_results_come_back_as_they_were():
    for result, stored in zip(RESULTS, STORED, strict=True):
        assert UnitResult.from_json(json.loads(stored)) == result


@st.composite
def almost_results(draw: st.DrawFn) -> Any:
    """A stored result with something in it replaced or left out."""
    stored = json.loads(draw(st.sampled_from(STORED)))
    place = stored
    for _ in range(draw(st.integers(0, 5))):
        inner = [value for value in _items(place).values() if isinstance(value, dict | list)]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    if not place:
        return stored
    key = draw(st.sampled_from(sorted(_items(place), key=str)))
    if draw(st.booleans()):
        place[key] = draw(JSON)
    else:
        del place[key]
    return stored


def _items(place: Any) -> dict[Any, Any]:
    return place if isinstance(place, dict) else dict(enumerate(place))


@examples(300)
@given(almost_results() | JSON)
def test_stored_results(stored: Any):
    try:
        found = UnitResult.from_json(stored)
    except ValueError:
        return
    assert UnitResult.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.row()["unit"] == found.unit


@examples(60)
@given(st.sampled_from(["configuration", "inputs", "origin", "sessions", "id"]), JSON | st.text())
def test_stored_descriptions(key: str, value: Any):
    configuration = Configuration(ox.NetDissect(), (0, 1), "table", "source")
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore.create(Path(folder) / "run", configuration, None)
        store._set_meta(key, value)
        store.close()
        try:
            again = RunStore.open(Path(folder) / "run")
        except RunStoreError:
            return
        try:
            assert list(again.results()) == []
            assert again.sessions() == []
        except RunStoreError:
            return
        finally:
            again.close()
