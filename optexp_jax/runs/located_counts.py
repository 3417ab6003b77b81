"""A unit counted again, location by location: where its bitmap meets the table's own map."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.counts.table_cache import per_table
from optexp_jax.formulas.formula import Formula
from optexp_jax.runs.raw_maps import truth


@dataclass(frozen=True, eq=False)
class LocatedCounts:
    """What one pass over the locations of a unit tells of every formula."""

    table: ConceptTable
    active: int
    """Active locations, those of the bitmap alone."""
    n_locations: int
    neuron: NeuronCounts
    sizes: Int64[np.ndarray, " signatures"]
    """Locations of each signature, as the map has them."""

    def score(self, formula: Formula) -> Score:
        """A formula's score."""
        held = self.holds(formula)
        inside = int(self.neuron.inside[held].sum())
        return Score(inside, self.active + int(self.sizes[held].sum()) - inside)

    def places(self, formula: Formula) -> bytes:
        """The same for formulas that hold at the same locations."""
        return np.packbits(self.holds(formula) & (self.sizes > 0)).tobytes()

    def holds(self, formula: Formula) -> Bool[np.ndarray, " signatures"]:
        """Signatures at whose locations a formula holds, by the truth tables of its operators."""
        held = self._holding(formula.concepts[0])
        for operator, name in zip(formula.operators, formula.concepts[1:], strict=True):
            right = self._holding(name)
            held = truth(operator)[held.astype(np.intp), right.astype(np.intp)]
        return held

    def _holding(self, name: str) -> Bool[np.ndarray, " signatures"]:
        """Signatures with a concept, from their lists."""
        lists = self.table.signatures
        held = np.zeros(len(lists), bool)
        entries = np.flatnonzero(lists.indices == self.table.names.index(name))
        held[np.searchsorted(lists.indptr, entries, side="right") - 1] = True
        return held

    @cached_property
    def best_concept(self) -> str | None:
        """The best single concept, counted along the lists of the signatures."""
        lists = self.table.signatures
        owner = np.repeat(np.arange(len(lists)), lists.lengths)
        inside, size = (np.zeros(self.table.n_concepts, np.int64) for _ in range(2))
        np.add.at(inside, lists.indices, self.neuron.inside[owner])
        np.add.at(size, lists.indices, self.sizes[owner])
        scores = {
            name: Fraction(int(held), self.active + int(total) - int(held))
            for name, held, total in zip(self.table.names, inside, size, strict=True)
            if held
        }
        return min(scores, key=lambda name: (-scores[name], name), default=None)


def count_located(
    table: ConceptTable, bitmaps: Sequence[Bool[np.ndarray, "samples *location"]]
) -> list[LocatedCounts]:
    """Count units whose bitmaps are held, in one pass over the table's map."""
    located = table.require_map("counting locations")
    patches: list[list[Int64[np.ndarray, " _"]]] = [[] for _ in bitmaps]
    counts: list[list[Int64[np.ndarray, " _"]]] = [[] for _ in bitmaps]
    for start, stop in table.sample_blocks():
        first = int(table.patches.indptr[start])
        at = (table.patches.indptr[start:stop, None] - first + located.block(start, stop)).ravel()
        for k, bitmap in enumerate(bitmaps):
            found = np.bincount(at[np.flatnonzero(bitmap[start:stop])])
            active = np.flatnonzero(found)
            patches[k].append(active + first)
            counts[k].append(found[active].astype(np.int64))
    sizes = sizes_on_map(table)
    return [
        LocatedCounts(
            table,
            int(np.count_nonzero(bitmap)),
            bitmap.size,
            NeuronCounts.from_patches(table, np.concatenate(which), np.concatenate(n)),
            sizes,
        )
        for bitmap, which, n in zip(bitmaps, patches, counts, strict=True)
    ]


@per_table
def sizes_on_map(table: ConceptTable) -> Int64[np.ndarray, " signatures"]:
    """Locations of each signature, counted on the map."""
    sizes = np.zeros(len(table.signatures), np.int64)
    for start, stop in table.sample_blocks():
        sizes += np.bincount(table.signature_map(start, stop).ravel(), minlength=len(sizes))
    return sizes
