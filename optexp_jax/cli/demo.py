"""`optexp demo`: a few generated neurons, explained."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

import rich.box
from rich.table import Table
from rich.text import Text

import optexp_jax
from optexp_jax.cli.console import results_console, with_progress
from optexp_jax.cli.parsing import Commands, at_least
from optexp_jax.demo import Demo, DemoResult, explain_demo, make_demo
from optexp_jax.explanation import Explanation


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="explain a few generated neurons",
        description="Generate small annotated scenes and neurons that fire on known formulas, and "
        "find the best formula of each. It takes a few seconds and needs no data.",
        epilog="example: optexp demo --seed 1 --length 2",
    )
    parser.add_argument(
        "--seed", type=at_least(0), default=0, help="another seed, other scenes (default: 0)"
    )
    parser.add_argument(
        "--length",
        type=at_least(1),
        default=3,
        help="most concepts in a formula (default: 3); 4 takes half a minute",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_run_demo)


def _run_demo(options: argparse.Namespace) -> None:
    demo = make_demo(options.seed)
    results = list(
        with_progress(explain_demo(demo, options.length), len(demo.neurons), "Explaining neurons")
    )
    if options.json:
        print(json.dumps(_demo_json(options, demo, results), indent=2))
    else:
        _print_demo(options, demo, results)


def _print_demo(options: argparse.Namespace, demo: Demo, results: Sequence[DemoResult]) -> None:
    console = results_console()
    console.print(
        f"{len(results)} neurons, each built from a formula, then blurred and noised. Best formula "
        f"of at most {options.length} concepts, proved to be the best.",
        highlight=False,
    )
    table = Table(box=rich.box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    table.add_column("neuron", no_wrap=True)
    table.add_column("built from")
    table.add_column("concept", no_wrap=True)
    table.add_column("IoU", justify="right")
    table.add_column("best formula")
    table.add_column("IoU", justify="right")
    table.add_column("status", no_wrap=True)
    for result in results:
        table.add_row(
            result.neuron.name,
            Text(str(result.neuron.built_from)),
            *_formula_cells(result.single),
            *_formula_cells(result.best),
            str(result.best.status),
        )
    console.print(table)
    console.print(repr(demo.table), markup=False, highlight=False, soft_wrap=True)
    console.print(
        "Next: README.md shows how to do this with your own annotations and units.",
        highlight=False,
        soft_wrap=True,
    )


def _formula_cells(explanation: Explanation) -> tuple[Text, str]:
    return Text(str(explanation.formula or "none")), f"{explanation.iou:.3f}"


def _demo_json(
    options: argparse.Namespace, demo: Demo, results: Sequence[DemoResult]
) -> dict[str, Any]:
    table = demo.table
    return {
        "version": optexp_jax.__version__,
        "seed": options.seed,
        "length": options.length,
        "table": {
            "concepts": list(table.names),
            "samples": table.n_samples,
            "locations": table.n_locations,
            "signatures": len(table.signatures),
        },
        "neurons": [
            {
                "neuron": result.neuron.name,
                "built_from": str(result.neuron.built_from),
                "active": int(result.neuron.bitmap.sum()),
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
