"""The differential suite once more with the device's kernels, on one device and on four.

A CPU is the device, split in four where there are to be several. `make test-device` runs the same
files on the accelerator that there is.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optexp_jax.internal.kernel_choice import VARIABLE

ORACLE = "bounds/tight/test_tight_search_differential.py::test_agrees_with_the_oracle"
A_PART = {
    1: (f"{ORACLE}[6-4-OR+AND+AND NOT-4-0]",),
    4: (
        f"{ORACLE}[6-3-OR+AND+AND NOT-16-6]",
        "methods/test_beam_differential.py::test_device_kernels_change_nothing",
        "activations/test_layer_counting.py::test_random_layers",
    ),
}
"""By number of devices; chosen to be quick to compile."""
WHOLE = (
    "bounds/tight/test_tight_search_differential.py",
    "bounds/tight/test_tight_at_scale_differential.py",
    "search/test_runners_up_differential.py",
    "bounds/tight/test_many_concepts.py",
    "bounds/tight/test_grams.py",
    "bounds/tight/theory/test_exact_scores.py",
    "methods/test_beam_differential.py",
    "methods/test_guides.py",
    "activations/test_layer_counting.py",
    "test_explain.py",
)


def run_suite(n_devices: int, *tests: str) -> None:
    """Run tests in a process of their own, as its own plugin settings would have it."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        env={**kept, "XLA_FLAGS": flags, VARIABLE: "device"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("n_devices", A_PART)
def test_a_part_of_the_suite(n_devices: int):
    run_suite(n_devices, *A_PART[n_devices])


@pytest.mark.slow
@pytest.mark.parametrize("n_devices", [1, 4])
@pytest.mark.parametrize("tests", WHOLE)
def test_the_whole_suite(tests: str, n_devices: int):
    run_suite(n_devices, tests)
