"""Runs of whole layers: any executor, resuming, failing units, results for other programs."""

import json
import logging
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_cases import METHOD, Told, memory_layer, responses, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax.activations import ActivationStore
from optexp_jax.runs import BitmapUnits, Run, UnitResult, explain_layer
from optexp_jax.runs.export import as_json, write_csv, write_parquet
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.record import Counts
from optexp_jax.runs.sources import roll_maps


def test_a_run_explains_every_unit_as_explain_does(tmp_path: Path):
    layer = memory_layer(6)
    told = Told()
    run = explain_layer(tmp_path / "run", layer, METHOD, observer=told)
    for result, counts in zip(run.results, layer.counts(range(6)), strict=True):
        found = ox.explain(layer.table, counts, METHOD)
        assert result.same_finding(UnitResult(result.unit, found))
    assert told.started == told.finished == list(range(6))
    assert [counts.done for counts in told.counts] == list(range(7))
    assert run.counts == Counts(waiting=0, claimed=0, done=6, failed=0)
    assert repr(run).endswith("6 done, 0 failed, of 6)")


def test_units_in_memory_and_on_disk_are_the_same(tmp_path: Path):
    one = explain_layer(tmp_path / "one", memory_layer(4), METHOD)
    two = explain_layer(tmp_path / "two", stored_layer(tmp_path, 4), METHOD)
    assert same(one, two)
    with pytest.raises(ValueError, match="units in memory"):
        one.open_source()
    assert two.open_source().n_units == 4
    assert two.method == METHOD


def test_a_stopped_run_goes_on(tmp_path: Path):
    class Stop(Told):
        def unit_finished(self, result: UnitResult, counts: Counts) -> None:
            super().unit_finished(result, counts)
            if counts.done == 2:
                raise KeyboardInterrupt

    layer = memory_layer(5)
    with pytest.raises(KeyboardInterrupt):
        explain_layer(tmp_path / "run", layer, METHOD, observer=Stop())
    stopped = Run(tmp_path / "run")
    assert stopped.counts == Counts(waiting=3, claimed=0, done=2, failed=0), "no claim is left"
    told = Told()
    run = explain_layer(tmp_path / "run", layer, METHOD, observer=told)
    assert told.finished == [2, 3, 4]
    assert same(run, explain_layer(tmp_path / "whole", layer, METHOD))
    assert len(run.sessions) == 2
    with pytest.raises(ValueError, match=r"method\.length was 2 and is now 1"):
        explain_layer(tmp_path / "run", layer, ox.Optimal(length=1, top_k=2))
    with pytest.raises(ValueError, match="source was"):
        explain_layer(tmp_path / "run", memory_layer(5, seed=1), METHOD)


def test_a_unit_that_fails_does_not_stop_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    bitmaps = memory_layer(3).bitmaps.copy()
    bitmaps[1] = False
    layer = BitmapUnits(small_table(), bitmaps)
    with caplog.at_level(logging.INFO, "optexp_jax"):
        run = explain_layer(tmp_path / "run", layer, METHOD)
    assert run.counts == Counts(waiting=0, claimed=0, done=2, failed=1)
    assert "never fires" in str(run.results[1].error)
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert vars(warning)["unit"] == 1
    told = Told()
    explain_layer(tmp_path / "run", layer, METHOD, observer=told)
    assert told.finished == []
    explain_layer(tmp_path / "run", layer, METHOD, observer=told, retry_failed=True)
    assert told.finished == [1]


def test_a_silent_unit_says_why(tmp_path: Path):
    layer = stored_layer(tmp_path, 2)
    values = responses(2).copy()
    values[:, 1] = 0.0
    ActivationStore.from_array(tmp_path / "silent.zarr", values)
    silent = StoredLayer(layer.table, str(tmp_path / "silent.zarr"))
    run = explain_layer(tmp_path / "run", silent, ox.NetDissect())
    assert run.results[0].error is None
    assert str(run.results[1].error).startswith("ValueError: The unit is never active: ")


class Deaths(Executor):
    """An executor whose workers die with every task until `deaths` are over."""

    def __init__(self, deaths: int, victim: int) -> None:
        self._left, self._victim = deaths, victim
        self._threads = ThreadPoolExecutor(2)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._left and self._victim in args[0].units:
            self._left -= 1
            from optexp_jax.runs import WorkerDiedError

            future: Future[Any] = Future()
            future.set_exception(WorkerDiedError("A worker process died (SIGKILL)."))
            return future
        return self._threads.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


def test_units_of_dead_workers_are_done_again(tmp_path: Path):
    layer = memory_layer(4)
    whole = explain_layer(tmp_path / "whole", layer, METHOD)
    with Deaths(2, victim=2) as executor:
        run = explain_layer(tmp_path / "twice", layer, METHOD, executor=executor)
    assert same(run, whole)
    with Deaths(3, victim=2) as executor:
        run = explain_layer(tmp_path / "thrice", layer, METHOD, executor=executor)
    assert run.counts.failed == 1
    assert "3 times" in str(run.results[2].error)


def test_any_executor_serves(tmp_path: Path):
    layer = memory_layer(4)
    whole = explain_layer(tmp_path / "whole", layer, METHOD)
    with ThreadPoolExecutor(2) as executor:
        run = explain_layer(tmp_path / "threads", layer, METHOD, executor=executor)
    assert same(run, whole)


def test_a_source_that_cannot_be_opened_stops_the_run(tmp_path: Path):
    layer = stored_layer(tmp_path, 2)
    explain_layer(tmp_path / "run", layer, METHOD, units=[0])

    class Closed(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(FileNotFoundError("no such table"))
            return future

    with pytest.raises(FileNotFoundError, match="no such table"):
        explain_layer(tmp_path / "other", layer, METHOD, executor=Closed())
    assert Run(tmp_path / "other").counts.waiting == 2


def test_results_as_tables(tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    bitmaps = memory_layer(3).bitmaps.copy()
    bitmaps[2] = False
    run = explain_layer(tmp_path / "run", BitmapUnits(small_table(), bitmaps), METHOD)
    frame = run.to_pandas()
    assert list(frame["unit"]) == [0, 1, 2]
    for row, result in zip(frame.to_dict("records"), run.results, strict=True):
        if result.explanation is None:
            assert pandas.isna(row["union"])
            assert "never fires" in row["error"]
            continue
        found = result.explanation
        assert row["formula"] == str(found.formula)
        assert row["iou"] == found.iou
        assert row["iou"] == row["intersection"] / row["union"]
        assert row["runners_up"][0]["iou"] == found.runners_up[0].iou
        assert row["visited"] == found.stats.visited
    write_csv(run, tmp_path / "a.csv")
    write_parquet(run, tmp_path / "a.parquet")
    for read in (
        pandas.read_csv(tmp_path / "a.csv", dtype={"iou": str}),  # some read numbers inexactly
        pandas.read_parquet(tmp_path / "a.parquet"),
    ):
        assert list(read.columns) == list(frame.columns)
        assert list(read["iou"].dropna().astype(float)) == list(frame["iou"].dropna())
    shown = json.loads(json.dumps(as_json(run), allow_nan=False))
    assert shown["units"][0]["iou"] == frame["iou"][0]
    assert shown["configuration"]["method"]["length"] == 2


def test_bitmaps_must_fit_the_table():
    with pytest.raises(ValueError, match=r"\[unit, sample, \*location\]"):
        BitmapUnits(small_table(), np.ones((2, 3, 6, 6), bool))


def test_maps_are_rolled_as_numpy_rolls():
    rng = np.random.default_rng(0)
    maps = rng.random((2, 3, 4, 5)) < 0.5
    shifts = np.array([[1, 0], [3, 4], [0, 2]])
    rolled = roll_maps(maps, shifts)
    for unit in range(2):
        for sample in range(3):
            wanted = np.roll(maps[unit, sample], tuple(shifts[sample]), (0, 1))
            np.testing.assert_array_equal(rolled[unit, sample], wanted)
