"""Enumeration over distinct masks: the strongest simple way for long formulas on small tables.

Many formulas of the same concepts hold at the same signatures. Each mask is kept once for each set
of concepts that it can be made of, once a table. A unit's scores then are one product of all masks
of one concept less with the table: the last step needs counts only. It shares no code with the
searches.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score

CHUNK = 4096
"""Masks that are looked at at once."""


@dataclass(frozen=True, eq=False)
class DistinctMasks:
    """The masks of formulas of one length, each once for each set of concepts."""

    masks: UInt8[np.ndarray, "masks bytes"]
    """Eight signatures to a byte."""
    used: Bool[np.ndarray, "masks concepts"]

    def __len__(self) -> int:
        return len(self.masks)

    @classmethod
    def of(
        cls, masks: Bool[np.ndarray, "rows signatures"], used: Bool[np.ndarray, "rows concepts"]
    ) -> "DistinctMasks":
        """Each once; those that hold nowhere are of no use."""
        return cls(np.packbits(masks, axis=1), used).once()

    def once(self) -> "DistinctMasks":
        rows = np.column_stack([self.masks, np.packbits(self.used, axis=1)])
        keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").reshape(-1)
        first = np.unique(keys, return_index=True)[1]
        first = first[self.masks[first].any(1)]
        return DistinctMasks(self.masks[first], self.used[first])

    def longer(self, held: Bool[np.ndarray, "concepts signatures"]) -> "DistinctMasks":
        """The masks with one more concept."""
        parts: list[DistinctMasks] = []
        for start in range(0, len(self), CHUNK):
            used = self.used[start : start + CHUNK]
            masks = _unpacked(self.masks[start : start + CHUNK], held.shape[1])
            row, concept = np.nonzero(~used)
            right, sets = held[concept], used[row]
            sets[np.arange(len(row)), concept] = True
            left = masks[row]
            for joined in (left | right, left & right, left & ~right):
                parts.append(DistinctMasks.of(joined, sets))
        return DistinctMasks(
            np.concatenate([part.masks for part in parts]),
            np.concatenate([part.used for part in parts]),
        ).once()


@dataclass(frozen=True, eq=False)
class MaskEnumeration:
    """All masks of formulas of up to so many concepts less one, for every unit of a table."""

    held: Bool[np.ndarray, "concepts signatures"]
    levels: tuple[DistinctMasks, ...]

    @classmethod
    def of(cls, table: ConceptTable, length: int) -> "MaskEnumeration":
        n = table.n_concepts
        held = np.stack([table.signatures.membership(k) for k in range(n)])
        levels = [DistinctMasks.of(held, np.eye(n, dtype=bool))]
        while len(levels) < min(length, n) - 1:
            levels.append(levels[-1].longer(held))
        return cls(held, tuple(levels))

    @property
    def n_masks(self) -> int:
        return sum(map(len, self.levels))

    def highest(self, neuron: NeuronCounts) -> list[Score]:
        """The highest IoU of formulas of at most 1, 2, ... concepts."""
        # Sums below 2**53 are exact in float64.
        counts = np.stack([neuron.inside, neuron.outside]).astype(np.float64)
        weighted = (self.held[None] * counts[:, None]).reshape(-1, counts.shape[1])
        product = np.concatenate([weighted, counts]).T.copy()
        own = weighted.sum(1).reshape(2, 1, -1)
        best = [_highest(own, neuron.size)]
        for level in self.levels:
            found = best[-1]
            for start in range(0, len(level), CHUNK):
                used = level.used[start : start + CHUNK]
                masks = _unpacked(level.masks[start : start + CHUNK], counts.shape[1])
                sums = masks.astype(np.float64) @ product
                both = sums[:, :-2].reshape(len(used), 2, -1).transpose(1, 0, 2)
                left = sums[:, -2:].T[:, :, None]
                for joined in (left + own - both, both, left - both):
                    score = _highest(np.where(used, 0, joined), neuron.size)
                    found = max(found, score, key=lambda each: each.ratio)
            best.append(found)
        return best


def _highest(counts: np.ndarray, size: int) -> Score:
    inside, outside = counts.reshape(2, -1)
    k = int((inside / (size + outside)).argmax())
    return Score(int(inside[k]), size + int(outside[k]))


def _unpacked(masks: UInt8[np.ndarray, "masks bytes"], n: int) -> Bool[np.ndarray, "masks n"]:
    return np.unpackbits(masks, axis=1, count=n).view(np.bool_)
