"""The concepts that count in a subproblem, numbered anew.

Most concepts are of no use in most subproblems. What is left of them is filled up to one size, so
that subproblems share compiled programs.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int32, Shaped


@dataclass(frozen=True, eq=False)
class LocalConcepts:
    """Some of a table's concepts, and empty ones after them."""

    ids: Int32[np.ndarray, " kept"]
    """Their numbers in the table, ascending."""
    size: int
    n_table: int

    @classmethod
    def everything(cls, n_table: int) -> "LocalConcepts":
        """All concepts as they are."""
        return cls(np.arange(n_table, dtype=np.int32), n_table, n_table)

    @classmethod
    def of(cls, kept: Bool[np.ndarray, " concepts"], few: float) -> "LocalConcepts":
        """At least those that are kept: all of them, unless they are a share `few` or less."""
        n_table, size = len(kept), int(len(kept) * few)
        if kept.sum() > size or not size:
            return cls.everything(n_table)
        return cls(np.flatnonzero(kept).astype(np.int32), size, n_table)

    @property
    def is_everything(self) -> bool:
        return len(self.ids) == self.n_table

    @cached_property
    def number(self) -> Int32[np.ndarray, " concepts"]:
        """The number here of each concept of the table; `size` for those that are left out."""
        number = np.full(self.n_table, self.size, np.int32)
        number[self.ids] = np.arange(len(self.ids))
        return number

    def pick(self, values: Shaped[np.ndarray, "*rows concepts"]) -> Shaped[np.ndarray, "*rows m"]:
        """Values of the table's concepts for those here; 0 for the empty ones."""
        if self.is_everything:
            return values
        picked = np.zeros((*values.shape[:-1], self.size), values.dtype)
        picked[..., : len(self.ids)] = values[..., self.ids]
        return picked
