"""`optexp demo`: the units of a small network, explained."""

import json
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich.box
from rich.table import Table
from rich.text import Text

import optexp_jax
from optexp_jax.cli.console import results_console, with_progress
from optexp_jax.cli.parsing import at_least
from optexp_jax.cli.terminal import make_console
from optexp_jax.demo import LAYER, MODEL, Demo, DemoResult, explain_demo, make_demo
from optexp_jax.explanation import Explanation, Status

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
        help="most concepts in a formula (default: 3); 4 takes minutes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_run_demo)


def _run_demo(options: Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="optexp-demo-") as folder:
        with make_console(stderr=True).status("Drawing scenes and showing them to the network"):
            demo = make_demo(Path(folder), options.seed)
        searches = explain_demo(demo, options.length)
        results = list(with_progress(searches, demo.units.n_units, "Explaining units"))
        if options.json:
            print(json.dumps(_demo_json(options, demo, results), indent=2))
        else:
            _print_demo(options, demo, results)


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
        table.add_row(
            f"unit {result.unit}",
            f"{result.counts.size / demo.table.n_locations:.2%}",
            *_formula_cells(result.single),
            *_formula_cells(result.best),
            str(result.best.status),
        )
    console.print(table)
    proved = sum(result.best.status is Status.OPTIMAL for result in results)
    console.print(
        f"All {len(results)} units: mean IoU {_mean(result.single for result in results):.3f} with "
        f"one concept, {_mean(result.best for result in results):.3f} with at most "
        f"{options.length}; {proved} formulas are proved to be the best.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(repr(demo.table), markup=False, highlight=False, soft_wrap=True)
    console.print(
        "Next: README.md shows how to do this with your own annotations and units.",
        highlight=False,
        soft_wrap=True,
    )


def _mean(explanations: Any) -> float:
    return statistics.fmean(explanation.iou for explanation in explanations)


def _formula_cells(explanation: Explanation) -> tuple[Text, str]:
    return Text(str(explanation.formula or "none")), f"{explanation.iou:.3f}"


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
                "low": result.active_range.low,
                "active": result.counts.size,
                "single": _explanation_json(result.single),
                "best": _explanation_json(result.best),
            }
            for result in results
        ],
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
