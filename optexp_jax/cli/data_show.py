"""`optexp data show`: images that hold a concept, with its place marked."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import optexp_jax
from optexp_jax.cli.allowed import ALLOW_HELP, parse_allowed
from optexp_jax.cli.failures import plural
from optexp_jax.cli.parsing import at_least
from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets.contact_sheet import (
    SheetSettings,
    contact_sheet,
    samples_holding,
    spread_over,
)
from optexp_jax.datasets.protocol import image_of
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.formulas.formula import Formula


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Draw images of a table's dataset in which a concept or formula holds, with "
        "its place outlined and the rest dimmed."
    )
    parser.epilog = "example: optexp data show shapes.zarr --concept red-c --out red.png"
    parser.add_argument("table", metavar="TABLE", type=Path, help="the table")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--concept", metavar="NAME", help="the concept to show")
    what.add_argument("--formula", metavar="TEXT", help='or a formula, "red-c AND NOT car"')
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the picture (default: the concept's name, .png)"
    )
    parser.add_argument(
        "--count", metavar="N", type=at_least(1), default=12, help="images (default: 12)"
    )
    parser.add_argument(
        "--columns", metavar="N", type=at_least(1), default=4, help="images a row (default: 4)"
    )
    parser.add_argument(
        "--tile",
        metavar="PIXELS",
        type=at_least(32),
        default=224,
        help="size of an image (default: 224)",
    )
    parser.add_argument(
        "--spread",
        action="store_true",
        help="images from most to least of the concept, instead of those with most of it",
    )
    parser.add_argument("--root", metavar="DIR", help="the dataset's folder, if it was moved")
    parser.add_argument("--allow", metavar="NAMES", help=ALLOW_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    parse_allowed(options.allow)
    table = ConceptTable.load(options.table)
    if options.concept is None:
        formula = Formula.parse(options.formula, table)
    else:
        formula = Formula.concept(table.find_name(options.concept))
    out = options.out or Path(re.sub(r"[^\w.-]+", "_", str(formula)).strip("_") + ".png")
    provenance = read_provenance(options.table)
    holding = samples_holding(table, formula)
    if not holding:
        raise ValueError(f"{formula} holds nowhere in {options.table}.")
    count = options.count
    chosen = spread_over(holding, count) if options.spread else holding[:count]
    dataset = provenance.open(options.root)
    sheet = contact_sheet(
        table,
        formula,
        chosen,
        image=lambda sample: image_of(dataset, int(provenance.indices[sample])),
        name=lambda sample: provenance.sample_names[sample],
        settings=SheetSettings(options.columns, options.tile),
    )
    sheet.save(out)
    if options.json:
        told = {
            "version": optexp_jax.__version__,
            "out": str(out),
            "formula": str(formula),
            "samples_holding": len(holding),
            "shown": [
                {
                    "sample": shown.sample,
                    "name": provenance.sample_names[shown.sample],
                    "locations": shown.n_locations,
                }
                for shown in chosen
            ],
        }
        print(json.dumps(told, indent=2))
    else:
        print(
            f"{out} shows {len(chosen)} of the {plural(len(holding), 'sample')} "
            f"(of {table.n_samples}) in which {formula} holds"
        )
