"""Data that is damaged under a run: it stops, stores nothing false, and goes on after the mend."""

import itertools
import shutil
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.corruption import WHILE_OPEN, Case, delete_data, foreign_data, mend, swap_data
from helpers.run_cases import memory_layer, responses, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations import (
    ActivationKey,
    ActivationMetadata,
    ActivationStore,
    ActivationWriter,
    progress,
)
from optexp_jax.concepts import ConceptTable, patches
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.runs import BitmapUnits, LocalWorkers, Observer, Run, UnitResult, explain_layer
from optexp_jax.runs import run as run_module
from optexp_jax.runs import task as tasks
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.null import NullModel
from optexp_jax.runs.record import Counts
from optexp_jax.runs.shared import share_bitmaps
from optexp_jax.runs.sources import SourceIdentity
from optexp_jax.runs.store import RunStoreError
from optexp_jax.runs.task import Task, run_task
from optexp_jax.stores.store import DataFileError

N_UNITS = 8
METHOD = ox.Optimal(length=2)
pytestmark = pytest.mark.chaos("damage under a run detected")
ARRAYS = {"table": "ranks/", "activations": "activations/"}


@dataclass(frozen=True)
class Layers:
    """A layer, a copy of it, another one of the same shape, and what is found in the first."""

    layer: StoredLayer
    whole: StoredLayer
    other: StoredLayer
    found: Run

    def case(self, part: str, seed: int = 0) -> Case:
        """The part of the layer to damage."""
        store, other = Path(getattr(self.layer, part)), Path(getattr(self.other, part))
        return Case(store, other, np.random.default_rng(seed), ARRAYS[part])

    def mend(self, part: str) -> None:
        mend(Path(getattr(self.layer, part)), Path(getattr(self.whole, part)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Layers:
    folder = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patched:
        # Several chunks of the map and of the activations, read while units are explained.
        patched.setattr(patches, "CHUNK_BYTES", 3 * 36)
        patched.setattr(progress, "MOST_SAMPLES_PER_ROW", 4)
        patched.setattr(progress, "CHUNK_BYTES", 4 * 36 * 4 * 2)
        layer = stored_layer(folder / "layer", N_UNITS)
        shutil.copytree(folder / "layer", folder / "whole")
        # Another layer: the samples the other way round.
        table = small_table()
        flipped = np.stack([table.mask(name) for name in table.names])[:, ::-1]
        ConceptTable.from_masks(flipped, table.names).save(folder / "other" / "table.zarr")
        ActivationStore.from_array(folder / "other" / "layer.zarr", responses(N_UNITS)[::-1])
    whole, other = (
        StoredLayer(str(place / "table.zarr"), str(place / "layer.zarr"), layer.range)
        for place in (folder / "whole", folder / "other")
    )
    found = explain_layer(folder / "undisturbed", layer, METHOD)
    assert found.counts.done == N_UNITS
    return Layers(layer, whole, other, found)


@pytest.fixture
def layers(made: Layers, monkeypatch: pytest.MonkeyPatch) -> Generator[Layers]:
    """Whole at first, and again for the next test."""
    monkeypatch.setattr(run_module, "CHUNK", 1)
    tasks.forget_sources()
    yield made
    for part in ARRAYS:
        made.mend(part)


def explain_command(layer: StoredLayer, run: Path) -> list[str]:
    return [
        *("explain", "--table", layer.table, "--activations", layer.activations),
        *("--range", layer.range, "--run", str(run), "--length", "2", "--quiet"),
    ]


@pytest.mark.parametrize("part", ARRAYS)
@pytest.mark.parametrize("damage", sorted(set(WHILE_OPEN) - {"replace_store", "remove_store"}))
def test_a_damaged_store_stops_the_command(
    tmp_path: Path, layers: Layers, capsys: pytest.CaptureFixture[str], part: str, damage: str
):
    run = tmp_path / "run"
    WHILE_OPEN[damage](layers.case(part))
    assert cli.main(explain_command(layers.layer, run)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert "damaged" in told.err
    if (run / "run.sqlite").exists():
        counts = Run(run).counts
        assert counts.failed == counts.claimed == 0
    layers.mend(part)
    assert cli.main(explain_command(layers.layer, run)) == 0
    assert same(Run(run), layers.found)


class DamageAfter(Observer):
    """Damages a store when so many units are stored."""

    def __init__(self, n: int, damage: Callable[[], None]):
        self.n, self.damage = n, damage

    def unit_finished(self, result: UnitResult, counts: Counts) -> None:
        if counts.finished == self.n:
            self.damage()


@pytest.mark.parametrize("part", ARRAYS)
@pytest.mark.parametrize("damage", WHILE_OPEN)
def test_damage_while_a_run_goes_on_stops_it(
    tmp_path: Path, layers: Layers, part: str, damage: str
):
    def break_it() -> None:
        WHILE_OPEN[damage](layers.case(part))

    run = tmp_path / "run"
    try:
        explain_layer(run, layers.layer, METHOD, observer=DamageAfter(2, break_it))
    except DataFileError:
        pass
    else:  # what was damaged had been read by then
        assert damage not in {"replace_store", "remove_store", "delete_digests", "mix_stores"}
    counts = Run(run).counts
    assert counts.failed == counts.claimed == 0
    assert counts.done >= 2
    layers.mend(part)
    assert same(explain_layer(run, layers.layer, METHOD), layers.found)


def test_damage_under_workers_stops_the_run(tmp_path: Path, layers: Layers):
    run = tmp_path / "run"
    delete_data(layers.case("activations"))
    with LocalWorkers(1) as workers:
        # Opening it in this process would notice; the workers are what is tested here.
        tasks.open_source(layers.whole)
        with pytest.raises(DataFileError, match="damaged"):
            _explain_in(workers, run, layers)
        assert Run(run).counts == Counts(waiting=N_UNITS, claimed=0, done=0, failed=0)
        layers.mend("activations")
        _explain_in(workers, run, layers)
    assert same(Run(run), layers.found)


def _explain_in(workers: LocalWorkers, run: Path, layers: Layers) -> None:
    """With the opener of the layer that is damaged, though it looks whole here."""

    class Elsewhere(StoredLayer):
        def open(self) -> Any:
            return layers.whole.open()

        def share(self, folder: Path) -> StoredLayer:
            return layers.layer

    explain_layer(
        run,
        Elsewhere(layers.whole.table, layers.whole.activations, layers.whole.range),
        METHOD,
        executor=workers,
    )


def test_damage_in_the_null_model_stops_the_run(
    tmp_path: Path, layers: Layers, monkeypatch: pytest.MonkeyPatch
):
    compare = tasks.compare_with_null

    def damaged(*arguments: Any) -> Any:
        delete_data(layers.case("table"))
        return compare(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "compare_with_null", damaged)
        with pytest.raises(DataFileError, match="damaged"):
            explain_layer(tmp_path / "run", layers.layer, METHOD, null=NullModel(2))
    assert Run(tmp_path / "run").counts == Counts(N_UNITS, 0, 0, 0)


class Unreadable(BitmapUnits):
    """A source whose disk fails in the middle."""

    def counts(self, units: Sequence[int], **draw: Any) -> list[NeuronCounts]:
        if 2 in units:
            raise OSError(5, "Input/output error")
        return super().counts(units, **draw)


def test_an_error_of_the_disk_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_module, "CHUNK", 1)
    layer = memory_layer(4)
    with pytest.raises(OSError, match="Input/output"):
        explain_layer(tmp_path / "run", Unreadable(layer.table, layer.bitmaps), METHOD)
    assert Run(tmp_path / "run").counts == Counts(waiting=2, claimed=0, done=2, failed=0)
    assert explain_layer(tmp_path / "run", layer, METHOD).counts.done == 4


# --- other data in the same place -----------------------------------------------------------------


def test_a_worker_that_opens_another_layer_than_the_run_began_with_stops(layers: Layers):
    began = SourceIdentity.of(layers.layer.open())
    for part in ARRAYS:
        foreign = {
            name: getattr(layers.other if name == part else layers.layer, name) for name in ARRAYS
        }
        opener = StoredLayer(**foreign, range=layers.layer.range)
        with pytest.raises(DataFileError, match="replaced by another since"):
            run_task(Task(opener, METHOD, (0,), identity=began))
    assert len(run_task(Task(layers.layer, METHOD, (0,), identity=began))) == 1


def test_activations_of_one_key_and_other_content_are_not_of_one_run(tmp_path: Path):
    small_table().save(tmp_path / "table.zarr")
    values = responses(4)

    def record(name: str, recorded: np.ndarray) -> StoredLayer:
        metadata = ActivationMetadata(ActivationKey("net", "weights", "layer", "data", "{}"))
        shape = (recorded.shape[0], recorded.shape[1], recorded.shape[2], recorded.shape[3])
        with ActivationWriter(tmp_path / name, metadata, shape) as writer:
            writer.append(recorded)
            writer.finish()
        return StoredLayer(str(tmp_path / "table.zarr"), str(tmp_path / name), "range:0.5:")

    explain_layer(tmp_path / "run", record("a.zarr", values), METHOD)
    assert explain_layer(tmp_path / "run", record("b.zarr", values), METHOD).counts.done == 4
    with pytest.raises(RunStoreError, match="source"):
        explain_layer(tmp_path / "run", record("c.zarr", values[::-1].copy()), METHOD)


# --- verification ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ARRAYS)
@pytest.mark.parametrize("opened", ["before", "after"])
def test_verify_notices_chunks_in_the_wrong_place(
    layers: Layers, capsys: pytest.CaptureFixture[str], part: str, opened: str
):
    command = ["verify", str(layers.found.path)]
    for seed, damage in itertools.product(range(6), (swap_data, foreign_data)):
        if opened == "after":
            tasks.forget_sources()
        damage(layers.case(part, seed))
        assert cli.main(command) == 1
        told = capsys.readouterr()
        assert "damaged" in told.err
        assert "units checked" not in told.out
        layers.mend(part)
    assert cli.main(command) == 0


# --- arrays that workers share --------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["zeros", "cut off", "gone"])
def test_shared_arrays_that_do_not_fit_are_made_again(tmp_path: Path, damage: str):
    layer = memory_layer(5)
    shared = share_bitmaps(layer, tmp_path / "shared")
    before = SourceIdentity.of(shared.open())
    files = sorted((tmp_path / "shared").rglob("*.npy"))
    assert len(files) > 10
    for file in files:
        content = file.read_bytes()
        match damage:
            case "zeros":
                file.write_bytes(bytes(len(content)))
            case "cut off":
                file.write_bytes(content[: len(content) // 2])
            case _:
                file.unlink()
        with pytest.raises(DataFileError, match="made anew"):
            shared.open()
        assert share_bitmaps(layer, tmp_path / "shared") == shared
        assert SourceIdentity.of(shared.open()) == before


def test_a_run_makes_damaged_shared_arrays_again(tmp_path: Path):
    layer = memory_layer(6)
    share_bitmaps(layer, tmp_path / "run" / "shared")
    for file in (tmp_path / "run" / "shared").rglob("*.npy"):
        file.write_bytes(bytes(file.stat().st_size))
    with LocalWorkers(1) as workers:
        run = explain_layer(tmp_path / "run", layer, METHOD, executor=workers)
    assert same(run, explain_layer(tmp_path / "here", layer, METHOD))
