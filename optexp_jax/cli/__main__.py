"""`optexp`, and `python -m optexp_jax.cli`: where the command starts."""

import sys

from optexp_jax.cli.interrupts import INTERRUPTED, interrupts


def main() -> int:
    """Run the command line and return its exit code."""
    interrupts.listen()
    try:
        from optexp_jax.cli import main as run

        interrupts.begin()
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
