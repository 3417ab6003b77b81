"""Provably optimal compositional explanations of neurons, in JAX."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from optexp_jax.bounds import (
    Bounds,
    ImprovementVectors,
    InadmissibleBoundError,
    LabelVectors,
    PairVectors,
    PaperBounds,
    PublishedVectors,
    TightBounds,
)
from optexp_jax.concepts import Concept, ConceptTable, LabelLayer, TableBuilder, TableFileError
from optexp_jax.explain import explain, explain_many
from optexp_jax.explanation import Explanation, RunnerUp, SearchStats, Seconds, Status, StoppedBy
from optexp_jax.formula import Formula
from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.guides import AbstractGuide, MMESHGuide, QuantityGuide
from optexp_jax.kernel_choice import Kernels, kernels
from optexp_jax.methods import AbstractMethod, Beam, Exhaustive, NetDissect, Optimal
from optexp_jax.neuron import NeuronCounts
from optexp_jax.operators import AND, AND_NOT, DEFAULT_OPERATORS, OR, Operator
from optexp_jax.scores import BatchScores, Score, iou, iou_many

if TYPE_CHECKING:
    from optexp_jax.runs import Run

__version__ = _version("optexp-jax")


def __getattr__(name: str) -> Any:
    """`Run`, when it is first asked for: explaining one unit needs nothing of it."""
    if name == "Run":
        from optexp_jax.runs import Run

        return Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AND",
    "AND_NOT",
    "DEFAULT_OPERATORS",
    "OR",
    "AbstractGuide",
    "AbstractMethod",
    "BatchScores",
    "Beam",
    "Bounds",
    "Concept",
    "ConceptTable",
    "Exhaustive",
    "Explanation",
    "Formula",
    "FormulaBatch",
    "ImprovementVectors",
    "InadmissibleBoundError",
    "Kernels",
    "LabelLayer",
    "LabelVectors",
    "MMESHGuide",
    "NetDissect",
    "NeuronCounts",
    "Operator",
    "Optimal",
    "PairVectors",
    "PaperBounds",
    "PublishedVectors",
    "QuantityGuide",
    "Run",
    "RunnerUp",
    "Score",
    "SearchStats",
    "Seconds",
    "Status",
    "StoppedBy",
    "TableBuilder",
    "TableFileError",
    "TightBounds",
    "explain",
    "explain_many",
    "iou",
    "iou_many",
    "kernels",
]
