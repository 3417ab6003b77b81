"""NeuronCounts: a unit's active locations, counted by signature and by patch."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.inputs import to_bool, to_counts
from optexp_jax.concepts.signatures import EMPTY_SIGNATURE
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.counting import count_active_patches


@dataclass(frozen=True, eq=False)
class NeuronCounts:
    """How many locations of each signature are active, and how many are not.

    Every count of every formula is a sum of these. The counts per patch, which per-sample estimates
    need, are kept for the patches that hold an active location.
    """

    inside: Int64[np.ndarray, " signatures"]
    outside: Int64[np.ndarray, " signatures"]
    active_patches: Int64[np.ndarray, " active"]
    """Patches with an active location, ascending."""
    active_counts: Int64[np.ndarray, " active"]
    """Active locations of each of them."""
    table_fingerprint: str

    @classmethod
    def from_signatures(cls, table: ConceptTable, inside: Any, *, uncovered: int = 0) -> Self:
        """From active counts of the rows that `ConceptTable.from_signatures` was given, in order.

        `uncovered` adds active locations that no row stands for: those the table has because of
        `n_locations`.
        """
        if table.given_rows is None:
            raise ValueError(
                "This table was not made with from_signatures; count a bitmap with table.count."
            )
        counts = to_counts(inside, "inside")
        if len(counts) != len(table.given_rows):
            raise ValueError(
                f"inside has {len(counts)} counts; the table was made from "
                f"{len(table.given_rows)} signatures."
            )
        if uncovered < 0:
            raise ValueError(f"uncovered must not be negative; got {uncovered}.")
        active = np.zeros(len(table.signatures), np.int64)
        np.add.at(active, table.given_rows, counts)
        active[EMPTY_SIGNATURE] += uncovered
        too_many = np.flatnonzero(active > table.sizes)
        if len(too_many):
            s = int(too_many[0])
            raise ValueError(
                f"Signature {s} ({table.signatures[s].tolist()}) has {table.sizes[s]} locations, "
                f"but {active[s]} active ones were given."
            )
        touched = np.flatnonzero(active)
        return cls.from_patches(table, touched, active[touched])

    @classmethod
    def from_patches(
        cls,
        table: ConceptTable,
        active_patches: Int64[np.ndarray, " active"],
        active_counts: Int64[np.ndarray, " active"],
    ) -> Self:
        """From the patches that hold active locations, and how many each."""
        inside = np.zeros(len(table.signatures), np.int64)
        np.add.at(inside, table.patches.signature[active_patches], active_counts)
        return cls(inside, table.sizes - inside, active_patches, active_counts, table.fingerprint)

    @cached_property
    def size(self) -> int:
        """|N|: all active locations, those without any concept too."""
        return int(self.inside.sum())

    def patch_inside(self, table: ConceptTable) -> Int64[np.ndarray, " patches"]:
        """Active locations of every patch."""
        counts = np.zeros(len(table.patches), np.int64)
        counts[self.active_patches] = self.active_counts
        return counts

    def require_table(self, table: ConceptTable) -> None:
        """Refuse counts that were made with another table."""
        if self.table_fingerprint != table.fingerprint:
            raise ValueError(
                "These neuron counts belong to another table: count the bitmap again with "
                "table.count."
            )

    def __repr__(self) -> str:
        total = self.size + int(self.outside.sum())
        return f"NeuronCounts({self.size} of {total} locations active, {self.size / total:.3%})"


def as_counts(table: ConceptTable, neuron: Any) -> NeuronCounts:
    """The counts of a bitmap, or counts as they are, if they belong to the table."""
    counts = neuron if isinstance(neuron, NeuronCounts) else table.count(neuron)
    counts.require_table(table)
    return counts


def count_bitmaps(table: ConceptTable, bitmaps: Any) -> list[NeuronCounts]:
    """Count many units' active locations: see `ConceptTable.count_many`."""
    located = table.require_map("count")
    checked = to_bool(bitmaps, "bitmaps")
    n_samples, shape = located.n_samples, located.location_shape
    accepted = {(n_samples, *shape), (n_samples, located.sample_size)}
    if located.sample_size == 1:
        accepted.add((n_samples,))
    if checked.shape[1:] not in accepted:
        raise ValueError(
            f"A bitmap must be [sample, *location] = {(n_samples, *shape)}, as the table; got "
            f"{checked.shape[1:]}."
        )
    flat = checked.reshape(len(checked), n_samples, located.sample_size)
    return [
        NeuronCounts.from_patches(table, active.patches, active.counts)
        for active in count_active_patches(table, flat)
    ]
