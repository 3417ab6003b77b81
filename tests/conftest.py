"""How every test runs: on CPU, with shapes, dtypes and ranks checked, in one of two profiles."""

import os

# Before jax is imported. A caller who sets it can run the tests on an accelerator.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

from support import THOROUGH_FACTOR

# Checks every jaxtyping annotation of the package at run time. It must come before the package is
# imported for the first time; the hook stays for the whole run because submodules load later.
install_import_hook("optexp_jax", "support.typecheck")

# Silent promotion of dtypes or ranks is how exact counts become inexact.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

QUICK_EXAMPLES = 60

settings.register_profile(
    "quick",
    max_examples=QUICK_EXAMPLES,
    deadline=None,  # the first example of a test pays for compilation
    suppress_health_check=[HealthCheck.too_slow],  # likewise
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.register_profile(
    "thorough",
    settings.get_profile("quick"),
    max_examples=QUICK_EXAMPLES * THOROUGH_FACTOR,
    derandomize=False,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help=f"draw {THOROUGH_FACTOR} times as many examples and run the tests marked slow",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("thorough" if config.getoption("--thorough") else "quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--thorough"):
        return
    skip = pytest.mark.skip(reason="slow: run with --thorough")
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(skip)
