"""Which concepts can be part of a formula of interest in a subproblem.

Take a concept x out of a chain of t concepts, so that fewer are left. What that changes is bounded
by x alone (Proposition 12). Where W of all shorter formulas, and the most that x can add, are below
what is needed, no formula with x is of interest.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int64

from optexp_jax.bounds.tight.counts.gram import ConceptCounts, Gram
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import raised, weight
from optexp_jax.bounds.tight.theory.top_k import sums_of_top_k
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch_all


@dataclass(frozen=True, eq=False)
class OverlapSums:
    """For every concept, the sums of its k largest overlaps with others, k = 0, 1, …"""

    inside: Float64[np.ndarray, "counts concepts"]
    outside: Float64[np.ndarray, "counts concepts"]

    @classmethod
    def of(cls, gram: Gram, longest: int) -> "OverlapSums":
        """Over the whole table; over a region they are no larger."""
        with jax.enable_x64(True):
            return cls(*fetch_all(*_overlap_sums(gram, longest=longest)))


@partial(jax.jit, static_argnames="longest")
def _overlap_sums(
    gram: Gram, *, longest: int
) -> tuple[Float64[Array, "counts concepts"], Float64[Array, "counts concepts"]]:
    note_trace("overlap_sums")

    def sums(pairs: Int64[Array, "one n n"]) -> Float64[Array, "counts n"]:
        n = pairs.shape[1]
        others = jnp.where(jnp.eye(n, dtype=bool), 0.0, pairs[0].astype(jnp.float64))
        return sums_of_top_k(others, longest)

    return sums(gram.inside), sums(gram.outside)


def gains(
    own: ConceptCounts, sums: OverlapSums, v: float, left: int, ops: OperatorSet
) -> Float64[np.ndarray, " concepts"]:
    """Proposition 12: how much each concept can add to what others of `left` concepts make."""
    inside, outside = own.inside.astype(float), own.outside.astype(float)
    k = min(left - 1, len(sums.inside) - 1)
    common_i = np.minimum(inside, sums.inside[k])
    common_e = np.minimum(outside, sums.outside[k])
    gain = weight(inside, v * (outside - common_e))
    if ops.intersection:
        gain = np.maximum(gain, common_i)
    if ops.difference:
        gain = np.maximum(gain, raised(v * common_e))
    return gain


def present(own: ConceptCounts) -> Bool[np.ndarray, " concepts"]:
    """Which concepts are anywhere in a region: others are of no use there."""
    return own.inside + own.outside > 0
