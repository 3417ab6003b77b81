"""What any two concepts share, inside the neuron and outside, in the whole dataset."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.overlaps import overlaps_with_concepts
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.operators import DEFAULT_OPERATORS


class PairOverlaps(eqx.Module):
    """Locations that two concepts share, for each pair; on the diagonal, those of the concept."""

    inside: Int64[Array, "concepts concepts"]
    outside: Int64[Array, "concepts concepts"]


def pair_overlaps(table: ConceptTable, neuron: NeuronCounts) -> PairOverlaps:
    """The overlaps of all pairs, exactly."""
    every = np.arange(table.n_concepts, dtype=np.int32)[:, None]
    leaves = FormulaBatch(every, np.full_like(every, PADDING), DEFAULT_OPERATORS)
    shared = overlaps_with_concepts(table, neuron, leaves)
    with jax.enable_x64(True):
        return PairOverlaps(jnp.asarray(shared.shared_inside), jnp.asarray(shared.shared_outside))
