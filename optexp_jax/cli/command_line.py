"""From words on the command line to a command, its exit code, and errors of one line."""

import os
import sys
from collections.abc import Sequence

from optexp_jax.cli.failures import UsageError, error_text, lacks_memory
from optexp_jax.cli.interrupts import INTERRUPTED, interrupts
from optexp_jax.cli.parsing import BAD_USAGE, Parser, add_commands
from optexp_jax.cli.terminal import escaping_streams

DONE, FAILED = 0, 1

COMMANDS = {
    "demo": "explain the units of a small network on generated scenes",
    "data": "build, describe and show concept tables; download datasets",
    "explain": "explain the units of a layer",
    "results": "show or export the results of a run",
    "report": "write a report with pictures that opens in a browser",
    "compare": "show what differs between runs",
    "verify": "check the results of a run independently",
    "tables": "make the paper's tables, on real data or on stand-ins",
    "layers": "list the layers of a model",
    "models": "convert checkpoints",
    "activations": "store a layer's activations over a dataset",
    "bench": "measure speed, memory and quality against every alternative",
}


def run(argv: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    with escaping_streams():
        return _run(argv)


def _run(argv: Sequence[str]) -> int:
    called = ""
    try:
        options = _parser(argv).parse_args(argv)
        called = " ".join([options.command, *vars(options).get("action", "").split()])
        options.prepare()
        interrupts.begin()
        options.run(options)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse has printed the help, the version or what is wrong
        return stop.code if isinstance(stop.code, int) else DONE
    except (ValueError, TypeError, OSError, MemoryError) as error:
        return _failed(called, error)
    except (RuntimeError, ImportError) as error:
        if not lacks_memory(error):
            raise
        return _failed(called, error)
    except KeyboardInterrupt as stop:
        interrupts.hear()
        _say(called, str(stop) or "interrupted")
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
    _say(command, error_text(error))
    return BAD_USAGE if isinstance(error, UsageError) else FAILED


def _say(command: str, text: str) -> None:
    print(f"{f'optexp {command}'.strip()}: {' '.join(text.split())}", file=sys.stderr)


def _parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        prog="optexp",
        description="Provably optimal compositional explanations of neurons, in JAX.",
        epilog="example: optexp demo",
    )
    if "--version" in argv[:1]:
        import optexp_jax

        version = f"optexp {optexp_jax.__version__}"
    else:
        version = ""
    parser.set_defaults(prepare=lambda: None)
    parser.add_argument("--version", action="version", version=version)
    add_commands(parser, COMMANDS, argv, kind="COMMAND")
    return parser
