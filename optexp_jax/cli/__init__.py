"""The command line: `optexp COMMAND`, one module a command.

The library computes, these modules print: results to stdout, progress and errors to stderr. Exit
codes are 0 (done), 1 (failed), 2 (bad usage) and 130 (Ctrl-C).
"""

import argparse
import os
import sys
from collections.abc import Sequence

import jax

import optexp_jax
from optexp_command import INTERRUPTED, interrupts
from optexp_jax.cli import activations, data, demo, explain, layers, models, results, verify
from optexp_jax.cli.parsing import Parser
from optexp_jax.cli.terminal import escaping_streams

DONE, FAILED = 0, 1

COMMANDS = (demo, data, explain, results, verify, layers, models, activations)
"""Each has `add(commands)`, which adds its parser; that one's default `run` takes the options."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    with escaping_streams():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help, the version or what is wrong
        return stop.code if isinstance(stop.code, int) else DONE
    try:
        options.run(options)
        sys.stdout.flush()
    except (ValueError, TypeError, OSError, MemoryError) as error:
        return _failed(options.command, error)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return _failed(options.command, MemoryError(str(error)))
    except KeyboardInterrupt as stop:
        interrupts.hear()
        _say(options.command, str(stop) or "interrupted")
        return INTERRUPTED
    return DONE


def _failed(command: str, error: Exception) -> int:
    """Say in one line what was wrong."""
    if interrupts.asked:  # an interrupt may come out as any error
        interrupts.hear()
        _say(command, "interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Who read the output has seen enough. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory; what was stored before is whole. {text}"
    _say(command, text)
    return FAILED


def _say(command: str, text: str) -> None:
    print(f"optexp {command}: {' '.join(text.split())}", file=sys.stderr)


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
