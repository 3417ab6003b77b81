"""Exact overlaps of formulas with every concept, which give the scores of all their children.

With k the locations that P and c share, `P∘c` has `p(P − k) + q(c − k) + r·k` of them, inside the
neuron and outside. Two kernels count k for all concepts at once and give the same integers: one
touches only the signatures that a formula holds, on the host; one streams over all of them on the
device.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int64, UInt32

from optexp_jax.concepts.signatures import ranges
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import LANES, device_neuron
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import held_on_host, pad_batch, signatures_held
from optexp_jax.counts.table_cache import per_table
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.padding import round_up_in_eighths
from optexp_jax.internal.tracing import note_trace

BLOCK = 2**19
"""About how many formulas times signatures the host looks at at once: they stay in the cache."""


@dataclass(frozen=True, eq=False)
class FormulaOverlaps:
    """Locations of each formula, and those that it shares with each concept."""

    inside: Int64[np.ndarray, " formulas"]
    outside: Int64[np.ndarray, " formulas"]
    shared_inside: Int64[np.ndarray, "formulas concepts"]
    shared_outside: Int64[np.ndarray, "formulas concepts"]

    def first(self, n: int) -> "FormulaOverlaps":
        """Those of the first n formulas."""
        return FormulaOverlaps(
            self.inside[:n], self.outside[:n], self.shared_inside[:n], self.shared_outside[:n]
        )


def overlaps_with_concepts(
    table: ConceptTable,
    neuron: NeuronCounts,
    formulas: FormulaBatch,
    region: Bool[np.ndarray, " signatures"] | None = None,
    on_host: bool | None = None,
) -> FormulaOverlaps:
    """Counts of each formula, within a region if one is given, and of what it shares."""
    if prefers_host_kernels() if on_host is None else on_host:
        return _on_host(table, neuron, formulas, region)
    return _on_device(table, neuron, formulas, region)


def _on_host(
    table: ConceptTable,
    neuron: NeuronCounts,
    formulas: FormulaBatch,
    region: Bool[np.ndarray, " signatures"] | None,
) -> FormulaOverlaps:
    """A block of formulas after another."""
    step = max(1, BLOCK // len(table.signatures))
    blocks: list[FormulaOverlaps] = []
    for start in range(0, len(formulas), step):
        held = held_on_host(table, formulas.part(start, start + step))
        blocks.append(_count_held(table, neuron, held if region is None else held & region))
    names = ("inside", "outside", "shared_inside", "shared_outside")
    if len(blocks) == 1:
        return blocks[0]
    return FormulaOverlaps(
        *(np.concatenate([getattr(part, name) for part in blocks]) for name in names)
    )


def _count_held(
    table: ConceptTable, neuron: NeuronCounts, held: Bool[np.ndarray, "formulas signatures"]
) -> FormulaOverlaps:
    signatures = table.signatures
    # One dimension: numpy finds what is not zero in matrices several times slower.
    cell = np.flatnonzero(held.reshape(-1))
    formula = np.repeat(np.arange(len(held)), held.sum(1))
    signature = cell - formula * len(signatures)
    counts = signatures.lengths[signature]
    entries = ranges(signatures.indptr[signature], counts)
    pair = np.repeat(formula * table.n_concepts, counts) + signatures.indices[entries]
    shape = len(held), table.n_concepts

    def sums(at: np.ndarray, weights: np.ndarray, n: int) -> Int64[np.ndarray, " n"]:
        # Counts add up to less than 2**53, so that their sums as float64 are exact.
        return np.bincount(at, weights, n).astype(np.int64)

    inside, outside = (
        part[signature].astype(np.float64) for part in (neuron.inside, neuron.outside)
    )
    return FormulaOverlaps(
        sums(formula, inside, len(held)),
        sums(formula, outside, len(held)),
        sums(pair, np.repeat(inside, counts), shape[0] * shape[1]).reshape(shape),
        sums(pair, np.repeat(outside, counts), shape[0] * shape[1]).reshape(shape),
    )


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


@per_table
def _holders(table: ConceptTable) -> _Holders:
    return _Holders(table)


def _on_device(
    table: ConceptTable,
    neuron: NeuronCounts,
    formulas: FormulaBatch,
    region: Bool[np.ndarray, " signatures"] | None,
) -> FormulaOverlaps:
    holders, counts = _holders(table), device_neuron(table, neuron)
    everywhere = np.ones(counts.inside.shape, bool)
    if region is not None:
        everywhere.reshape(-1)[: len(region)] = region
    with jax.enable_x64(True):
        held = signatures_held(table, pad_batch(formulas))
        found = _count_shared(
            held,
            jnp.where(everywhere, counts.inside, 0),
            jnp.where(everywhere, counts.outside, 0),
            holders.signature,
            holders.concept,
            table.n_concepts,
        )
        own, shared = (np.asarray(part)[: len(formulas)] for part in found)
    return FormulaOverlaps(own[:, 0], own[:, 1], shared[:, :, 0], shared[:, :, 1])


@jax.jit(static_argnums=5)
def _count_shared(
    held: UInt32[Array, "formulas words"],
    inside: Int64[Array, "words lanes"],
    outside: Int64[Array, "words lanes"],
    signature: Int64[Array, " entries"],
    concept: Int64[Array, " entries"],
    n_concepts: int,
) -> tuple[Int64[Array, "formulas two"], Int64[Array, "formulas concepts two"]]:
    note_trace("overlaps_with_concepts")
    counts = jnp.stack([inside, outside], axis=2).reshape(-1, 2)
    lanes = jnp.arange(LANES, dtype=jnp.uint32)

    def one_formula(
        packed: UInt32[Array, " words"],
    ) -> tuple[Int64[Array, " two"], Int64[Array, "concepts two"]]:
        here = ((packed[:, None] >> lanes[None, :]) & jnp.uint32(1) != 0).reshape(-1, 1)
        own = jnp.where(here, counts, jnp.int64(0))
        shared = jax.ops.segment_sum(own[signature], concept, n_concepts, indices_are_sorted=True)
        return own.sum(0), shared

    # One formula at a time: the entries of large tables are millions.
    return jax.lax.map(one_formula, held)
