"""Runs that are killed at random end with the same results as undisturbed ones."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.chaos import Count
from helpers.run_cases import (
    Told,
    finished,
    same,
    shapes_layer,
    start_explaining,
    stored_layer,
    wait_for,
)

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.runs import Run, explain_layer
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.store import FILE

METHOD = ox.Optimal(length=2)
OPTIONS = ("--length", "2")


KILLS = 20


def kill_after(process: subprocess.Popen[str], folder: Path, n: int) -> None:
    """SIGKILL as soon as n more units are stored."""
    wanted = finished(folder) + n
    wait_for(process, lambda: finished(folder) >= wanted)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def is_locked(folder: Path) -> bool:
    connection = sqlite3.connect(folder / FILE, timeout=0.1, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False


KILLS_ITSELF = """
import os, signal, sys
import optexp_jax as ox
from optexp_jax.runs import Observer, explain_layer
from optexp_jax.runs.layers import StoredLayer

class Kill(Observer):
    def unit_finished(self, result, counts):
        if counts.done == 5:
            os.kill(os.getpid(), signal.SIGKILL)

table, activations, range, run = sys.argv[1:]
layer = StoredLayer(table, activations, range)
explain_layer(run, layer, ox.Optimal(length=2), observer=Kill())
"""


def check_killed_runs(layer: StoredLayer, folder: Path, kills: int, *options: str) -> None:
    n_units = layer.open().n_units
    whole = explain_layer(folder / "whole", layer, METHOD)
    rng = random.Random(n_units)
    survived = 0
    for _ in range(kills):
        process = start_explaining(layer, folder / "run", *OPTIONS, *options)
        kill_after(process, folder / "run", rng.randrange(1, n_units // (kills + 1)))
        survived += process.returncode == 0
    assert survived == 0, "each was to be killed in the middle"
    assert 0 < finished(folder / "run") < n_units
    last = start_explaining(layer, folder / "run", *OPTIONS, *options)
    assert last.communicate()[1].startswith("going on")
    assert last.returncode == 0
    assert same(Run(folder / "run"), whole)
    assert len(Run(folder / "run").sessions) == kills + 1


@pytest.mark.chaos("kills survived")
def test_a_killed_run_is_ended_by_two_processes_the_same(tmp_path: Path):
    layer = stored_layer(tmp_path, 30)
    run = tmp_path / "run"
    command = [sys.executable, "-c", KILLS_ITSELF, layer.table, layer.activations, layer.range]
    killed = subprocess.run([*command, str(run)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Run(run).counts.done == 5
    assert Run(run).counts.claimed > 0, "it could not give its claims back"
    other = start_explaining(layer, run, *OPTIONS)
    wait_for(other, lambda: len(Run(run).sessions) == 2)  # it works on the run as well
    told = Told()
    explain_layer(run, layer, METHOD, observer=told)
    _, lines = other.communicate()
    assert other.returncode == 0, lines
    assert "going on" in lines
    theirs = [line for line in lines.splitlines() if line.startswith("[")]
    assert len(theirs) + len(told.finished) == 25, "each unit was stored by one of them"
    assert same(Run(run), explain_layer(tmp_path / "whole", layer, METHOD))
    assert len(Run(run).sessions) == 3


@pytest.mark.slow
@pytest.mark.chaos("kills survived")
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["here", "workers"])
def test_a_run_of_200_units_that_is_killed_again_and_again_ends_the_same(
    tmp_path: Path, tally: Count, options: tuple[str, ...]
):
    check_killed_runs(shapes_layer(tmp_path, 200), tmp_path, KILLS, *options)
    tally(KILLS, KILLS)


@pytest.mark.slow
def test_what_another_process_left_is_taken_over(tmp_path: Path):
    layer = stored_layer(tmp_path, 150)
    first = start_explaining(layer, tmp_path / "run", *OPTIONS)
    wait_for(first, lambda: finished(tmp_path / "run") >= 2)
    first.send_signal(signal.SIGSTOP)
    while is_locked(tmp_path / "run"):  # in the middle of a transaction all others have to wait
        first.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
    # It holds its claims, and does nothing.
    held = Run(tmp_path / "run").counts.claimed
    assert held > 0
    second = start_explaining(layer, tmp_path / "run", *OPTIONS)
    wait_for(second, lambda: finished(tmp_path / "run") >= 150 - held)
    first.kill()
    first.communicate()
    assert second.wait(60) == 0
    second.communicate()
    assert Run(tmp_path / "run").counts.done == 150


def test_ctrl_c_says_how_to_go_on(tmp_path: Path):
    layer = stored_layer(tmp_path, 40)
    slow = ("--bounds", "helpers.run_cases:SlowBounds")
    process = start_explaining(layer, tmp_path / "run", *OPTIONS, *slow)
    wait_for(process, lambda: finished(tmp_path / "run") >= 2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    done = finished(tmp_path / "run")
    assert 2 <= done < 40
    assert Run(tmp_path / "run").counts.claimed == 0
    last = error.splitlines()[-1]
    assert f"{done} of 40 units stored" in last
    assert last.endswith(f"optexp explain --run {tmp_path / 'run'}")
    again = ["explain", "--run", str(tmp_path / "run"), "-q"]
    assert cli.main(again) == 1, "a run folder does not say whose code is run"
    assert cli.main([*again, "--allow", "helpers.run_cases:SlowBounds"]) == 0
    assert Run(tmp_path / "run").counts.done == 40


def test_the_layer_is_opened_by_its_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    layer = stored_layer(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    assert StoredLayer("table.zarr", "layer.zarr", layer.range) == layer, "paths are kept whole"
    assert layer.open().fingerprint == layer.share(tmp_path / "shared").open().fingerprint
