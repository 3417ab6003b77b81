"""All that the search first asks of a table with few concepts, in one program.

There a call costs more than what it does. The best pair's IoU is the v of the bounds that follow,
so that scores and bounds need not wait for the host in between.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int64, Num

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.grams import complement
from optexp_jax.tight.pair_bounds import pair_bounds_of
from optexp_jax.tight.pair_scores import AllScores, all_scores
from optexp_jax.tight.region import Regions
from optexp_jax.tight.rows import Rows, rows_of
from optexp_jax.tracing import note_trace


@pytree
class FirstLook:
    """Scores of one and two concepts over the whole table, and bounds on three."""

    scores: AllScores
    regions: Regions
    """With v just below the highest score."""
    rows: Rows
    bounds: Float64[Array, "concepts forms concepts"]
    """Upper bounds on W of each pair with one more concept."""


@partial(jax.jit, static_argnames=("forms",))
def first_look(
    total: Int64[Array, "one n n"],
    inside: Num[Array | np.ndarray, "one n n"],
    neuron_size: Int64[Array, ""],
    *,
    forms: Forms,
) -> FirstLook:
    """Of a neuron, from what `Overlaps.counted` gives."""
    note_trace("first_look")
    gram, every = complement(total, inside), jnp.ones(total.shape[:2], bool)
    scores = all_scores(Regions(gram, every, every, jnp.float64(0)), neuron_size, forms)
    best = jnp.maximum(scores.single.max(), scores.pairs.max())
    v = jnp.nextafter(best, jnp.float64(0))
    regions = Regions(gram, every, every, v)
    rows = rows_of(regions)
    bounds = pair_bounds_of(regions.all_rows(), rows, forms)[0]
    return FirstLook(scores, regions, rows, bounds)
