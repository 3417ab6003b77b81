"""Tools for those who write bounds of their own."""

from optexp_jax.testing.admissible import (
    AdmissibilityReport,
    Counterexample,
    check_admissible,
)
from optexp_jax.testing.cases import Case, random_case

__all__ = [
    "AdmissibilityReport",
    "Case",
    "Counterexample",
    "check_admissible",
    "random_case",
]
