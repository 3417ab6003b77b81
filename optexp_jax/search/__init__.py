"""The best-first driver, its frontier and its incumbent."""

from optexp_jax.search.driver import (
    AbstractSpace,
    Expansion,
    InadmissibleBoundError,
    Progress,
    Search,
    StoppingCriteria,
    best_first,
)
from optexp_jax.search.frontier import Queued
from optexp_jax.search.incumbent import Candidate, Incumbent

__all__ = [
    "AbstractSpace",
    "Candidate",
    "Expansion",
    "InadmissibleBoundError",
    "Incumbent",
    "Progress",
    "Queued",
    "Search",
    "StoppingCriteria",
    "best_first",
]
