"""`optexp demo`: the units of a small network, explained."""

import json
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich.box
from rich.table import Table
from rich.text import Text

import optexp_jax
from optexp_jax.cli.console import results_console
from optexp_jax.cli.parsing import at_least
from optexp_jax.cli.progress import make_display
from optexp_jax.cli.terminal import make_console
from optexp_jax.counts.neuron_summary import NeuronSummary, SingleConcept
from optexp_jax.demo import LAYER, MODEL, Demo, explain_demo, make_demo
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run

SHOWN = 12
"""Units in the table; the JSON has all."""


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Generate annotated scenes, show them to a small network that comes with the "
        "package, and find the best formula of each unit of a layer. It takes half a minute, needs "
        "no data, and needs torch."
    )
    parser.epilog = "example: optexp demo --seed 1 --length 2"
    parser.add_argument(
        "--seed", type=at_least(0), default=0, help="another seed, other scenes (default: 0)"
    )
    parser.add_argument(
        "--length",
        type=at_least(1),
        default=3,
        help="most concepts in a formula (default: 3); 4 takes a minute",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        default=Path("optexp-demo-report"),
        help="folder for a report with pictures of the units (default: optexp-demo-report)",
    )
    parser.add_argument(
        "--no-report", dest="report", action="store_const", const=None, help="write no report"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON instead of a table, without a report"
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(options: Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="optexp-demo-") as folder:
        console = make_console(stderr=True)
        with console.status("Drawing scenes and showing them to the network"):
            demo = make_demo(Path(folder), options.seed)
        display = make_display(quiet=not console.is_terminal)
        run = explain_demo(demo, Path(folder) / "run", options.length, display)
        # Units that are never active are left out.
        results = [found for each in run.results if (found := DemoResult.of(each)) is not None]
        if options.json:
            print(json.dumps(_demo_json(options, demo, results), indent=2))
            return
        _print_demo(options, demo, results)
        lines = [] if options.report is None else [_report(run, options.report)]
        lines.append("Next: README.md shows how to do this with your own annotations and units.")
        for line in lines:
            results_console().print(line, markup=False, highlight=False, soft_wrap=True)


def _report(run: Run, out: Path) -> str:
    """Write the report of the units, and say where it is; or what it needs."""
    try:
        from optexp_jax.report import ReportSettings, build_report
    except ImportError as error:
        return f'For a report with pictures: pip install "optexp-jax[report]" ({error}).'
    with make_console(stderr=True).status("Writing the report"):
        page = build_report([run], out, ReportSettings(title="Units of the demo"))
    return f"Look at the units: open {page} in a browser."


@dataclass(frozen=True)
class DemoResult:
    """A unit with its best formula and its best single concept."""

    unit: int
    best: Explanation
    neuron: NeuronSummary

    @classmethod
    def of(cls, result: UnitResult) -> "DemoResult | None":
        """None for a unit that could not be explained."""
        found = result.explanation
        if found is None or found.neuron is None:
            return None
        return cls(result.unit, found, found.neuron)


def _print_demo(options: Namespace, demo: Demo, results: Sequence[DemoResult]) -> None:
    console = results_console()
    best_first = sorted(results, key=lambda result: -result.best.iou)[:SHOWN]
    console.print(
        f"A small network, layer {LAYER}: the {len(best_first)} of {len(results)} units that are "
        f"explained best, by one concept and by the best formula of at most {options.length}.",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column("unit", no_wrap=True)
    table.add_column("active", justify="right")
    table.add_column("concept", no_wrap=True)
    table.add_column("IoU", justify="right")
    table.add_column("best formula")
    table.add_column("IoU", justify="right")
    table.add_column("status", no_wrap=True)
    for result in best_first:
        single = result.neuron.single
        table.add_row(
            f"unit {result.unit}",
            f"{result.neuron.active_share:.2%}",
            Text(single.concept or "none"),
            f"{single.iou:.3f}",
            Text(str(result.best.formula or "none")),
            f"{result.best.iou:.3f}",
            str(result.best.status),
        )
    console.print(table)
    proved = sum(result.best.status is Status.OPTIMAL for result in results)
    one = statistics.fmean(result.neuron.single.iou for result in results)
    best = statistics.fmean(result.best.iou for result in results)
    console.print(
        f"All {len(results)} units: mean IoU {one:.3f} with one concept, {best:.3f} with at most "
        f"{options.length}; {proved} formulas are proved to be the best.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(repr(demo.table), markup=False, highlight=False, soft_wrap=True)


def _demo_json(options: Namespace, demo: Demo, results: Sequence[DemoResult]) -> dict[str, Any]:
    table = demo.table
    return {
        "version": optexp_jax.__version__,
        "seed": options.seed,
        "length": options.length,
        "dataset": str(demo.spec),
        "model": MODEL,
        "layer": LAYER,
        "table": {
            "concepts": list(table.names),
            "samples": table.n_samples,
            "locations": table.n_locations,
            "signatures": len(table.signatures),
        },
        "units": [
            {
                "unit": result.unit,
                "low": demo.units.range_of(result.unit).low,
                "active": result.neuron.active,
                "single": _single_json(result.neuron.single),
                "best": _explanation_json(result.best),
            }
            for result in results
        ],
    }


def _single_json(single: SingleConcept) -> dict[str, Any]:
    return {
        "formula": None if single.concept is None else str(Formula.concept(single.concept)),
        "intersection": single.intersection,
        "union": single.union,
        "iou": single.iou,
    }


def _explanation_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "formula": None if explanation.formula is None else str(explanation.formula),
        "intersection": explanation.intersection,
        "union": explanation.union,
        "iou": explanation.iou,
        "upper_bound": explanation.upper_bound,
        "status": str(explanation.status),
        "visited": explanation.stats.visited,
    }
