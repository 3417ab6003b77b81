"""The command line: `optexp COMMAND`, one module a command.

The library computes, these modules print: results to stdout, progress and errors to stderr. Exit
codes are 0 (done), 1 (failed), 2 (bad usage) and 130 (Ctrl-C).

Nothing is imported here, so that Ctrl-C is heard as soon as Python runs. `optexp --help` imports no
command, and `optexp explain` nothing large before its options are right.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a command and return its exit code."""
    import sys

    from optexp_jax.cli.command_line import run

    return run(sys.argv[1:] if argv is None else argv)
