"""`python -m optexp_jax.cli`, the same as `optexp`."""

import sys

from optexp_jax.cli import main

sys.exit(main())
