"""Provably optimal compositional explanations of neurons, in JAX.

Names are imported when they are first used: `import optexp_jax` alone takes no time, and what a
program does not use it does not load.
"""

import importlib
import sys
from types import ModuleType

# As in typing, which takes longer to import than all of this: Ctrl-C should be heard soon.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from optexp_jax import (
        activations,
        comparison,
        datasets,
        plot,
        reproduction,
        runs,
        stand_ins,
        testing,
        validation,
    )
    from optexp_jax.bounds import (
        AbstractBounds,
        AbstractVectors,
        InadmissibleBoundError,
        LabelVectors,
        PairVectors,
        PaperBounds,
        PublishedVectors,
        TightBounds,
        TopBott,
    )
    from optexp_jax.comparison import Comparison, ContradictionError, compare
    from optexp_jax.concepts import Concept, ConceptTable, LabelLayer, TableBuilder, TableFileError
    from optexp_jax.counts.metrics import Objective, Overlap
    from optexp_jax.counts.neuron import NeuronCounts
    from optexp_jax.counts.neuron_summary import NeuronSummary, SingleConcept
    from optexp_jax.counts.reweighting import Reweighting
    from optexp_jax.counts.scores import BatchScores, Score, iou, iou_many
    from optexp_jax.explain import explain, trade_off
    from optexp_jax.explanation import (
        Explanation,
        LengthOptimum,
        RunnerUp,
        SearchStats,
        Seconds,
        Status,
        StoppedBy,
    )
    from optexp_jax.formulas.batch import FormulaBatch
    from optexp_jax.formulas.formula import Formula
    from optexp_jax.formulas.operators import AND, AND_NOT, DEFAULT_OPERATORS, OR, Operator
    from optexp_jax.internal.kernel_choice import Kernels, kernels
    from optexp_jax.methods import (
        AbstractMethod,
        Beam,
        Exhaustive,
        NetDissect,
        Optimal,
        TradeOff,
    )
    from optexp_jax.methods.beam.guides import AbstractGuide, MMESHGuide, QuantityGuide
    from optexp_jax.methods.hull.curve import TradeOffCurve, TradeOffSegment, TradeOffVertex
    from optexp_jax.runs import Run
    from optexp_jax.runs.many import explain_many
    from optexp_jax.search import AbstractOrder, BestFirst, BreadthFirst, DepthFirst, Progress
    from optexp_jax.validation import choose_length, confidence_set, held_out, stability

    __version__: str

# What the block above says, for the interpreter; a test compares the two. A package that does this
# (lazy-loader) would need the names once in a stub file in place of the block: no less to write.
_HOMES = {
    "optexp_jax.bounds": (
        "AbstractBounds",
        "AbstractVectors",
        "InadmissibleBoundError",
        "LabelVectors",
        "PairVectors",
        "PaperBounds",
        "PublishedVectors",
        "TightBounds",
        "TopBott",
    ),
    "optexp_jax.comparison": ("Comparison", "ContradictionError", "compare"),
    "optexp_jax.concepts": (
        "Concept",
        "ConceptTable",
        "LabelLayer",
        "TableBuilder",
        "TableFileError",
    ),
    "optexp_jax.explain": ("explain", "trade_off"),
    "optexp_jax.explanation": (
        "Explanation",
        "LengthOptimum",
        "RunnerUp",
        "SearchStats",
        "Seconds",
        "Status",
        "StoppedBy",
    ),
    "optexp_jax.formulas.formula": ("Formula",),
    "optexp_jax.formulas.batch": ("FormulaBatch",),
    "optexp_jax.methods.beam.guides": (
        "AbstractGuide",
        "MMESHGuide",
        "QuantityGuide",
    ),
    "optexp_jax.internal.kernel_choice": ("Kernels", "kernels"),
    "optexp_jax.methods": (
        "AbstractMethod",
        "Beam",
        "Exhaustive",
        "NetDissect",
        "Optimal",
        "TradeOff",
    ),
    "optexp_jax.counts.metrics": ("Objective", "Overlap"),
    "optexp_jax.counts.neuron": ("NeuronCounts",),
    "optexp_jax.counts.neuron_summary": ("NeuronSummary", "SingleConcept"),
    "optexp_jax.counts.reweighting": ("Reweighting",),
    "optexp_jax.formulas.operators": (
        "AND",
        "AND_NOT",
        "DEFAULT_OPERATORS",
        "OR",
        "Operator",
    ),
    "optexp_jax.methods.hull.curve": ("TradeOffCurve", "TradeOffSegment", "TradeOffVertex"),
    "optexp_jax.runs": ("Run",),
    "optexp_jax.runs.many": ("explain_many",),
    "optexp_jax.counts.scores": (
        "BatchScores",
        "Score",
        "iou",
        "iou_many",
    ),
    "optexp_jax.validation": ("choose_length", "confidence_set", "held_out", "stability"),
    "optexp_jax.search": (
        "AbstractOrder",
        "BestFirst",
        "BreadthFirst",
        "DepthFirst",
        "Progress",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_PARTS = (
    "activations",
    "comparison",
    "datasets",
    "plot",
    "reproduction",
    "runs",
    "stand_ins",
    "testing",
    "validation",
)

__all__ = [
    "AND",
    "AND_NOT",
    "DEFAULT_OPERATORS",
    "OR",
    "AbstractBounds",
    "AbstractGuide",
    "AbstractMethod",
    "AbstractOrder",
    "AbstractVectors",
    "BatchScores",
    "Beam",
    "BestFirst",
    "BreadthFirst",
    "Comparison",
    "Concept",
    "ConceptTable",
    "ContradictionError",
    "DepthFirst",
    "Exhaustive",
    "Explanation",
    "Formula",
    "FormulaBatch",
    "InadmissibleBoundError",
    "Kernels",
    "LabelLayer",
    "LabelVectors",
    "LengthOptimum",
    "MMESHGuide",
    "NetDissect",
    "NeuronCounts",
    "NeuronSummary",
    "Objective",
    "Operator",
    "Optimal",
    "Overlap",
    "PairVectors",
    "PaperBounds",
    "Progress",
    "PublishedVectors",
    "QuantityGuide",
    "Reweighting",
    "Run",
    "RunnerUp",
    "Score",
    "SearchStats",
    "Seconds",
    "SingleConcept",
    "Status",
    "StoppedBy",
    "TableBuilder",
    "TableFileError",
    "TightBounds",
    "TopBott",
    "TradeOff",
    "TradeOffCurve",
    "TradeOffSegment",
    "TradeOffVertex",
    "activations",
    "choose_length",
    "compare",
    "comparison",
    "confidence_set",
    "datasets",
    "explain",
    "explain_many",
    "held_out",
    "iou",
    "iou_many",
    "kernels",
    "plot",
    "reproduction",
    "runs",
    "stability",
    "stand_ins",
    "testing",
    "trade_off",
    "validation",
]


if not TYPE_CHECKING:  # or else a type checker would believe in every name

    def __getattr__(name: str) -> object:
        """A public name, when it is first asked for."""
        if name in _PARTS:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            found = version("optexp-jax")
        elif name in _HOME:
            found = getattr(importlib.import_module(_HOME[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        setattr(sys.modules[__name__], name, found)
        return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """This package. Its function `explain` lies in a module of that name, which does not hide it.

    Python makes every module that is imported an attribute of its package.
    """

    def __setattr__(self, name: str, value: object) -> None:
        is_module = isinstance(value, ModuleType)
        super().__setattr__(name, getattr(value, name) if is_module and name in _HOME else value)


sys.modules[__name__].__class__ = _Package
