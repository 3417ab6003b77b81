"""`python -m optexp_jax.cli`, the same as `optexp` but for Ctrl-C while it starts."""

import sys

from optexp_command import main

sys.exit(main())
