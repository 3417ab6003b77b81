"""All that searches first ask of a table with few concepts, in one program.

There a call costs more than what it does. The best pair's IoU is the v of the bounds that follow,
so that scores and bounds need not wait for the host in between. Several neurons are looked at in
one call.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64, Num

from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import Overlaps, complement, count_several
from optexp_jax.bounds.tight.pair_bounds import pair_bounds_of
from optexp_jax.bounds.tight.pair_scores import AllScores, all_scores
from optexp_jax.bounds.tight.region import BoundInputs
from optexp_jax.bounds.tight.rows import Rows, rows_of
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.internal.padding import round_up_to_power_of_two
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, run


@pytree
class FirstLook:
    """Scores of one and two concepts over the whole table, and bounds on three, by neuron."""

    scores: AllScores
    regions: BoundInputs
    """With v just below the highest score."""
    rows: Rows
    bounds: Float64[Array, "neurons concepts forms concepts"]
    """Upper bounds on W of each pair with one more concept."""

    @property
    def v(self) -> float:
        """Of the only neuron."""
        return float(fetch(self.regions.v)[0])


@partial(jax.jit, static_argnames=("forms",))
def first_look(
    total: Int64[Array, "one n n"],
    inside: Num[Array | np.ndarray, "neurons n n"],
    neuron_sizes: Int64[Array | np.ndarray, " neurons"],
    *,
    forms: Forms,
) -> FirstLook:
    """Of some neurons, from `Overlaps.total` and `Overlaps.active`."""
    note_trace("first_look")
    gram = complement(total, inside)
    every, sizes = jnp.ones(inside.shape[:2], bool), jnp.asarray(neuron_sizes)
    scores = all_scores(BoundInputs(gram, every, every, jnp.zeros(len(sizes))), sizes, forms)
    best = jnp.maximum(scores.single.max(1), scores.pairs.max((1, 2, 3)))
    regions = BoundInputs(gram, every, every, jnp.nextafter(best, jnp.zeros_like(best)))
    rows = rows_of(regions)
    return FirstLook(scores, regions, rows, pair_bounds_of(regions.all_rows(), rows, forms))


@jax.jit
def _only(look: FirstLook, k: Int32[Array | np.ndarray, ""]) -> FirstLook:
    """What was seen of one of several neurons."""
    note_trace("only")
    return jax.tree.map(lambda part: jax.lax.dynamic_slice_in_dim(part, k, 1), look)


@dataclass(frozen=True, eq=False)
class _PreparedLook:
    """A neuron's place among several that were looked at together."""

    forms: Forms
    together: FirstLook
    k: int


_prepared: weakref.WeakKeyDictionary[NeuronCounts, _PreparedLook] = weakref.WeakKeyDictionary()


def prepare_looks(table: ConceptTable, neurons: Sequence[NeuronCounts], forms: Forms) -> None:
    """Look at several neurons in one call, for the searches that come next."""
    n = round_up_to_power_of_two(len(neurons))
    inside = count_several(table, neurons, filled=n)
    sizes = np.ones(n, np.int64)
    sizes[: len(neurons)] = [neuron.size for neuron in neurons]
    with jax.enable_x64(True):
        look = run(first_look, Overlaps(table, neurons[0]).total, inside, sizes, forms=forms)
    for k, neuron in enumerate(neurons):
        _prepared[neuron] = _PreparedLook(forms, look, k)


def look_at(overlaps: Overlaps, forms: Forms) -> FirstLook:
    """Look at one neuron, unless that was done with others."""
    prepared = _prepared.pop(overlaps.neuron, None)
    with jax.enable_x64(True):
        if prepared is not None and prepared.forms == forms:
            return run(_only, prepared.together, np.int32(prepared.k))
        sizes = np.array([overlaps.neuron.size])
        return run(first_look, overlaps.total, overlaps.active, sizes, forms=forms)
