"""A second proof of an optimum, by a simpler path than the searches take.

Where the best formula of every set of concepts can be told in time, all sets are tried, for many
units at once. For up to three concepts of OR, AND and AND NOT over larger tables, counts of pairs
rule out most formulas, and the rest is counted. Other problems are searched with the published
bounds. None of this uses the code of `TightBounds`.
"""

from optexp_jax.runs.reproof.outcome import ALL_TRIED, Reproof, Reproofs, StoredClaim
from optexp_jax.runs.reproof.proving import Prover

__all__ = ["ALL_TRIED", "Prover", "Reproof", "Reproofs", "StoredClaim"]
