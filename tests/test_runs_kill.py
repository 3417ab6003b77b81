"""Runs that are killed at random end with the same results as undisturbed ones."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from run_cases import shapes_layer, start_explaining, stored_layer
from test_runs_run import Told, same

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.runs import Run, explain_layer
from optexp_jax.runs.layers import StoredLayer

METHOD = ox.Optimal(length=2)
OPTIONS = ("--length", "2")


def finished(folder: Path) -> int:
    try:
        return Run(folder).counts.finished
    except ValueError:  # it has not begun yet
        return 0


def kill_after(process: subprocess.Popen[str], folder: Path, n: int) -> None:
    """SIGKILL as soon as n more units are stored."""
    wanted = finished(folder) + n
    while finished(folder) < wanted and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()


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


def test_a_killed_run_is_ended_by_two_processes_the_same(tmp_path: Path):
    layer = stored_layer(tmp_path, 30)
    run = tmp_path / "run"
    first = start_explaining(layer, run, *OPTIONS)
    kill_after(first, run, 3)
    before = finished(run)
    assert 3 <= before < 30
    other = start_explaining(layer, run, *OPTIONS)
    while len(Run(run).sessions) < 2:  # until it works on the run as well
        time.sleep(0.02)
    told = Told()
    explain_layer(run, layer, METHOD, observer=told)
    _, lines = other.communicate()
    assert other.returncode == 0, lines
    assert "going on" in lines
    theirs = [line for line in lines.splitlines() if line.startswith("[")]
    assert len(theirs) + len(told.finished) == 30 - before, "each unit was stored by one of them"
    assert same(Run(run), explain_layer(tmp_path / "whole", layer, METHOD))
    assert len(Run(run).sessions) == 3


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["here", "workers"])
def test_a_run_of_200_units_killed_five_times_ends_the_same(
    tmp_path: Path, options: tuple[str, ...]
):
    check_killed_runs(shapes_layer(tmp_path, 200), tmp_path, 5, *options)


@pytest.mark.slow
def test_what_another_process_left_is_taken_over(tmp_path: Path):
    layer = stored_layer(tmp_path, 40)
    first = start_explaining(layer, tmp_path / "run", *OPTIONS)
    while finished(tmp_path / "run") < 2:
        time.sleep(0.05)
    first.send_signal(signal.SIGSTOP)  # it holds its claims, and does nothing
    held = Run(tmp_path / "run").counts.claimed
    assert held > 0
    second = start_explaining(layer, tmp_path / "run", *OPTIONS)
    while finished(tmp_path / "run") < 40 - held:
        time.sleep(0.02)
        assert second.poll() is None
    first.kill()
    first.communicate()
    assert second.wait(60) == 0
    second.communicate()
    assert Run(tmp_path / "run").counts.done == 40


def test_ctrl_c_says_how_to_go_on(tmp_path: Path):
    layer = stored_layer(tmp_path, 30)
    process = start_explaining(layer, tmp_path / "run", *OPTIONS)
    while finished(tmp_path / "run") < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 1
    done = finished(tmp_path / "run")
    assert 2 <= done < 30
    assert Run(tmp_path / "run").counts.claimed == 0
    last = error.splitlines()[-1]
    assert f"{done} of 30 units are stored" in last
    assert last.endswith(f"optexp explain --run {tmp_path / 'run'}")
    assert cli.main(["explain", "--run", str(tmp_path / "run"), "-q"]) == 0
    assert Run(tmp_path / "run").counts.done == 30


def test_the_layer_is_opened_by_its_paths(tmp_path: Path):
    layer = stored_layer(tmp_path, 2)
    assert layer == StoredLayer(layer.table, layer.activations, layer.range)
    assert layer.open().fingerprint == layer.share(tmp_path / "shared").open().fingerprint
