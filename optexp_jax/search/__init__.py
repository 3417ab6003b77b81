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
from optexp_jax.search.order import AbstractOrder, BestFirst, BreadthFirst, DepthFirst

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
