"""Families of bounds for the optimal search."""

from optexp_jax.bounds.base import Bounds, InadmissibleBoundError
from optexp_jax.bounds.paper.pair_vectors import PairVectors
from optexp_jax.bounds.paper.problem_view import LabelBatch, ProblemView
from optexp_jax.bounds.paper.space import PaperBounds
from optexp_jax.bounds.paper.vectors import (
    ImprovementVectors,
    LabelVectors,
    PublishedVectors,
    TopBott,
)
from optexp_jax.bounds.tight.family import TightBounds

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
