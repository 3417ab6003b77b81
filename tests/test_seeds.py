"""Every run of the tests draws new examples, which can be drawn again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import RUN_SEED

TESTS = Path(__file__).parent

PROBE = """
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.parametrize("part", ["one", "other"])
@settings(max_examples=4, database=None)
@given(data=st.binary(min_size=20, max_size=20))
def test_drawn(part, data):
    print(f"[{part} {data.hex()}]")

def test_fresh(fresh_seed):
    print(f"[fresh {fresh_seed}]")
"""


def run(folder: Path, *options: str) -> tuple[str, list[str]]:
    """The seed that a run tells, and what it drew."""
    (folder / "test_probe.py").write_text(PROBE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # A folder of its own for what it writes: the one of this run must not be cleaned up.
    own = f"--basetemp={folder / 'temporary'}"
    command = [sys.executable, "-m", "pytest", "-rP", "-p", "conftest", own, *options]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    # Where CI is set, Hypothesis alone would draw the same every time.
    settings = {**os.environ, "PYTHONPATH": paths, "CI": "true"}
    done = subprocess.run(
        [*command, "test_probe.py"],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"--hypothesis-seed=(\d+)", done.stdout)
    assert told is not None
    return told[1], sorted(re.findall(r"(?m)^\[(\w+ \w+)\]$", done.stdout))


def test_examples_are_new_and_can_be_drawn_again(tmp_path: Path, pytestconfig: pytest.Config):
    seed, drawn = run(tmp_path, "-n", "1")
    assert seed != pytestconfig.stash[RUN_SEED]
    assert run(tmp_path, f"--hypothesis-seed={seed}") == (seed, drawn)
    # Forms of one test draw examples of their own; the plainest one comes first in each.
    assert len(drawn) == 4 + 4 + 1
    assert len({text.split()[1] for text in drawn}) == 3 + 3 + 1 + 1
