"""The best-first driver, its frontier and its incumbent."""

from optexp_jax.search.driver import (
    AbstractSpace,
    InadmissibleBoundError,
    Limits,
    Progress,
    Search,
    Turn,
    best_first,
)
from optexp_jax.search.frontier import Queued
from optexp_jax.search.incumbent import Candidate, Incumbent

__all__ = [
    "AbstractSpace",
    "Candidate",
    "InadmissibleBoundError",
    "Incumbent",
    "Limits",
    "Progress",
    "Queued",
    "Search",
    "Turn",
    "best_first",
]
