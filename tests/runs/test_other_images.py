"""Runs that ask whether formulas hold on other images: stored, resumed, read back, verified."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_cases import forged, memory_layer, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax.runs import (
    BitmapUnits,
    LocalWorkers,
    OtherImages,
    OtherImagesResult,
    Run,
    RunStoreError,
    RunSummary,
    UnitResult,
    explain_layer,
)
from optexp_jax.runs.store import RunStore
from optexp_jax.runs.verify import verify_run

METHOD = ox.Optimal(length=2)
GROUPS = list("aabbccddee")
ALL = OtherImages(folds=3, bootstrap=4, within="noise", length="auto", seed=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("others")
    return explain_layer(folder / "run", memory_layer(3), METHOD, other_images=ALL, groups=GROUPS)


def others(result: UnitResult) -> OtherImagesResult:
    assert result.other_images is not None
    return result.other_images


def test_a_run_says_what_the_functions_say(tmp_path: Path):
    layer = memory_layer(3)
    asked = OtherImages(folds=3, bootstrap=6, within="noise", seed=2)
    run = explain_layer(tmp_path / "run", layer, METHOD, other_images=asked)
    counts = layer.counts(range(3))
    held_out = ox.held_out(layer.table, counts, METHOD, folds=3, seed=2)
    for result, unit, expected in zip(run.results, counts, held_out, strict=True):
        found = others(result)
        assert found.held_out == expected
        assert found.stability == ox.stability(layer.table, unit, METHOD, resamples=6, seed=2)
        assert found.stability is not None
        noise = found.stability.noise()
        assert found.confidence == ox.confidence_set(layer.table, unit, noise, METHOD)
        row = result.row()
        assert row["held_out_iou"] == expected.iou
        assert row["in_sample_iou"] == expected.found.iou
        assert row["recurrence"] == found.stability.recurrence
        assert row["noise"] == float(noise)
        assert found.confidence is not None
        assert row["simplest"] == str(found.confidence.simplest.formula)


def test_each_unit_has_its_own_length(run: Run):
    layer = memory_layer(3)
    for result, unit in zip(run.results, layer.counts(range(3)), strict=True):
        chosen = others(result).chosen
        assert chosen is not None
        assert chosen == ox.choose_length(
            layer.table, unit, METHOD, longest=2, folds=3, groups=GROUPS, seed=2
        )
        assert result.explanation is not None
        best = ox.explain(layer.table, unit, ox.Optimal(chosen.length))
        assert result.explanation.score == best.score
        assert others(result).held_out == chosen.held_out


def test_few_groups_are_said(run: Run, tmp_path: Path):
    summary = RunSummary.of(run.results)
    assert summary.holds is not None
    assert "5 groups, so each is left out once" in "; ".join(summary.notes)
    assert "decided on all images" in summary.notes[-1]
    few = OtherImages(folds=5)
    again = explain_layer(
        tmp_path / "few", memory_layer(1), METHOD, other_images=few, groups=["a"] * 4 + ["b"] * 6
    )
    held_out = others(again.results[0]).held_out
    assert held_out is not None
    assert len(held_out.folds) == 2
    assert "2 groups, so each is a fold" in RunSummary.of(again.results).notes[0]


def test_workers_and_stored_layers_find_the_same(run: Run, tmp_path: Path):
    stored = stored_layer(tmp_path, 3)
    with LocalWorkers(1) as workers:
        other = explain_layer(
            tmp_path / "run", stored, METHOD, other_images=ALL, groups=GROUPS, executor=workers
        )
    assert same(run, other)
    assert all(check.good for check in verify_run(other))


def test_other_images_are_part_of_the_configuration(run: Run):
    assert run.asked.other_images == ALL
    assert run.asked.groups == tuple(GROUPS)
    with pytest.raises(RunStoreError, match=r"other_images\.seed was 2 and is now 0"):
        explain_layer(
            run.path,
            memory_layer(3),
            METHOD,
            other_images=OtherImages(folds=3, bootstrap=4, within="noise", length="auto"),
            groups=GROUPS,
        )
    with pytest.raises(RunStoreError, match="groups was"):
        explain_layer(run.path, memory_layer(3), METHOD, other_images=ALL)


def test_verification_does_every_search_again(run: Run):
    for check in verify_run(run, memory_layer(3)):
        assert check.good, str(check)
        assert check.resamples == check.resamples_again == 3 * 2 + 5 + 1
        assert "12 of 12 searches on folds and resamples done again" in str(check)


CHANGES = {
    "a held-out score": lambda it: _add(it["lengths"][0]["folds"][0], 3, 1),
    "where it was found": lambda it: _add(it["lengths"][1]["folds"][1], 2, 1),
    "a fold that is left out": lambda it: [each["folds"].pop() for each in it["lengths"]],
    "the score in a resample": lambda it: _add(it["stability"]["resamples"][2], 6, 1),
    "out of bag": lambda it: _add(it["stability"]["resamples"][0], 8, 1),
    "recurrence": lambda it: it["stability"]["resamples"][0].__setitem__(
        9, not it["stability"]["resamples"][0][9]
    ),
    "a resample": lambda it: it["stability"]["resamples"].pop(),
    "a member": lambda it: _add(it["confidence"]["members"][0], 2, 1),
    "completeness": lambda it: it["confidence"].__setitem__(
        "complete", not it["confidence"]["complete"]
    ),
    "the noise": lambda it: it["confidence"].__setitem__("noise", [1, 7]),
}


def _add(row: list[Any], place: int, n: int) -> None:
    row[place] += n


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_forged_is_noticed(run: Run, tmp_path: Path, what: str):
    def forge(store: RunStore) -> None:
        results = {result.unit: result for result in store.results()}
        changed = json.loads(json.dumps(results[1].to_json()))
        CHANGES[what](changed["other_images"])
        store._connection.execute("UPDATE units SET state = 'waiting' WHERE unit = 1")
        assert store.commit(UnitResult.from_json(changed))

    checks = list(verify_run(forged(run, tmp_path, forge), memory_layer(3)))
    assert [check.good for check in checks] == [True, False, True]


def test_a_unit_that_no_concept_overlaps_has_nothing_to_resample(tmp_path: Path):
    table = small_table()
    nowhere = table.signature_map(0, table.n_samples) == 0
    bitmaps = np.stack([nowhere, table.mask("boat")])
    asked = OtherImages(folds=2, bootstrap=3, within="noise")
    run = explain_layer(tmp_path / "run", BitmapUnits(table, bitmaps), METHOD, other_images=asked)
    empty, boat = run.results
    assert others(empty).stability is others(empty).confidence is None
    assert others(empty).held_out is not None
    assert others(boat).stability is not None
    assert all(check.good for check in verify_run(run, BitmapUnits(table, bitmaps)))


def test_what_makes_no_sense_is_refused(tmp_path: Path):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "folds or"),
        ({"folds": 1}, "at least two"),
        ({"bootstrap": 0}, "at least 1"),
        ({"folds": 3, "within": "noise"}, "bootstrap"),
        ({"bootstrap": 3, "length": "auto"}, "folds"),
        ({"folds": 2, "seed": -1}, "negative"),
    ]
    for settings, said in wrong:
        with pytest.raises(ValueError, match=said):
            OtherImages(**settings)
    layer = memory_layer(1)
    for method, asked, said in (
        (ox.NetDissect(), OtherImages(folds=2, length="auto"), "no length"),
        (ox.NetDissect(), OtherImages(bootstrap=2, within="noise"), "optimal method"),
    ):
        with pytest.raises(ValueError, match=said):
            explain_layer(tmp_path / "run", layer, method, other_images=asked)
    asked = OtherImages(folds=2)
    with pytest.raises(ValueError, match="one group"):
        explain_layer(tmp_path / "run", layer, METHOD, other_images=asked, groups=["a"] * 10)
    with pytest.raises(ValueError, match="3 group labels"):
        explain_layer(tmp_path / "run", layer, METHOD, groups=list("abc"))
