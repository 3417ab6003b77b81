"""What differs between two runs over the same units, in the paper's categories."""

from optexp_jax.comparison.category import Category
from optexp_jax.comparison.comparing import compare
from optexp_jax.comparison.comparison import ComparedRun, ComparedUnit, Comparison
from optexp_jax.comparison.contradictions import ContradictionError
from optexp_jax.comparison.summary import CategorySummary, IoUSummary

__all__ = [
    "Category",
    "CategorySummary",
    "ComparedRun",
    "ComparedUnit",
    "Comparison",
    "ContradictionError",
    "IoUSummary",
    "compare",
]
