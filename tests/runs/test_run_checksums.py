"""Damaged run files: what is flipped, deleted or mixed is noticed, or changes nothing."""

import json
import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from helpers.chaos import Count
from helpers.run_cases import forged, memory_layer, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.runs import NullModel, Run, RunStoreError, UnitResult, explain_layer
from optexp_jax.runs.export import as_json
from optexp_jax.runs.store import FILE, RunStore

METHOD = ox.Optimal(length=2, top_k=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Units with runners-up and a null model."""
    folder = tmp_path_factory.mktemp("damage")
    layer = stored_layer(folder, 12)
    return explain_layer(folder / "run", layer, METHOD, null=NullModel(3))


def shown(run: Run) -> str:
    return json.dumps([as_json(run), str(run.counts)])


def flip_bits(run: Run, folder: Path, n: int, seed: int) -> Counter[str]:
    """What becomes of `n` copies of a run with one bit flipped in each."""
    content = (run.path / FILE).read_bytes()
    wanted, rng, seen = shown(run), random.Random(seed), Counter[str]()
    for k in range(n):
        place, bit = rng.randrange(len(content)), rng.randrange(8)
        copy = folder / f"copy-{k}"
        copy.mkdir()
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        (copy / FILE).write_bytes(changed)
        try:
            seen["harmless" if shown(Run(copy)) == wanted else "silent"] += 1
        except RunStoreError:
            seen["detected"] += 1
            assert cli.main(["results", str(copy), "--json"]) == 1
        except Exception as error:
            seen[f"wrong kind: {type(error).__name__} at byte {place}: {error}"] += 1
        shutil.rmtree(copy)
    return seen


@pytest.mark.chaos("bit flips in a run detected or without effect")
@pytest.mark.parametrize("n", [20, pytest.param(400, marks=pytest.mark.slow)], ids=["some", "many"])
def test_flipped_bits_are_noticed_or_change_nothing(run: Run, tmp_path: Path, tally: Count, n: int):
    seen = flip_bits(run, tmp_path, n, seed=n)
    tally(seen["detected"] + seen["harmless"], n)
    assert set(seen) <= {"detected", "harmless"}, seen
    assert seen["detected"]


@pytest.mark.slow
def test_a_run_with_a_flipped_bit_is_not_gone_on_with_or_ends_the_same(run: Run, tmp_path: Path):
    content, rng, seen = (run.path / FILE).read_bytes(), random.Random(1), Counter[str]()
    for k in range(100):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        copy = tmp_path / f"copy-{k}"
        copy.mkdir()
        (copy / FILE).write_bytes(changed)
        try:
            again = explain_layer(copy, run.opener, METHOD, null=NullModel(3))
        except (RunStoreError, PermissionError):  # one bit says that SQLite may only read
            seen["refused"] += 1
        else:
            assert all(map(UnitResult.same_finding, again.results, run.results))
            assert len(again.sessions) == 2
            seen["the same"] += 1
    print(f"100 bit flips, gone on with: {dict(seen)}")
    assert seen["refused"]
    assert seen["the same"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE units SET owner = 'somebody' WHERE unit = 3",
        "UPDATE units SET finished = finished + 1 WHERE unit = 3",
        "UPDATE units SET result = replace(result, '\"expanded\": ', '\"expanded\": 1')",
        "UPDATE units SET digest = (SELECT digest FROM units WHERE unit = 4) WHERE unit = 3",
        "UPDATE sessions SET started = 0",
        "UPDATE meta SET value = 'null' WHERE key = 'origin'",
        "DELETE FROM meta WHERE key = 'origin'",
        "CREATE TABLE more (a)",
        "CREATE TRIGGER t AFTER UPDATE ON units BEGIN DELETE FROM units; END",
    ],
)
def test_every_column_has_a_checksum(run: Run, tmp_path: Path, statement: str):
    def change(store: RunStore) -> None:
        store._connection.execute(statement)

    with pytest.raises(RunStoreError, match="damaged"):
        as_json(forged(run, tmp_path, change))


def test_rows_of_another_run_are_noticed(run: Run, tmp_path: Path):
    layer = run.opener
    other = explain_layer(tmp_path / "other", layer, METHOD, null=NullModel(3))
    assert other.configuration == run.configuration

    def change(store: RunStore) -> None:
        store._connection.execute("ATTACH ? AS other", (str(other.path / FILE),))
        store._connection.execute(
            "REPLACE INTO units SELECT * FROM other.units WHERE other.units.unit = 5"
        )

    with pytest.raises(RunStoreError, match="not as they were stored: units 5"):
        as_json(forged(run, tmp_path, change))


@pytest.mark.parametrize("former", [1, 2, 3, 4])
def test_runs_of_former_formats_are_refused(tmp_path: Path, former: int):
    folder = tmp_path / "run"
    folder.mkdir()
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('format', ?)", (str(former),))
    connection.close()
    with pytest.raises(RunStoreError, match=rf"format {former}; this release reads 5\. Do the run"):
        Run(folder)
    with pytest.raises(RunStoreError, match=f"format {former}"):
        explain_layer(folder, memory_layer(1), METHOD)
