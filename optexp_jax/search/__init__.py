"""The best-first driver, its frontier and its incumbent."""

from optexp_jax.search.driver import (
    AbstractSpace,
    Expansion,
    InadmissibleBoundError,
    Search,
    best_first,
)
from optexp_jax.search.frontier import Queued
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.order import AbstractOrder, BestFirst, BreadthFirst, DepthFirst
from optexp_jax.search.stopping import Progress, StoppingCriteria

__all__ = [
    "AbstractOrder",
    "AbstractSpace",
    "BestFirst",
    "BreadthFirst",
    "Candidate",
    "DepthFirst",
    "Expansion",
    "InadmissibleBoundError",
    "Incumbent",
    "Progress",
    "Queued",
    "Search",
    "StoppingCriteria",
    "best_first",
]
