"""What the scripts of single tables share: they print some requests, one after another."""

import argparse
import dataclasses
from collections.abc import Sequence

from optexp_jax.reproduction import TableRequest, make_tables


def print_tables(
    description: str, requests: Sequence[TableRequest], arguments: list[str] | None = None
) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="small stand-ins and few units")
    parser.add_argument("--folder", default="runs/tables", help="where data and runs are kept")
    options = parser.parse_args(arguments)
    for request in requests:
        asked = dataclasses.replace(request, small=options.small)
        print(make_tables(asked, options.folder).to_markdown())
