"""Ctrl-C at any moment: exit code 130, one line, nothing lost."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.chaos import Count
from helpers.run_cases import (
    COMMAND_LINE,
    TESTS,
    memory_layer,
    same,
    start_explaining,
    stored_layer,
)

import optexp_jax as ox
from optexp_jax.cli.interrupts import INTERRUPTED, PATIENCE
from optexp_jax.runs import Run, UnitResult, explain_layer
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.store import RunStore

OPTIONS = ("--length", "2", "--bounds", "helpers.run_cases:SlowBounds", "-q")
SLOWEST = PATIENCE + 12
"""Seconds to end in; a machine that does much else is slower than the one or two it takes."""


def interrupt_after(process: subprocess.Popen[str], seconds: float) -> str:
    """What the process said; it is told to stop, and has to."""
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=SLOWEST)
    return error


def check_interrupts(layer: StoredLayer, folder: Path, moments: list[float]) -> Counter[str]:
    """Interrupt a run at these moments after its start, and go on with it each time."""
    seen = Counter[str]()
    for moment in moments:
        process = start_explaining(layer, folder / "run", *OPTIONS)
        error = interrupt_after(process, moment)
        if process.returncode == 0 and not error:
            seen["done before"] += 1
            continue
        # Before Python has begun, the signal itself ends the process; a shell says 130 then, too.
        early = process.returncode == -signal.SIGINT and moment < 0.2
        assert process.returncode == INTERRUPTED or early, (moment, process.returncode, error)
        assert early or len(error.splitlines()) == 1, (moment, error)
        seen["stopped"] += 1
    last = start_explaining(layer, folder / "run", *OPTIONS)
    assert last.wait(120) == 0, last.communicate()
    last.communicate()
    return seen


@pytest.mark.chaos("interrupts survived")
@pytest.mark.parametrize("n", [3, pytest.param(24, marks=pytest.mark.slow)], ids=["some", "many"])
def test_a_run_that_is_interrupted_at_any_moment_ends_the_same(
    tmp_path: Path, tally: Count, n: int
):
    layer = stored_layer(tmp_path, 40)
    rng = random.Random(n)
    moments = [rng.uniform(0.0, 6.0) for _ in range(n)]
    seen = check_interrupts(layer, tmp_path, moments)
    assert seen["stopped"]
    method = ox.Optimal(length=2)
    whole = explain_layer(tmp_path / "whole", layer, method)
    assert same(Run(tmp_path / "run"), whole)
    tally(seen["stopped"], seen["stopped"])


LOSES_ONE = f"""
import sys, time
sys.path[:0] = [{str(TESTS.parent)!r}]
from optexp_jax import cli
from optexp_jax.cli.interrupts import interrupts

def main():
    interrupts.begin()
    print("ready", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass  # as in a function that JAX calls
    SECOND

cli.main = main
"""
SWALLOWS_ALL = "while True:\n        try: time.sleep(60)\n        except BaseException: pass"


@pytest.mark.parametrize(
    "second", ["time.sleep(60)", "raise RuntimeError('an error of JAX')", SWALLOWS_ALL, "return 0"]
)
def test_an_interrupt_that_is_lost_is_raised_again(second: str):
    code = LOSES_ONE.replace("SECOND", second) + COMMAND_LINE
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    start = time.monotonic()
    error = interrupt_after(process, 0.0)
    assert process.returncode == INTERRUPTED
    assert error in ("optexp: interrupted\n", "")
    assert time.monotonic() - start < SLOWEST


SLOW_IMPORT = f"""
import sys, time, importlib.abc
sys.path[:0] = [{str(TESTS.parent)!r}]

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "optexp_jax.cli.explaining":
            print("ready", flush=True)
            try:
                time.sleep(60)
            finally:
                print("raised", flush=True)

sys.meta_path.insert(0, Slow())
sys.argv[1:] = ["explain", "--run", "x"]
"""


def test_an_interrupt_is_not_raised_while_large_modules_are_imported():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT + COMMAND_LINE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    printed, error = process.communicate(timeout=SLOWEST)
    assert process.returncode == INTERRUPTED
    assert error == "optexp: interrupted\n"
    assert printed == "", "it would crash JAX"


def test_a_second_ctrl_c_ends_at_once():
    code = LOSES_ONE.replace("SECOND", SWALLOWS_ALL) + COMMAND_LINE
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    assert interrupt_after(process, 0.0) == "optexp: interrupted\n"
    assert process.returncode == INTERRUPTED


def test_a_process_in_the_background_is_left_alone():
    code = LOSES_ONE.replace("time.sleep(60)", "time.sleep(1)").replace("SECOND", "return 7")
    code += COMMAND_LINE.replace("signal.default_int_handler", "signal.SIG_IGN")
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert interrupt_after(process, 0.0) == ""
    assert process.returncode == 7


def test_an_interrupt_that_comes_as_an_error_is_no_failure_of_the_unit(tmp_path: Path):
    layer = memory_layer(2)
    configuration = Configuration(
        ox.NetDissect(), (0, 1), layer.table.fingerprint, layer.fingerprint
    )
    store = RunStore.create(tmp_path / "run", configuration, None)
    store.claim(2)
    with pytest.raises(KeyboardInterrupt):
        store.commit(UnitResult(0, error="JaxRuntimeError: INTERNAL: KeyboardInterrupt: "))
    assert store.counts().failed == 0
    store.close()
