"""Families of bounds for the optimal search."""

from optexp_jax.bounds.base import AbstractBounds, InadmissibleBoundError
from optexp_jax.bounds.paper.pair_vectors import PairVectors
from optexp_jax.bounds.paper.problem_view import LabelBatch, ProblemView
from optexp_jax.bounds.paper.space import PaperBounds
from optexp_jax.bounds.paper.vectors import (
    AbstractVectors,
    LabelVectors,
    PublishedVectors,
    TopBott,
)
from optexp_jax.bounds.tight.family import TightBounds

__all__ = [
    "AbstractBounds",
    "AbstractVectors",
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
