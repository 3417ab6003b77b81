"""`optexp`, and `python -m optexp_jax.cli`: where the command starts."""

import os
import sys

try:
    from optexp_jax.cli.interrupts import INTERRUPTED, interrupts
except BaseException as error:
    # Ctrl-C before anything listens to it; in the body of a class it comes out as another error.
    if not isinstance(error.__cause__ or error, KeyboardInterrupt):
        raise
    os.write(2, b"optexp: interrupted\n")
    os._exit(130)


def main() -> int:
    """Run the command line and return its exit code."""
    interrupts.listen()
    try:
        from optexp_jax.cli import main as run

        if not {"-h", "--help", "--version"} & set(sys.argv[1:]) and len(sys.argv) > 1:
            from optexp_jax.cli.compilation_cache import keep_programs

            keep_programs()
        code = run()
        sys.stdout.flush()
    except BaseException:
        # What an interrupt in a function that JAX calls leads to may have any name.
        if not interrupts.asked:
            raise
        interrupts.hear()
        print("optexp: interrupted", file=sys.stderr)
        return INTERRUPTED
    return INTERRUPTED if interrupts.asked else code


if __name__ == "__main__":
    sys.exit(main())
