"""Verification: what is right passes, and every kind of damage is noticed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_cases import (
    NAMES,
    damaged,
    forged,
    memory_layer,
    shapes_layer,
    small_table,
    stored_layer,
)
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.counts.scores import Score
from optexp_jax.datasets import DatasetSpec
from optexp_jax.methods import FormulaSpace
from optexp_jax.runs import (
    BitmapUnits,
    NullModel,
    Run,
    RunStoreError,
    UnitResult,
    explain_layer,
)
from optexp_jax.runs.located_counts import count_located
from optexp_jax.runs.raw_maps import RawMaps
from optexp_jax.runs.reproof import Prover, StoredClaim, all_sets
from optexp_jax.runs.store import RunStore
from optexp_jax.runs.unit_check import ClaimOutcome
from optexp_jax.runs.verify import Verification, judge_claim, verify_run

METHOD = ox.Optimal(length=2, top_k=2)
XOR_JSON = {"name": "XOR", "bits": [1, 1, 0]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("verify")
    return explain_layer(folder / "run", stored_layer(folder, 3), METHOD)


def test_a_good_run_is_proved_again(run: Run):
    checks = list(verify_run(run))
    assert [check.unit for check in checks] == [0, 1, 2]
    for check in checks:
        assert check.good
        assert str(check) == (
            "IoU checked, optimality re-proved (every formula was tried), runners-up re-proved"
        )


UNVERIFIED = {"operator": "AND NOT", "concept": NAMES[0], "part": [NAMES[1]]}


def test_a_level_formula_that_comes_first_is_named():
    table = ox.ConceptTable.from_signatures(
        [[0], [1], [1, 2], [2]], [10, 10, 5, 10], ["ball_pit", "flower", "dining"]
    )
    neuron = ox.NeuronCounts.from_signatures(table, [9, 9, 0, 0])
    found = ox.explain(table, neuron, ox.Optimal(3))
    prover = Prover(table, FormulaSpace(3, ox.DEFAULT_OPERATORS), 60.0)
    (proof,) = prover.prove([StoredClaim(neuron, found.score)])
    assert judge_claim(found, proof)[0] is ClaimOutcome.REPROVED
    level = ox.Formula.parse("(ball_pit OR flower) AND NOT dining")
    claim, faults = judge_claim(replace(found, formula=level), proof)
    assert claim is ClaimOutcome.DISPROVED
    assert faults == ["((flower AND NOT dining) OR ball_pit) is level and comes first"]


def lower(found: dict[str, Any]) -> None:
    """Another formula, rightly scored, with the claim that it is the best."""
    other = found["runners_up"].pop()
    found |= {key: other[key] for key in ("formula", "intersection", "union", "equivalents")}
    found["upper_bound"] = found["intersection"] / found["union"]


def longer(found: dict[str, Any]) -> None:
    """A formula of three concepts for the same locations: x AND NOT y, where y is in z."""
    concepts = found["formula"]["concepts"]
    spare = next(name for name in NAMES if name not in concepts)
    found["formula"] = {"concepts": [*concepts, spare], "operators": ["OR", "OR"]}


def doubled(found: dict[str, Any]) -> None:
    """The best formula again in place of the runner-up."""
    found["runners_up"] = [
        {key: found[key] for key in ("formula", "intersection", "union", "equivalents")}
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (longer, "has 3 concepts, the run allows 2"),
        (lambda found: found["formula"].update(operators=[XOR_JSON]), "the run does not allow"),
        (lambda found: found["runners_up"].clear(), "is missing"),
        (doubled, "stands there twice"),
        (lambda found: found.update(within_truncated=True), "said to be left out"),
        (lambda found: found["equivalents"].append(found["formula"]), "equivalents"),
        (lambda found: found["unverified"].append(UNVERIFIED), "unverified steps"),
        (lambda found: found["stats"].update(stopped_by="gap"), "stopped by gap"),
        (lambda found: found.update(intersection=found["intersection"] + 1), "not"),
        (lambda found: found.update(union=found["union"] - 1), "not"),
        (lambda found: found["runners_up"][0].update(union=999), "999"),
        (lambda found: found["formula"]["concepts"].__setitem__(0, "bird"), "bird"),
        (lambda found: found.update(upper_bound=0.01), "below the IoU"),
        (lambda found: found.update(upper_bound=0.99), "optimal, but"),
        (lower, "a formula has the IoU"),
    ],
    ids=[
        *("too long", "operator", "dropped", "doubled", "limit", "equivalent", "step", "stopped"),
        *("intersection", "union", "runner-up", "formula", "bound", "unproved"),
        "not the best",
    ],
)
def test_damage_is_noticed(
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], object],
    named: str,
):
    wrong = damaged(run, tmp_path, change)
    good, bad, last = verify_run(wrong)
    assert good.good
    assert last.good
    assert not bad.good
    assert named in str(bad)
    assert str(bad).startswith("WRONG")
    assert cli.main(["verify", str(wrong.path)]) == 1
    captured = capsys.readouterr()
    assert "1 wrong" in captured.out
    assert captured.err.startswith("optexp verify: 1 of 3 results is wrong: unit 1")


def test_the_command_says_what_was_checked(run: Run, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["verify", str(run.path), "--units", "0,2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "2 units checked, 2 optima re-proved, 0 wrong"
    assert lines[-1] == (
        "Not checked: times and counters of work, and who did it; 1 unit that was not asked for."
    )
    assert cli.main(["verify", str(run.path), "--units", "7"]) == 1
    assert "no unit 7" in capsys.readouterr().err
    assert lines[1].startswith("unit 2: IoU checked, optimality re-proved")
    assert cli.main(["verify", str(run.path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["good"] for entry in shown] == [True] * 3


def test_workers_check_the_same(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("optexp_jax.cli.verify.LINE_EVERY", 0.0)
    assert cli.main(["verify", str(run.path), "--json"]) == 0
    here = json.loads(capsys.readouterr().out)
    assert cli.main(["verify", str(run.path), "--json", "--workers", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("3 units to check, about 0 s")
    there = json.loads(captured.out)
    assert [{**each, "seconds": 0} for each in there] == [{**each, "seconds": 0} for each in here]


def test_how_long_it_takes_is_told_before(run: Run):
    opened = run.open_source()
    for limit, proof in ((60.0, "known"), (1e-9, "limited")):
        forecast = Verification(opened, run.asked, limit).forecast(run.results)
        assert (forecast.proving == limit) == (proof == "limited")
        assert forecast.seconds(2) == pytest.approx(forecast.seconds() / 2)
        assert forecast.seconds() >= 3 * forecast.proving
    assert Verification(opened, run.asked).forecast([]).seconds() == 0


def test_claims_that_are_not_made_are_not_proved(tmp_path: Path):
    layer = memory_layer(2)
    beam = explain_layer(tmp_path / "beam", layer, ox.Beam(length=2))
    assert [check.claim for check in verify_run(beam, layer)] == [ClaimOutcome.NOT_CLAIMED] * 2
    early = explain_layer(tmp_path / "gap", layer, ox.Optimal(length=2, gap=100.0))
    claims = {check.claim for check in verify_run(early, layer)}
    assert claims <= {ClaimOutcome.BOUND_HOLDS, ClaimOutcome.NOT_CLAIMED, ClaimOutcome.REPROVED}
    single = explain_layer(tmp_path / "single", layer, ox.NetDissect())
    assert [check.claim for check in verify_run(single, layer)] == [ClaimOutcome.REPROVED] * 2


def test_another_source_is_refused(run: Run):
    with pytest.raises(ValueError, match="source is not the one"):
        list(verify_run(run, memory_layer(3, seed=1)))


def test_no_overlap_is_a_result_too(tmp_path: Path):
    table = small_table()
    masks = np.stack([table.mask(name) for name in table.names])
    layer = BitmapUnits(table, np.logical_not(masks.any(axis=0))[None])
    run = explain_layer(tmp_path / "run", layer, METHOD)
    assert run.results[0].explanation is not None
    assert run.results[0].explanation.formula is None
    (check,) = verify_run(run, layer)
    assert check.claim is ClaimOutcome.REPROVED


def test_scores_can_be_counted_on_the_dataset_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    layer = shapes_layer(tmp_path, 3, n_scenes=8)
    run = explain_layer(tmp_path / "run", layer, METHOD)
    assert cli.main(["verify", str(run.path), "--from-data"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert all("IoU checked on the dataset, optimality re-proved" in line for line in shown[:3])

    # Were the table not that of the dataset, only this check would notice.
    others = DatasetSpec.parse("shapes:n=8,seed=5").open()
    raw = RawMaps(others, RawMaps.of_table(layer.table).provenance)
    checks = list(verify_run(run, raw=raw))
    assert not any(check.good for check in checks)
    assert "on the dataset's label maps" in str(checks[0])


@given(cases(), st.data())
def test_scores_at_locations(case: Case, data: st.DataObject):
    names = data.draw(st.permutations(case.names))[: data.draw(st.integers(1, len(case.names)))]
    operators = [
        data.draw(st.sampled_from(ox.DEFAULT_OPERATORS), label="operator") for _ in names[1:]
    ]
    formula = ox.Formula(tuple(names), tuple(operators))
    mask = case.mask(formula)
    with as_users_run_it():
        (counted,) = count_located(case.table, [case.bitmap])
        score = counted.score(formula)
    assert score == Score(int((mask & case.bitmap).sum()), int((mask | case.bitmap).sum()))


def test_runners_up_within_a_share_are_proved_again(tmp_path: Path):
    layer = memory_layer(2)
    method = ox.Optimal(length=2, within=0.3)
    run = explain_layer(tmp_path / "run", layer, method)
    assert [check.others_proved for check in verify_run(run, layer)] == [True, True]
    assert run.results[1].explanation is not None
    assert run.results[1].explanation.runners_up

    def drop_last(found: dict[str, Any]) -> None:
        found["runners_up"].pop()

    good, bad = verify_run(damaged(run, tmp_path, drop_last), layer)
    assert good.good
    assert "is missing" in str(bad)


def test_runners_up_are_searched_for_where_there_are_too_many_formulas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    layer = memory_layer(1)
    run = explain_layer(tmp_path / "run", layer, METHOD)
    monkeypatch.setattr(all_sets, "MOST_SETS", 0)
    (check,) = verify_run(run, layer)
    assert check.others_proved
    assert check.how == "bounded by counts of pairs"
    (check,) = verify_run(run, layer, time_limit=1e-9)
    assert check.others_proved is False
    assert "runners-up not re-proved" in str(check)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("null")
    layer = stored_layer(folder, 2)
    return explain_layer(folder / "run", layer, ox.NetDissect(), null=NullModel(4, shift=True))


def test_draws_are_done_again(compared: Run, tmp_path: Path):
    assert [check.draws_again for check in verify_run(compared)] == [4, 4]
    assert str(next(verify_run(compared))).endswith("4 of 4 draws done again")

    def forge(store: RunStore) -> None:
        _, last = store.results()
        changed = json.loads(json.dumps(last.to_json()))
        changed["null"]["draws"][3][0] -= 1
        store._connection.execute("UPDATE units SET state = 'waiting' WHERE unit = 1")
        assert store.commit(UnitResult.from_json(changed))

    good, bad = verify_run(forged(compared, tmp_path, forge))
    assert good.good
    assert "draw 3" in str(bad)


def test_draws_that_are_missing_are_noticed(compared: Run, tmp_path: Path):
    def forge(store: RunStore) -> None:
        first, _ = store.results()
        changed = json.loads(json.dumps(first.to_json()))
        changed["null"]["draws"].pop()
        store._connection.execute("UPDATE units SET state = 'waiting' WHERE unit = 0")
        assert store.commit(UnitResult.from_json(changed))

    bad, _ = verify_run(forged(compared, tmp_path, forge))
    assert "3 draws of the null model, where the run asks for 4" in str(bad)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE units SET p_value = 0.01 WHERE unit = 1",
        "UPDATE units SET formula = 'sky' WHERE unit = 1",
        "UPDATE units SET iou = 0.5 WHERE unit = 1",
        "UPDATE units SET state = 'failed' WHERE unit = 1",
        "DELETE FROM units WHERE unit = 1",
        "INSERT INTO units (unit) VALUES (7)",
        "DELETE FROM sessions",
    ],
)
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_columns_and_units_must_be_those_of_the_run(
    compared: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    statement: str,
    sealed: bool,
):
    def forge(store: RunStore) -> None:
        store._connection.execute(statement)
        if sealed:
            store._seal_units(range(8))

    wrong = forged(compared, tmp_path, forge)
    assert cli.main(["results", str(wrong.path), "--json"]) == 1
    assert cli.main(["explain", "--run", str(wrong.path)]) == 1
    if "sessions" not in statement:
        assert cli.main(["verify", str(wrong.path)]) == 1
        with pytest.raises(RunStoreError, match="damaged"):
            assert wrong.results
    captured = capsys.readouterr()
    assert captured.out == ""
    assert all("is damaged" in line for line in captured.err.splitlines())


def test_a_set_of_locations_is_listed_once(tmp_path: Path):
    rng = np.random.default_rng(0)
    mask, other = rng.random((2, 6, 4, 4)) < 0.4
    table = ox.ConceptTable.from_masks(np.stack([mask, mask, other]), ["a", "b", "c"])
    layer = BitmapUnits(table, np.stack([mask, mask]))
    run = explain_layer(tmp_path / "run", layer, ox.Optimal(length=1, top_k=2))
    assert all(check.good for check in verify_run(run, layer))

    def same_again(found: dict[str, Any]) -> None:
        """The first runner-up is the equivalent formula of the best."""
        (twin,) = found["equivalents"]
        found["equivalents"] = []
        found["runners_up"] = [{**found["runners_up"][0], "formula": twin}]
        found["runners_up"][0] |= {key: found[key] for key in ("intersection", "union")}

    _, bad = verify_run(damaged(run, tmp_path, same_again), layer)
    assert "b holds at the same locations as a" in str(bad)
