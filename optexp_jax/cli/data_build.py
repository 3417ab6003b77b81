"""`optexp data build`: a dataset becomes a concept table."""

import argparse
import dataclasses
import json
import os
import re
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optexp_jax
from optexp_jax.cli.bars import bar
from optexp_jax.cli.console import results_console
from optexp_jax.cli.failures import plural
from optexp_jax.cli.nearest import did_you_mean
from optexp_jax.cli.parsing import at_least
from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets.build import DEFAULT_MASK_SHAPE, build_table
from optexp_jax.datasets.derived import DERIVATIONS
from optexp_jax.datasets.layout import listing
from optexp_jax.datasets.provenance import Provenance, read_provenance
from optexp_jax.datasets.registry import KINDS, OptionValue
from optexp_jax.datasets.spec import DatasetSpec

SHOWN_SKIPPED = 5


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Read a dataset's annotations and build its concept table. A build that was "
        "interrupted goes on when the same command is run again."
    )
    parser.epilog = "example: optexp data build broden --root broden1_224 --out broden.zarr"
    parser.add_argument(
        "kind",
        metavar="KIND",
        help=f"the kind of dataset: {', '.join(sorted(KINDS))}, module:function for one of your "
        "own, or a whole spec such as shapes:n=200",
    )
    parser.add_argument("--root", metavar="DIR", help="the dataset's folder or file")
    parser.add_argument("--out", metavar="TABLE", required=True, type=Path, help="the new table")
    parser.add_argument(
        "--add",
        metavar="WHAT",
        type=_derivations,
        default=(),
        help=f"derived concepts to add, with commas between: {', '.join(DERIVATIONS)}",
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        type=_option,
        default=[],
        help="an option of that kind of dataset; may be given several times",
    )
    parser.add_argument(
        "--mask-size",
        metavar="SIZE",
        type=_mask_shape,
        default=DEFAULT_MASK_SHAPE,
        help="resolution of the table: a side, or HEIGHTxWIDTH (default: 112)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=at_least(1),
        default=len(os.sched_getaffinity(0)),
        help="processes that read samples (default: one a core)",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out samples that cannot be read"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a table, or start a build again"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    spec = _spec(options)
    dataset = spec.open()
    started = time.monotonic()
    with bar("Reading samples") as progress:
        table = build_table(
            dataset,
            options.out,
            mask_shape=options.mask_size,
            spec=spec,
            workers=options.workers,
            skip_bad=options.skip_bad,
            progress=progress,
            overwrite=options.overwrite,
        )
    seconds = time.monotonic() - started
    provenance = read_provenance(options.out)
    if options.json:
        print(json.dumps(_as_json(options.out, table, provenance, seconds), indent=2))
    else:
        _print(options.out, table, provenance, seconds)


def _print(out: Path, table: ConceptTable, provenance: Provenance, seconds: float) -> None:
    console = results_console()
    skipped = provenance.skipped
    lines = [provenance.description, repr(table)]
    empty = [name for name, size in zip(table.names, table.concept_sizes, strict=True) if not size]
    if empty:
        of = plural(table.n_concepts, "concept")
        lines.append(f"without a location: {len(empty)} of {of}: {listing(empty)}")
    lines += [
        f"skipped {sample.name}: {' '.join(sample.reason.split())}"
        for sample in skipped[:SHOWN_SKIPPED]
    ]
    if len(skipped) > SHOWN_SKIPPED:
        lines.append(f"skipped {plural(len(skipped) - SHOWN_SKIPPED, 'more sample')}")
    lines.append(f"{out} was built in {seconds:.1f} s. Next: optexp data info {out}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _as_json(
    out: Path, table: ConceptTable, provenance: Provenance, seconds: float
) -> dict[str, Any]:
    return {
        "version": optexp_jax.__version__,
        "out": str(out),
        "dataset": None if provenance.spec is None else str(provenance.spec),
        "description": provenance.description,
        "concepts": table.n_concepts,
        "samples": table.n_samples,
        "skipped": [dataclasses.asdict(sample) for sample in provenance.skipped],
        "mask_shape": list(provenance.mask_shape),
        "locations": table.n_locations,
        "signatures": len(table.signatures),
        "fingerprint": table.fingerprint,
        "seconds": seconds,
    }


def _spec(options: argparse.Namespace) -> DatasetSpec:
    """The spec that the kind, which may be a whole spec, and the other options make."""
    spec = DatasetSpec.parse(options.kind, add=options.add)
    if options.root is not None and spec.root is not None:
        raise ValueError(f"The folder is given twice: {spec.root!r} and --root {options.root!r}.")
    root = spec.root if options.root is None else options.root
    return dataclasses.replace(
        spec,
        # Whole, because the table may be read from another folder.
        root=None if root is None else str(Path(root).expanduser().resolve()),
        options=(*spec.options, *options.option),
    )


def _derivations(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in DERIVATIONS:
            near = did_you_mean(name, DERIVATIONS)
            raise argparse.ArgumentTypeError(
                f"{name!r} is not among {', '.join(DERIVATIONS)}.{near}"
            )
    return names


def _option(text: str) -> tuple[str, OptionValue]:
    name, equals, value = text.partition("=")
    if not equals or not name.isascii() or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name == "add":
        raise argparse.ArgumentTypeError(f"derived concepts are added with --add {value}")
    # A spec's text reads values; commas separate its options, so text with commas is text.
    if "," in value or not value:
        return name, value
    return DatasetSpec.parse(f"any:{name}={value}").options[0]


def _mask_shape(text: str) -> tuple[int, int]:
    sides = re.fullmatch(r"([1-9]\d*)(?:x([1-9]\d*))?", text)
    if sides is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a side or HEIGHTxWIDTH, in whole pixels")
    return int(sides[1]), int(sides[2] or sides[1])
