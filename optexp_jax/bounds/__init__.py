"""Families of bounds for the optimal search."""

from optexp_jax.bounds.base import Bounds, InadmissibleBoundError
from optexp_jax.bounds.pair_vectors import PairVectors
from optexp_jax.bounds.paper import PaperBounds
from optexp_jax.bounds.problem_view import LabelBatch, ProblemView
from optexp_jax.bounds.tight import TightBounds
from optexp_jax.bounds.vectors import (
    ImprovementVectors,
    LabelVectors,
    PublishedVectors,
    TopBott,
)

__all__ = [
    "Bounds",
    "ImprovementVectors",
    "InadmissibleBoundError",
    "LabelBatch",
    "LabelVectors",
    "PairVectors",
    "PaperBounds",
    "ProblemView",
    "PublishedVectors",
    "TightBounds",
    "TopBott",
]
