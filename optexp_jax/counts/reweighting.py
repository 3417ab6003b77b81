"""Reweighting: the same samples, each counted a number of times."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.inputs import MAX_LOCATIONS, to_counts, to_numpy
from optexp_jax.concepts.patches import Patches
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts


@dataclass(frozen=True, eq=False)
class Reweighting:
    """A table in which sample x counts `weights[x]` times: 0 or 1 in a fold, draws in a bootstrap.

    Its signatures are those of the original, with other counts, so every method works on it and
    scores stay whole numbers. Sizes are computed once for all units.
    """

    original: ConceptTable
    weights: Any
    """One a sample: whole numbers, or booleans for samples that count once or not at all."""

    def __post_init__(self) -> None:
        given = to_numpy(self.weights, "weights")
        weights = to_counts(given.astype(np.int64) if given.dtype == bool else given, "weights")
        if len(weights) != self.original.n_samples:
            raise ValueError(
                f"There are {len(weights)} weights; the table has {self.original.n_samples} "
                "samples. Pass one weight a sample."
            )
        per_sample = np.bincount(
            self.original.patches.sample,
            weights=self.original.patches.size,
            minlength=len(weights),
        )
        # In Python's integers, because numpy's would wrap without a word.
        total = sum(
            int(size) * weight for size, weight in zip(per_sample, weights.tolist(), strict=True)
        )
        if not 0 < total < MAX_LOCATIONS:
            raise ValueError(
                f"The weights leave {total} locations; there must be at least one, and fewer than "
                "2**53. Give some sample a weight, or smaller weights to all."
            )
        object.__setattr__(self, "weights", weights)

    @cached_property
    def table(self) -> ConceptTable:
        """The original's signatures with weighted sizes. It knows no locations, only counts."""
        patches = self.original.patches
        weighted = Patches(
            patches.indptr, patches.signature, patches.size * self.weights[patches.sample]
        )
        return ConceptTable(
            self.original.names,
            self.original.categories,
            self.original.signatures,
            weighted,
            sample_map=None,
        )

    def counts(self, neuron: NeuronCounts) -> NeuronCounts:
        """A unit of the original table, counted with the weights."""
        neuron.require_table(self.original)
        weight = self.weights[self.original.patches.sample[neuron.active_patches]]
        kept = weight > 0
        return NeuronCounts.from_patches(
            self.table,
            neuron.active_patches[kept],
            neuron.active_counts[kept] * weight[kept],
        )

    def counts_many(self, neurons: Sequence[NeuronCounts]) -> list[NeuronCounts]:
        """Several units, counted with the weights."""
        return [self.counts(each) for each in neurons]


def complement(weights: Any) -> Int64[np.ndarray, " samples"]:
    """One for each sample that has no weight: what a fold or a resample leaves out."""
    return (np.asarray(weights) == 0).astype(np.int64)
