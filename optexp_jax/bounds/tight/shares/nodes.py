"""Nodes of the search over sets: concepts that are in, and candidates for the others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int32, UInt8

from optexp_jax.internal.pytrees import pytree

NONE = -1


@pytree
class ShareNodes:
    """A node stands for all sets of `size` concepts: those in `chosen`, the others of `kept`."""

    chosen: Int32[np.ndarray, "nodes most"]
    """In the order in which they came in; -1 after the last."""
    size: Int32[np.ndarray, " nodes"]
    kept: UInt8[np.ndarray, "nodes bytes"]
    """One bit a concept of the table."""

    @classmethod
    def of(
        cls,
        chosen: Sequence[Sequence[int]],
        kept: Sequence[Bool[np.ndarray, " concepts"]],
        size: int,
        most: int,
    ) -> "ShareNodes":
        padded = np.full((len(chosen), most), NONE, np.int32)
        for row, concepts in zip(padded, chosen, strict=True):
            row[: len(concepts)] = concepts
        packed = np.packbits(np.array(kept, bool), axis=1)
        return cls(padded, np.full(len(chosen), size, np.int32), packed)

    def concepts_in(self, row: int) -> Int32[np.ndarray, " chosen"]:
        """The concepts that are in."""
        return self.chosen[row][self.chosen[row] != NONE]

    def candidates(self, row: int, n_concepts: int) -> Bool[np.ndarray, " concepts"]:
        """Which concepts may be among the others."""
        return np.unpackbits(self.kept[row], count=n_concepts).astype(bool)
