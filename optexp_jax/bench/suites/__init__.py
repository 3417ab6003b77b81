"""The suites of `optexp bench`, one module each, imported when they are run."""

import importlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optexp_jax.bench.plan import BenchPlan
    from optexp_jax.bench.report import SuiteReport
    from optexp_jax.bench.turns import Tell

SUITES = {
    "alternatives": "every method on the same units, in turns: time, IoU, proof, memory",
    "growth": "time against concepts, signatures, length, beam size and units",
    "tight": "the tight search at the scale of Broden and of ADE20K",
    "lengths": "lengths 4 to 6 at the scale of Broden, and where concepts overlap most",
    "sets": "long formulas on a small table, beside enumeration over masks",
    "trade_off": "hulls and other objectives at the scale of Broden, in searches",
    "paper": "the published search and the beams, counted and timed",
    "table": "building a concept table and counting units on it",
    "activations": "counting a layer's units from raw activations, with torch",
    "workers": "two worker processes against one",
}
MAIN_SUITES = ("alternatives", "growth")
"""Those that are run when none is named."""


def run_suite(name: str, plan: "BenchPlan", tell: "Tell") -> "SuiteReport":
    """Run a suite; its report says how long it took."""
    if name not in SUITES:
        raise ValueError(f"There is no suite {name!r}; there are {', '.join(SUITES)}.")
    from dataclasses import replace

    module = importlib.import_module(f"optexp_jax.bench.suites.{name}")
    start = time.perf_counter()
    report: SuiteReport = module.run(plan, lambda text: tell(f"{name}: {text}"))
    settings = {"quick": plan.quick, **report.settings}
    return replace(report, seconds=time.perf_counter() - start, settings=settings)
