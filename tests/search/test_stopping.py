"""Why a search stopped: an enumeration, whose text says what to do, wherever results go."""

import csv
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_cases import memory_layer

import optexp_jax as ox
from optexp_jax.runs import Run, UnitResult, explain_layer
from optexp_jax.runs.export import as_json, write_csv
from optexp_jax.runs.verify import verify_run
from optexp_jax.testing import Case

LIMITS: dict[ox.StoppedBy, dict[str, Any]] = {
    ox.StoppedBy.TIME_LIMIT: {"time_limit": 1e-9},
    ox.StoppedBy.GAP: {"gap": 100.0},
    ox.StoppedBy.MAX_NODES: {"max_nodes": 1},
}


def crowded() -> Case:
    """Nodes wait after the first turn."""
    rng = np.random.default_rng(0)
    masks = rng.random((6, 3, 40)) < 0.4
    inside = (rng.random((3, 40)) < 0.4).astype(np.int64)
    return Case(masks, inside, 1 - inside)


def stopped(by: ox.StoppedBy) -> ox.Explanation:
    case = crowded()
    method = ox.Optimal(3, bounds=ox.TightBounds(beam=0), batch_size=1, **LIMITS[by])
    return ox.explain(case.table, case.neuron, method)


def test_stored_values_are_the_names_of_settings():
    assert {str(by) for by in ox.StoppedBy} == {"time_limit", "gap", "max_nodes"}
    for by in ox.StoppedBy:
        assert ox.StoppedBy(by.value) is by
        assert pickle.loads(pickle.dumps(by)) is by
        assert by.value in {field.name for field in ox.Optimal.__dataclass_fields__.values()}
        assert by.value in by.advice, "the advice names the setting"
        assert "resume=found.state" in by.advice


@pytest.mark.parametrize("by", list(ox.StoppedBy))
def test_each_limit_tells(by: ox.StoppedBy):
    found = stopped(by)
    assert found.status == "feasible"
    assert found.stats.stopped_by is by
    assert found.advice is not None
    assert found.advice.startswith(f"{by.reason} after ")
    assert f"at IoU {found.iou:.4f} with upper bound {found.upper_bound:.4f}: " in found.advice
    assert found.advice.endswith(by.advice)
    assert f"feasible, upper bound {found.upper_bound:.4f}, {by.reason})" in str(found)
    again = UnitResult.from_json(json.loads(json.dumps(UnitResult(0, found).to_json())))
    assert again.explanation is not None
    assert again.explanation.stats.stopped_by is by
    assert again.same_finding(UnitResult(0, found))


def test_a_finished_search_has_nothing_to_advise():
    case = crowded()
    found = ox.explain(case.table, case.neuron)
    assert (found.stats.stopped_by, found.advice) == (None, None)


@pytest.mark.parametrize("text", ["time limit", "", "GAP", 1, True, ["gap"], {}])
def test_other_texts_are_no_results(text: object):
    stored: Any = UnitResult(0, stopped(ox.StoppedBy.GAP)).to_json()
    stored["explanation"]["stats"]["stopped_by"] = text
    with pytest.raises(ValueError, match="StoppedBy"):
        UnitResult.from_json(stored)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("stopping") / "run"
    return explain_layer(folder, memory_layer(2), ox.Optimal(3, gap=100.0))


def test_runs_keep_it(run: Run, tmp_path: Path):
    reasons = [each.explanation.stats.stopped_by for each in run.results if each.explanation]
    assert ox.StoppedBy.GAP in reasons
    kept = [None if reason is None else reason.value for reason in reasons]
    assert [row["stopped_by"] for row in run.rows()] == kept
    assert all(type(row["stopped_by"]) in (str, type(None)) for row in run.rows())
    write_csv(run, tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        assert [row["stopped_by"] for row in csv.DictReader(file)] == [
            reason or "" for reason in kept
        ]
    units = json.loads(json.dumps(as_json(run)))["units"]
    assert [unit["stopped_by"] for unit in units] == kept
    assert all(check.good for check in verify_run(run, memory_layer(2)))
