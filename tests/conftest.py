"""How every test runs: on CPU, with shapes, dtypes and ranks checked, in one of two profiles."""

import os
import secrets
import zlib
from typing import Any

# Before jax is imported. A caller who sets it can run the tests on an accelerator.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Commands that tests start leave the cache of whoever runs the tests alone.
os.environ.setdefault("OPTEXP_COMPILATION_CACHE", "off")

import jax
import pytest
from helpers.support import THOROUGH_FACTOR
from hypothesis import HealthCheck, seed, settings
from jaxtyping import install_import_hook

# Checks every jaxtyping annotation of the package at run time. It must come before the package is
# imported for the first time; the hook stays for the whole run because submodules load later.
install_import_hook("optexp_jax", "helpers.support.typecheck")

# Silent promotion of dtypes or ranks is how exact counts become inexact.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

pytest_plugins = ["helpers.chaos", "helpers.report_fixtures"]

QUICK_EXAMPLES = 60

settings.register_profile(
    "quick",
    max_examples=QUICK_EXAMPLES,
    deadline=None,  # the first example of a test pays for compilation
    suppress_health_check=[HealthCheck.too_slow],  # likewise
    derandomize=False,  # where CI is set, Hypothesis would draw the same examples every time
    print_blob=True,
)
settings.register_profile(
    "thorough",
    settings.get_profile("quick"),
    max_examples=QUICK_EXAMPLES * THOROUGH_FACTOR,
)

RUN_SEED = pytest.StashKey[str]()
"""What all examples of a run are drawn from: new every time, unless `--hypothesis-seed` has it."""


# Most of a quick run is compilation, and most of that is optimisation, which pays on large arrays
# only. Without it, and with the emitter that XLA used before, it takes less than half the time.
# Integers come out the same; float64 may be rounded otherwise in its last bit, which bounds leave
# room for. A thorough run goes without these flags, so that it rounds as users' runs do.
QUICK_XLA_FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"


def compile_quickly() -> None:
    """Compile in this process without optimisation; in processes that tests start, as users do."""
    if os.environ["JAX_PLATFORMS"] != "cpu":
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {QUICK_XLA_FLAGS}")
        jax.jit(lambda: 0).lower().compile()  # XLA reads the variable once: now.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help=f"draw {THOROUGH_FACTOR} times as many examples and run the tests marked slow",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--hypothesis-seed")
    shared: dict[str, Any] = getattr(config, "workerinput", {})  # of a worker of pytest-xdist
    chosen = shared.get("run_seed", given)
    config.stash[RUN_SEED] = str(secrets.randbelow(10**9) if chosen is None else chosen)
    if config.getoption("--thorough"):
        settings.load_profile("thorough")
    else:
        settings.load_profile("quick")
        compile_quickly()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--thorough"):
        return
    skip = pytest.mark.skip(reason="slow: run with --thorough")
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(skip)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All workers of pytest-xdist draw from one seed."""
    node.workerinput["run_seed"] = node.config.stash[RUN_SEED]


def how_to_repeat(config: pytest.Config) -> str:
    return f"examples are drawn from --hypothesis-seed={config.stash[RUN_SEED]}"


def pytest_report_header(config: pytest.Config) -> str:
    return how_to_repeat(config)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        terminalreporter.write_line(how_to_repeat(config))


def seed_of(item: pytest.Item) -> int:
    """The seed of one test: each draws other examples, whichever others run."""
    return zlib.crc32(f"{item.config.stash[RUN_SEED]} {item.nodeid}".encode())


def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False):
        seed(seed_of(item))(item.obj)


@pytest.fixture
def fresh_seed(request: pytest.FixtureRequest) -> int:
    """For tests that make their own random cases: new in every run, as Hypothesis' examples are."""
    return seed_of(request.node)
