"""The unit's size and its best single concept: filled in, stored, and checked by `verify`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_cases import NAMES, damaged, memory_layer, shapes_layer, small_table, stored_layer
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it
from hypothesis import given

import optexp_jax as ox
from optexp_jax.counts.neuron_summary import NeuronSummary, SingleConcept, best_concept
from optexp_jax.datasets import DatasetSpec
from optexp_jax.runs import BitmapUnits, Run, UnitResult, explain_layer
from optexp_jax.runs.located_counts import count_located
from optexp_jax.runs.raw_maps import RawMaps
from optexp_jax.runs.verify import verify_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("verify")
    return explain_layer(folder / "run", stored_layer(folder, 3), ox.Optimal(length=2))


@given(case=cases())
def test_the_best_concept_is_that_of_the_masks(case: Case):
    neuron = case.neuron
    if not neuron.size:
        return
    with as_users_run_it():
        found = best_concept(case.table, neuron)
        by_lists = count_located(case.table, [case.bitmap])[0].best_concept
        explained = ox.explain(case.table, neuron, ox.NetDissect())
    scores = {
        name: ox.Score(int((mask & case.bitmap).sum()), int((mask | case.bitmap).sum()))
        for name in case.names
        for mask in [case.mask(ox.Formula.concept(name))]
    }
    highest = max(score.ratio for score in scores.values())
    first = min(name for name in case.names if scores[name].ratio == highest)
    if highest == 0:
        assert found == SingleConcept(None, 0, neuron.size)
        assert by_lists is None
    else:
        assert found == SingleConcept(first, scores[first].intersection, scores[first].union)
        assert by_lists == first
    assert explained.score == found.score
    assert explained.neuron == NeuronSummary(neuron.size, case.bitmap.size, found)


@given(case=cases())
def test_precision_and_recall_are_shares_of_the_masks(case: Case):
    if not case.neuron.size:
        return
    with as_users_run_it():
        found = ox.explain(case.table, case.neuron, ox.Beam(length=2))
    assert found.neuron is not None
    assert found.neuron.active_share == case.bitmap.mean()
    if found.formula is None:
        assert (found.precision, found.recall, found.highest_for_sizes) == (0.0, 0.0, 0.0)
        return
    mask = case.mask(found.formula)
    both = int((mask & case.bitmap).sum())
    assert found.mask_size == mask.sum()
    assert found.precision == both / int(mask.sum())
    assert found.recall == both / int(case.bitmap.sum())
    sizes = int(mask.sum()), int(case.bitmap.sum())
    assert found.highest_for_sizes == min(sizes) / max(sizes)
    assert found.iou <= min(sizes) / max(sizes)


def test_a_method_alone_says_nothing_of_the_neuron():
    layer = memory_layer(1)
    found = ox.Beam(length=2).run(layer.table, layer.table.count(layer.bitmap(0)))
    assert found.neuron is None
    assert (found.precision, found.recall, found.mask_size, found.highest_for_sizes) == (None,) * 4


def second_concept(found: dict[str, Any]) -> None:
    """Another single concept, rightly scored, as the best one."""
    layer, single = memory_layer(3), found["neuron"]["single"]
    counts = layer.table.count(layer.bitmap(1))
    others = [name for name in NAMES if name != single["concept"]]
    scores = {name: ox.iou(layer.table, counts, ox.Formula.concept(name)) for name in others}
    name = max(others, key=lambda name: scores[name].ratio)
    score = scores[name]
    single.update(concept=name, intersection=score.intersection, union=score.union)


def lost(found: dict[str, Any]) -> None:
    """No concept, where one overlaps."""
    found["neuron"]["single"].update(concept=None, intersection=0, union=found["neuron"]["active"])


def shrunk(found: dict[str, Any]) -> None:
    found["neuron"]["active"] -= 1


DAMAGE = {
    "none": (lambda found: found.update(neuron=None), "nothing is said of the unit's size"),
    "active": (shrunk, "locations are active, not"),
    "locations": (lambda found: found["neuron"].update(n_locations=9999), "of 9999"),
    "foreign": (lambda found: found["neuron"]["single"].update(concept="whale"), "'whale', which"),
    "score": (lambda found: found["neuron"]["single"].update(intersection=1), "has IoU"),
    "second": (second_concept, "the best single concept is"),
    "lost": (lost, ", not None"),
}


@pytest.mark.parametrize(("change", "named"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed(
    run: Run, tmp_path: Path, change: Callable[[dict[str, Any]], object], named: str
):
    good, bad, last = verify_run(damaged(run, tmp_path, change))
    assert good.good
    assert last.good
    assert not bad.good
    assert named in str(bad)


def test_the_single_concept_is_counted_on_the_dataset_too(tmp_path: Path):
    layer = shapes_layer(tmp_path, 2, n_scenes=8)
    run = explain_layer(tmp_path / "run", layer, ox.NetDissect())
    others = DatasetSpec.parse("shapes:n=8,seed=5").open()
    provenance = RawMaps.of_table(layer.table).provenance
    assert all(check.good for check in verify_run(run, raw=RawMaps(others, provenance))) is False
    assert all(check.good for check in verify_run(run, raw=RawMaps.of_table(layer.table)))


def test_no_concept_overlaps(tmp_path: Path):
    table = small_table()
    masks = np.stack([table.mask(name) for name in table.names])
    layer = BitmapUnits(table, np.logical_not(masks.any(axis=0))[None])
    run = explain_layer(tmp_path / "run", layer, ox.Optimal(length=2))
    (row,) = run.rows()
    assert (row["single_concept"], row["single_iou"], row["recall"]) == (None, 0.0, 0.0)
    (check,) = verify_run(run, layer)
    assert check.good


@pytest.mark.parametrize(
    "change",
    [
        {"active": 0},
        {"active": 10**6},
        {"n_locations": 3},
        {"single": {"concept": "sky", "intersection": 0, "union": 9}},
        {"single": {"concept": None, "intersection": 4, "union": 9}},
        {"single": {"concept": "sky", "intersection": 4, "union": 3}},
        {"single": {"concept": 3, "intersection": 4, "union": 9}},
        {"single": None},
        {"size": 3},
    ],
    ids=str,
)
def test_what_cannot_be_is_not_read(run: Run, change: dict[str, Any]):
    stored = json.loads(json.dumps(run.results[0].to_json()))
    assert UnitResult.from_json(stored) == run.results[0]
    stored["explanation"]["neuron"].update(change)
    with pytest.raises(ValueError, match=r"neuron|Neuron|Single|IoU|concept|TypeError"):
        UnitResult.from_json(stored)


def test_a_neuron_without_a_summary_can_be_stored():
    found = ox.Explanation(ox.Formula.parse("a"), 3, 4, 0.75, ox.Status.OPTIMAL)
    result = UnitResult(0, found)
    assert UnitResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert "active" not in result.row()
    single = SingleConcept("a", 3, 4)
    known = replace(found, neuron=NeuronSummary(3, 10, single))
    row = UnitResult(0, known).row()
    assert (row["active"], row["active_share"], row["single_concept"]) == (3, 0.3, "a")
    assert (row["precision"], row["recall"], row["single_iou"]) == (0.75, 1.0, 0.75)
