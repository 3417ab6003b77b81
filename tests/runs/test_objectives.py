"""Runs by another metric: stored, exported, verified and compared."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.run_cases import damaged, memory_layer, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.comparison.contradictions import disproves
from optexp_jax.counts.metrics import Margins
from optexp_jax.runs import NullModel, Run, UnitResult, explain_layer, objective_reproof
from optexp_jax.runs.verify import ClaimOutcome, verify_run

OBJECTIVES = ("f1", "cosine", "phi")
each_objective = pytest.mark.parametrize("objective", OBJECTIVES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("objectives")
    layer = stored_layer(folder, 3)
    return {
        name: explain_layer(folder / name, layer, ox.Optimal(2, objective=name))
        for name in OBJECTIVES
    }


@each_objective
def test_claims_are_checked_by_their_own_metric(runs: dict[str, Run], objective: str):
    for check in verify_run(runs[objective]):
        assert check.good
        assert check.claim is ClaimOutcome.REPROVED
    for result in Run(runs[objective].path).results:
        assert result.explanation is not None
        assert result.explanation.objective == objective
        assert UnitResult.from_json(result.to_json()).same_finding(result)


def single_concept(found: dict[str, Any]) -> None:
    """The best single concept, rightly scored, with the claim that it is the best formula."""
    neuron = found["neuron"]
    single = neuron["single"]
    found["formula"] = ox.Formula.concept(single["concept"]).to_dict()
    found |= {"intersection": single["intersection"], "union": single["union"], "unverified": []}
    margins = Margins(neuron["active"], neuron["n_locations"])
    has = ox.Overlap(single["intersection"], single["union"] - neuron["active"], margins)
    found["upper_bound"] = has.value(ox.Objective(found["objective"]))


def another_metric(found: dict[str, Any]) -> None:
    found["objective"] = "iou"
    found["upper_bound"] = found["intersection"] / found["union"]


@each_objective
def test_damage_is_noticed(runs: dict[str, Run], objective: str, tmp_path: Path):
    for k, (change, named) in enumerate(
        (
            (single_concept, "a formula has"),
            (another_metric, "where the run asks for"),
            (lambda found: found.update(upper_bound=0.99), "optimal, but"),
        )
    ):
        folder = tmp_path / str(k)
        folder.mkdir()
        good, bad, last = verify_run(damaged(runs[objective], folder, change))
        assert good.good
        assert last.good
        assert named in str(bad)


def test_bounds_of_stopped_searches_are_checked(tmp_path: Path):
    layer = memory_layer(2)
    method = ox.Optimal(2, objective="cosine")
    run = explain_layer(tmp_path / "run", layer, method)
    (found, _) = (result.explanation for result in run.results)
    assert found is not None
    table, neuron = layer.table, layer.table.count(layer.bitmap(0))
    space = method.formula_space
    stopped = replace(found, status=ox.Status.FEASIBLE, upper_bound=found.value)
    assert objective_reproof.reprove_objective(table, neuron, space, stopped).proved
    low = replace(stopped, upper_bound=found.value * 0.9)
    assert objective_reproof.reprove_objective(table, neuron, space, low).better == found.score


def test_too_many_formulas_are_not_proved_again(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(objective_reproof, "ORACLE_WORK", 1)
    for check in verify_run(runs["phi"]):
        assert check.good
        assert check.claim is ClaimOutcome.NOT_REPROVED


def test_null_models_compare_ious(tmp_path: Path):
    method = ox.Optimal(2, objective="phi")
    with pytest.raises(ValueError, match="The null model compares IoUs"):
        explain_layer(tmp_path / "run", memory_layer(1), method, null=NullModel(2))


def test_claims_contradict_each_other_by_their_metric(runs: dict[str, Run]):
    (found, *_) = (result.explanation for result in runs["cosine"].results)
    assert found is not None
    space = ox.Optimal(2, objective="cosine").formula_space
    assert not disproves(found, found, space)
    lower = replace(found, status=ox.Status.FEASIBLE, upper_bound=found.value / 2)
    assert disproves(found, lower, space)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    layer = stored_layer(tmp_path, 2)
    given = ["--table", layer.table, "--activations", layer.activations, "--range", layer.range]
    run = str(tmp_path / "run")
    asked = ["explain", *given, "--length", "2", "--objective", "cosine", "--run", run, "--quiet"]
    assert cli.main(asked) == 0
    assert cli.main(["results", run, "--csv", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["objective"] for row in rows] == ["cosine", "cosine"]
    assert all(float(row["upper_bound"]) == float(row["cosine"]) for row in rows)
    assert {"f1", "phi", "precision", "recall"} <= rows[0].keys()
    capsys.readouterr()
    assert cli.main([*asked[:-5], "--objective", "accuracy", "--run", run]) == 2
    assert "accuracy" in capsys.readouterr().err
    beams = ["explain", *given, "--method", "beam", "--objective", "phi", "--run", f"{run}-2"]
    assert cli.main(beams) == 1
    assert "--objective is not a setting of beam" in capsys.readouterr().err
