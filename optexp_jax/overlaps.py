"""Exact overlaps of formulas with every concept, which give the scores of all their children.

With k the locations that P and c share, `P∘c` has `p(P − k) + q(c − k) + r·k` of them, inside the
neuron and outside. One pass over the signatures of P counts k for all concepts at once.
"""

import weakref
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int64, UInt32

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.device_table import LANES, device_neuron
from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.neuron import NeuronCounts
from optexp_jax.scores import pad_batch, signatures_held
from optexp_jax.shapes import round_up_in_eighths
from optexp_jax.tracing import note_trace


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Locations that each formula shares with each concept."""

    inside: Int64[np.ndarray, "formulas concepts"]
    outside: Int64[np.ndarray, "formulas concepts"]


class _Holders:
    """Which signatures hold each concept, on the device; padding has no concept and is dropped."""

    def __init__(self, table: ConceptTable):
        by_concept = table.signatures.holders
        n = by_concept.nnz
        missing = round_up_in_eighths(n, 256) - n
        concept = np.repeat(np.arange(table.n_concepts), np.diff(by_concept.indptr))
        self.signature: Int64[Array, " entries"]
        self.concept: Int64[Array, " entries"]
        with jax.enable_x64(True):
            self.signature, self.concept = (
                jnp.asarray(np.pad(part.astype(np.int64), (0, missing), constant_values=filler))
                for part, filler in ((by_concept.indices, 0), (concept, table.n_concepts))
            )


_tables: weakref.WeakKeyDictionary[ConceptTable, _Holders] = weakref.WeakKeyDictionary()


def overlaps_with_concepts(
    table: ConceptTable, neuron: NeuronCounts, formulas: FormulaBatch
) -> Overlaps:
    """What each formula shares with each concept, inside the neuron and outside."""
    if table not in _tables:
        _tables[table] = _Holders(table)
    holders, counts = _tables[table], device_neuron(table, neuron)
    with jax.enable_x64(True):
        held = signatures_held(table, pad_batch(formulas))
        shared = np.asarray(
            _count_shared(
                held,
                counts.inside,
                counts.outside,
                holders.signature,
                holders.concept,
                table.n_concepts,
            )
        )
    inside, outside = shared[: len(formulas)].transpose(2, 0, 1)
    return Overlaps(inside, outside)


@jax.jit(static_argnums=5)
def _count_shared(
    held: UInt32[Array, "formulas words"],
    inside: Int64[Array, "words lanes"],
    outside: Int64[Array, "words lanes"],
    signature: Int64[Array, " entries"],
    concept: Int64[Array, " entries"],
    n_concepts: int,
) -> Int64[Array, "formulas concepts two"]:
    note_trace("overlaps_with_concepts")
    counts = jnp.stack([inside, outside], axis=2).reshape(-1, 2)
    lanes = jnp.arange(LANES, dtype=jnp.uint32)

    def one_formula(packed: UInt32[Array, " words"]) -> Int64[Array, "concepts two"]:
        here = ((packed[:, None] >> lanes[None, :]) & jnp.uint32(1) != 0).reshape(-1, 1)
        own = jnp.where(here, counts, jnp.int64(0))
        return jax.ops.segment_sum(own[signature], concept, n_concepts, indices_are_sorted=True)

    # One formula at a time: the entries of large tables are millions.
    return jax.lax.map(one_formula, held)
