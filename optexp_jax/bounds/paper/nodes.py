"""Nodes of the published search: a label and the path that goes on from it."""

import numpy as np
from jaxtyping import Bool, Int32, Int64

from optexp_jax.bounds.paper.exact_prefixes import row_bytes
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.internal.pytrees import pytree

AGGREGATED, SAMPLED, REWRITTEN = 0, 1, 2


@pytree
class PaperNodes:
    """Nodes (label, next operator): a chain, which path goes on from it, how well it is bounded."""

    concepts: Int32[np.ndarray, "nodes length"]
    operators: Int32[np.ndarray, "nodes length"]
    kind: Int32[np.ndarray, " nodes"]
    """Index of the next operator; past the last one: "final", no further concept."""
    stage: Int32[np.ndarray, " nodes"]
    """AGGREGATED, SAMPLED or REWRITTEN: the best estimate made so far."""
    known_length: Int32[np.ndarray, " nodes"]
    """Concepts in the exact prefix that the estimate is based on."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def lengths(self) -> Int64[np.ndarray, " nodes"]:
        return (self.concepts != PADDING).sum(1)

    def unordered_keys(self) -> list[bytes]:
        """Keys that nodes with the same concepts and the same kind share, in whatever order."""
        return row_bytes(np.column_stack([np.sort(self.concepts, axis=1), self.kind]))

    def begin(self, formulas: FormulaBatch) -> Bool[np.ndarray, "nodes formulas"]:
        """Which chains begin with each label, as they are written."""
        concepts, operators = np.asarray(formulas.concepts), np.asarray(formulas.operators)
        same = (self.concepts[:, None] == concepts) & (self.operators[:, None] == operators)
        return (same | (self.concepts == PADDING)[:, None]).all(2)

    def operator_after(self, formulas: FormulaBatch) -> Int32[np.ndarray, "nodes formulas"]:
        """The operator that follows in each chain after as many concepts as each label has."""
        operators = np.pad(
            np.asarray(formulas.operators), ((0, 0), (0, 1)), constant_values=PADDING
        )
        return operators[:, self.lengths].T
