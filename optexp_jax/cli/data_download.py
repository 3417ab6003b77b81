"""`optexp data download`: fetch a dataset, or say how to get it."""

import argparse
import dataclasses
import json
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optexp_jax
from optexp_jax.cli.bars import bar
from optexp_jax.datasets.sources import REGISTRATIONS, SOURCES, Registration

if TYPE_CHECKING:
    from optexp_jax.datasets.download import Downloaded


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Download a dataset and unpack it. A download that was cut off goes on when "
        "the same command is run again. For datasets that need a registration, the steps are "
        "printed."
    )
    parser.epilog = "example: optexp data download broden1_224 --to datasets"
    names = [*SOURCES, *REGISTRATIONS]
    parser.add_argument(
        "name", metavar="NAME", choices=names, help=f"the dataset: {', '.join(names)}"
    )
    parser.add_argument("--to", metavar="DIR", required=True, type=Path, help="where to put it")
    parser.add_argument(
        "--sha256", type=_sha256, help="the checksum that the archive must have (64 hex digits)"
    )
    parser.add_argument("--url", help="another address to fetch the archive from, such as a mirror")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.name in REGISTRATIONS:
        _explain(REGISTRATIONS[options.name], options.json)
        return
    from optexp_jax.datasets.download import download  # It loads much that others do not need.

    source = SOURCES[options.name]
    if options.url is not None:
        source = dataclasses.replace(source, url=options.url)
    with bar(f"Downloading {source.name}", in_bytes=True) as progress:
        found = download(source, options.to, sha256=options.sha256, progress=progress)
    if options.json:
        print(json.dumps(_as_json(found), indent=2))
        return
    checked = "as expected" if found.verified else "not compared: no checksum is known or given"
    print(f"{found.archive}  sha256 {found.sha256} ({checked})")
    print(f"{found.folder}  unpacked; the archive is no longer needed")
    kind, name = found.source.kind, found.source.name
    print(f"Next: optexp data build {kind} --root {found.folder} --out {name}.zarr")


def _explain(registration: Registration, as_json: bool) -> None:
    """Print the steps; the command fails all the same, as nothing was downloaded."""
    if as_json:
        told = {
            "version": optexp_jax.__version__,
            "name": registration.name,
            "downloaded": False,
            "steps": list(registration.steps),
        }
        print(json.dumps(told, indent=2))
    else:
        for number, step in enumerate(registration.steps, start=1):
            print(f"{number}. {step}")
    raise ValueError(
        f"{registration.name} is given to registered users only and was not downloaded; the steps "
        "to get it are on stdout."
    )


def _as_json(found: "Downloaded") -> dict[str, Any]:
    return {
        "version": optexp_jax.__version__,
        "name": found.source.name,
        "downloaded": True,
        "url": found.source.url,
        "archive": str(found.archive),
        "folder": str(found.folder),
        "sha256": found.sha256,
        "verified": found.verified,
    }


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a SHA-256 checksum of 64 hex digits")
    return text.lower()
