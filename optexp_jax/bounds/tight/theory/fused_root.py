"""All that a search asks first of a table with few concepts, in one program.

There a call costs more than what it does. The best pair's IoU is the v of the bounds that follow:
scores and bounds need not wait for the host in between. Several neurons go into one call.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64, Num

from optexp_jax.bounds.tight.counts.gram import complement
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import v_below
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.exact_scores import AllScores, all_scores
from optexp_jax.bounds.tight.theory.one_step import pair_bounds_of
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima, row_maxima
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch


@pytree
class FusedRoot:
    """Scores of one and two concepts over the whole table, and bounds on three, by neuron."""

    scores: AllScores
    inputs: BoundInputs
    """With v just below the highest score."""
    maxima: RowMaxima
    bounds: Float64[Array, "neurons concepts ops concepts"]
    """Upper bounds on W of each pair with one more concept."""

    @property
    def v(self) -> float:
        """Of the only neuron."""
        return float(fetch(self.inputs.v)[0])


@partial(jax.jit, static_argnames=("ops",))
def fused_root(
    total: Int64[Array, "one n n"],
    inside: Num[Array | np.ndarray, "neurons n n"],
    bases: Float64[Array | np.ndarray, " neurons"],
    *,
    ops: OperatorSet,
) -> FusedRoot:
    """Of some neurons, from `Overlaps.total` and `Overlaps.active`."""
    note_trace("fused_root")
    gram = complement(total, inside)
    every, of_each = jnp.ones(inside.shape[:2], bool), jnp.asarray(bases)
    scores = all_scores(BoundInputs(gram, every, every, jnp.zeros(len(bases))), of_each, ops)
    best = jnp.maximum(scores.single.max(1), scores.pairs.max((1, 2, 3)))
    inputs = BoundInputs(gram, every, every, v_below(best))
    maxima = row_maxima(inputs)
    # Propositions 2, 3 and 6.
    return FusedRoot(scores, inputs, maxima, pair_bounds_of(inputs.all_rows(), maxima, ops))


@jax.jit
def only(several: FusedRoot, k: Int32[Array | np.ndarray, ""]) -> FusedRoot:
    """The root of one of several neurons."""
    note_trace("only")
    return jax.tree.map(lambda part: jax.lax.dynamic_slice_in_dim(part, k, 1), several)
