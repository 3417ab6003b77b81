"""The command line: `optexp COMMAND`, one module a command.

The library computes, these modules print: results to stdout, progress and errors to stderr. Exit
codes are 0 (done), 1 (failed) and 2 (bad usage).
"""

import argparse
import sys
from collections.abc import Sequence

import optexp_jax
from optexp_jax.cli import activations, data, demo, explain, layers, models, results, verify
from optexp_jax.cli.parsing import Parser

DONE, FAILED = 0, 1

COMMANDS = (demo, data, explain, results, verify, layers, models, activations)
"""Each has `add(commands)`, which adds its parser; that one's default `run` takes the options."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help, the version or what is wrong
        return stop.code if isinstance(stop.code, int) else DONE
    try:
        options.run(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"optexp {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"optexp {options.command}: interrupted", file=sys.stderr)
        return FAILED
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="optexp",
        description=optexp_jax.__doc__,
        epilog="example: optexp demo",
    )
    parser.add_argument("--version", action="version", version=f"optexp {optexp_jax.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser
