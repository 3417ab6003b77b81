"""Runs that are compared: against a plain computation, refused, in part, and in contradiction."""

import dataclasses
import itertools
import statistics
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.comparison_cases import found, stored_run
from helpers.run_cases import NAMES, memory_layer, small_table, stored_layer
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.comparison import Category, Comparison
from optexp_jax.comparison.comparing import compare_with_first
from optexp_jax.comparison.comparison import COMPARISON_COLUMNS
from optexp_jax.comparison.locations import Locations
from optexp_jax.methods import AbstractMethod
from optexp_jax.runs import BitmapUnits, Run, explain_layer

BEAM = ox.Beam(3, size=1)
OPTIMAL = ox.Optimal(3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("compare")
    layer = stored_layer(folder, 12)
    methods: list[AbstractMethod] = [BEAM, OPTIMAL, ox.Optimal(2)]
    return [explain_layer(folder / f"run{k}", layer, each) for k, each in enumerate(methods)]


# --- against a plain computation --------------------------------------------------------------


def held(masks: np.ndarray, formula: ox.Formula | None) -> np.ndarray:
    """Where a formula holds, from the raw masks."""
    if formula is None:
        return np.zeros(masks.shape[1:], bool)
    where = masks[NAMES.index(formula.concepts[0])]
    for operator, name in zip(formula.operators, formula.concepts[1:], strict=True):
        right = masks[NAMES.index(name)]
        where = {"OR": where | right, "AND": where & right, "AND NOT": where & ~right}[
            operator.name
        ]
    return where


def check_against_masks(
    made: Comparison, masks: np.ndarray, bitmaps: np.ndarray, a: Run, b: Run
) -> None:
    first = {result.unit: result.explanation for result in a.results}
    second = {result.unit: result.explanation for result in b.results}
    assert [unit.unit for unit in made.units] == sorted(first) == sorted(second)
    categories: list[str] = []
    for unit in made.units:
        one, other = first[unit.unit], second[unit.unit]
        assert one is not None
        assert other is not None
        sets = held(masks, one.formula), held(masks, other.formula)
        active = bitmaps[unit.unit]
        ious = [
            Fraction(int((where & active).sum()), max(int((where | active).sum()), 1))
            for where in sets
        ]
        concepts = [
            set() if found.formula is None else set(found.formula.concepts)
            for found in (one, other)
        ]
        if str(one.formula) == str(other.formula):
            expected = "same"
        elif concepts[0] == concepts[1]:
            expected = "3" if ious[0] == ious[1] else "2"
        else:
            expected = "tie" if ious[0] == ious[1] else "1"
        assert unit.category == expected
        assert unit.gain == float(ious[1] - ious[0])
        assert unit.same_locations is bool((sets[0] == sets[1]).all())
        categories.append(expected)
    differing = [category for category in categories if category != "same"]
    assert made.share_differing == len(differing) / len(categories)
    for row in made.categories():
        assert row.n == categories.count(row.category.value)
        assert row.share == (row.n / len(differing) if differing else 0)


def random_masks(rng: np.random.Generator) -> np.ndarray:
    """Concepts with twins and unions of others, so that formulas coincide."""
    masks = rng.random((len(NAMES), 3, 4, 4)) < 0.3
    masks[-1] = masks[0] | masks[1]
    masks[-2] = masks[2]
    return masks


@given(st.integers(0, 10**6))
@examples(4)
def test_random_runs_against_a_plain_computation(
    tmp_path_factory: pytest.TempPathFactory, seed: int
):
    rng = np.random.default_rng(seed)
    masks = random_masks(rng)
    bitmaps = np.stack([held(masks, random_formula(rng)) for _ in range(6)])
    bitmaps ^= rng.random(bitmaps.shape) < 0.1
    table = ox.ConceptTable.from_masks(masks, NAMES)
    folder = tmp_path_factory.mktemp("random")
    with as_users_run_it():
        a = explain_layer(folder / "a", BitmapUnits(table, bitmaps), BEAM)
        b = explain_layer(folder / "b", BitmapUnits(table, bitmaps), OPTIMAL)
    made = ox.compare(a, b, table=table)
    assert made.notes == ()
    check_against_masks(made, masks, bitmaps, a, b)
    assert all(unit.gain >= 0 for unit in made.units)
    assert made.b.n_optimal == 6


def random_formula(rng: np.random.Generator) -> ox.Formula:
    concepts = tuple(NAMES[k] for k in rng.permutation(len(NAMES))[:3])
    operators = tuple(ox.DEFAULT_OPERATORS[k] for k in rng.integers(0, 3, 2))
    return ox.Formula(concepts, operators)


def test_stored_layers_open_their_table_again(runs: list[Run]):
    a, b, _ = runs
    made = ox.compare(a.path, str(b.path))
    masks = np.stack([small_table().mask(name) for name in NAMES])
    check_against_masks(made, masks, memory_layer(12).bitmaps, a, b)
    assert made.differing
    assert made.notes == ()


# --- what a comparison says -------------------------------------------------------------------

FIRST = {
    0: found("a OR b", 30, 100),
    1: found("a OR b", 30, 100),
    2: found("a OR b AND c", 30, 100),
    3: found("a OR b", 30, 100),
    4: found("a", 20, 100),
    5: found("a", 10, 100),
    6: None,
    7: "out of luck",
}
SECOND = {
    0: found("a OR b", 30, 100, optimal=True),
    1: found("a AND b", 40, 100, optimal=True),
    2: found("a AND c OR b", 30, 100, optimal=True),
    3: found("a OR c", 30, 100, optimal=True),
    4: found("b", 50, 100, optimal=True),
    5: found("c", 20, 100, optimal=True),
    6: found("c", 20, 100, optimal=True),
    7: found("c", 20, 100, optimal=True),
}


@pytest.fixture
def made(tmp_path: Path) -> Comparison:
    stored_run(tmp_path / "a", FIRST, BEAM)
    stored_run(tmp_path / "b", SECOND, OPTIMAL)
    return ox.compare(tmp_path / "a", tmp_path / "b")


def test_shares_and_means_by_category(made: Comparison):
    assert [unit.category.value for unit in made.units] == ["same", "2", "3", "tie", "1", "1"]
    assert made.share_differing == 5 / 6
    assert [(row.category.value, row.n, row.share) for row in made.categories()] == [
        ("1", 2, 0.4),
        ("2", 1, 0.2),
        ("3", 1, 0.2),
        ("tie", 1, 0.2),
    ]
    first = made.ious("1")
    assert (first.mean_a, first.mean_b) == pytest.approx((0.15, 0.35))
    assert (first.std_a, first.std_b) == pytest.approx((0.05, 0.15))  # of the population
    assert first.mean_gain == pytest.approx(0.2)
    everything = made.ious()
    assert everything.n == 5
    assert everything.mean_a == statistics.fmean([0.3, 0.3, 0.3, 0.2, 0.1])
    assert made.ious(Category.DATA).mean_a is None


def test_largest_gains_come_first_and_ties_by_unit(made: Comparison):
    assert [unit.unit for unit in made.largest_gains()] == [4, 1, 5]
    assert [unit.unit for unit in made.largest_gains(1)] == [4]


def test_what_was_not_compared_is_told(made: Comparison):
    assert made.a.missing == (6,)
    assert made.a.failed == (7,)
    assert made.b.missing == made.b.failed == ()
    said = str(made)
    assert "5 of 6 units differ (83.3%): the IoU of B is higher in 3, lower in 0" in said
    assert "Not compared: 1 unit failed in A (7); 1 unit not done in A (6)" in said
    assert "1: other concepts, other IoU: 2 units, IoU 0.1500 ± 0.0500 in A" in said


def test_without_a_table_the_locations_are_not_known(made: Comparison):
    known = {unit.unit: unit.same_locations for unit in made.units}
    assert known == {0: True, 1: False, 2: None, 3: None, 4: False, 5: False}
    (note,) = made.notes
    assert "not known" in note
    assert "units in memory" in note


def test_the_data_frame(made: Comparison):
    frame = made.to_pandas()
    assert tuple(frame.columns) == COMPARISON_COLUMNS
    assert list(frame["unit"]) == [0, 1, 2, 3, 4, 5]
    assert int(frame["same_locations"].isna().to_numpy().sum()) == 2
    second = frame.to_dict("records")[1]
    assert second["formula_b"] == "(a AND b)"
    assert second["status_b"] == "optimal"
    changed = frame[frame.category.isin(["1", "2"])]
    assert changed.gain.tolist() == pytest.approx([0.1, 0.3, 0.1])


def test_runs_of_other_lengths_are_told_to_be(runs: list[Run]):
    made = ox.compare(runs[2], runs[1])
    assert made.notes == (
        "the runs ask different questions: formulas of up to 2 concepts in A, 3 in B",
    )
    assert all(unit.gain >= 0 for unit in made.units)


# --- runs that are not about the same ---------------------------------------------------------


def refusal(a: Run, b: Run) -> str:
    with pytest.raises(ValueError, match="common=True") as caught:
        ox.compare(a, b)
    return str(caught.value)


def test_other_units_are_refused_or_left_out(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("a", 1, 9), 1: found("a", 1, 9)})
    b = stored_run(tmp_path / "b", {1: found("a", 1, 9), 5: found("a", 1, 9)})
    said = refusal(a, b)
    assert f"1 only in {a.path}: 0; 1 only in {b.path}: 5" in said
    made = ox.compare(a, b, common=True)
    assert [unit.unit for unit in made.units] == [1]
    assert made.a.missing == made.b.missing == ()
    assert "the units differ" in made.notes[0]


def test_other_ranges_are_refused_or_compared(tmp_path: Path):
    layer = stored_layer(tmp_path, 4)
    a = explain_layer(tmp_path / "a", layer, ox.Beam(2))
    other = dataclasses.replace(layer, range="range:0.2:")
    b = explain_layer(tmp_path / "b", other, ox.Beam(2))
    said = refusal(a, b)
    assert "the ranges differ (range:0.5:; range:0.2:)" in said
    assert "activations differ" not in said
    made = ox.compare(a, b, common=True)
    assert len(made.units) == 4
    for unit in made.units:
        assert unit.a.formula is not None
        assert unit.b.formula is not None
        same = small_table().holds(unit.a.formula) == small_table().holds(unit.b.formula)
        assert unit.same_locations is bool(same.all())


def test_other_tables_are_refused_or_compared(tmp_path: Path):
    results = {0: found("a", 1, 9), 1: found("b", 1, 9), 2: found(None, 0, 9)}
    others = {0: found("a", 2, 9), 1: found("c", 1, 9), 2: found("c", 1, 9)}
    a = stored_run(tmp_path / "a", results, table="one")
    b = stored_run(tmp_path / "b", others, table="other")
    said = refusal(a, b)
    assert "the tables differ (in memory, checksum one; in memory, checksum other)" in said
    made = ox.compare(a, b, common=True)
    assert [unit.category.value for unit in made.units] == ["data", "tie", "1"]
    assert [unit.same_locations for unit in made.units] == [None, None, False]
    assert made.share_differing == 2 / 3


def test_other_activations_are_refused(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("a", 1, 9)}, source="one")
    b = stored_run(tmp_path / "b", {0: found("a", 1, 9)}, source="other")
    assert "the activations differ" in refusal(a, b)


@pytest.mark.parametrize("common", [False, True])
def test_nothing_to_compare_is_an_error(tmp_path: Path, common: bool):
    a = stored_run(tmp_path / "a", {0: found("a", 1, 9), 1: "failed"})
    b = stored_run(tmp_path / "b", {0: None, 1: found("a", 1, 9)})
    with pytest.raises(ValueError, match=r"No unit is explained in both .* share 2"):
        ox.compare(a, b, common=common)


def test_another_table_than_that_of_the_runs_is_refused(runs: list[Run]):
    masks = np.zeros((1, 2, 3), bool)
    with pytest.raises(ValueError, match="not the one that the runs were made with"):
        ox.compare(runs[0], runs[1], table=ox.ConceptTable.from_masks(masks, ["a"]))


# --- contradictions ---------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True])
def test_a_beam_above_an_optimum_is_an_error(tmp_path: Path, swapped: bool):
    beams = {0: found("c", 1, 9), 1: found("b", 4, 9), 2: found("b", 4, 9)}
    optima = {unit: found("a", 2, 9, optimal=True) for unit in beams}
    a = stored_run(tmp_path / "beam", beams)
    b = stored_run(tmp_path / "optimal", optima, OPTIMAL)
    with pytest.raises(ox.ContradictionError) as caught:
        ox.compare(*((b, a) if swapped else (a, b)))
    said = str(caught.value)
    assert "in units 1, 2, so one of them is wrong" in said
    assert f"Unit 1: b has the IoU 4/9 in {a.path}, above 2/9, which {b.path} claims" in said


def test_two_optima_that_differ_are_an_error(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("a", 2, 9, optimal=True)}, OPTIMAL)
    b = stored_run(tmp_path / "b", {0: found("a OR b", 3, 9, optimal=True)}, ox.Exhaustive(3))
    with pytest.raises(ox.ContradictionError, match="in unit 0"):
        ox.compare(a, b)


def test_an_optimum_of_shorter_formulas_is_no_contradiction(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("a", 2, 9, optimal=True)}, ox.Optimal(1))
    b = stored_run(tmp_path / "b", {0: found("a OR b", 3, 9, optimal=True)}, OPTIMAL)
    assert ox.compare(a, b).units[0].category == "1"
    a = stored_run(tmp_path / "c", {0: found("a", 4, 9, optimal=True)}, ox.Optimal(1))
    with pytest.raises(ox.ContradictionError):  # the longer ones contain the shorter ones
        ox.compare(a, b)


def test_one_formula_with_two_ious_is_an_error(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("a OR b", 2, 9)})
    b = stored_run(tmp_path / "b", {0: found("b OR a", 3, 9)})
    with pytest.raises(ox.ContradictionError, match=r"has the IoU 2/9 in .* and 3/9 in"):
        ox.compare(a, b)


def test_other_data_cannot_contradict(tmp_path: Path):
    a = stored_run(tmp_path / "a", {0: found("b", 4, 9)}, source="one")
    b = stored_run(tmp_path / "b", {0: found("a", 2, 9, optimal=True)}, OPTIMAL, source="other")
    assert ox.compare(a, b, common=True).units[0].category == "1"


def test_three_runs_are_all_held_against_one_another(tmp_path: Path):
    beam = stored_run(tmp_path / "beam", {0: found("a", 1, 9)})
    good = stored_run(tmp_path / "good", {0: found("b", 3, 9, optimal=True)}, OPTIMAL)
    bad = stored_run(tmp_path / "bad", {0: found("a", 1, 9, optimal=True)}, OPTIMAL)
    first, second = compare_with_first([beam, good, good])
    assert first == second
    for runs in itertools.permutations([beam, good, bad]):
        with pytest.raises(ox.ContradictionError):
            compare_with_first(runs)


def test_signatures_without_locations_make_no_difference():
    table = ox.ConceptTable.from_signatures([[0], [1], [0, 1]], [3, 0, 2], ["a", "b"])
    a, both = ox.Formula.concept("a"), ox.Formula.parse("a OR b")
    assert Locations(table).same(a, both)
    assert not Locations(table).same(a, ox.Formula.concept("b"))
    assert Locations().same(a, both) is None
