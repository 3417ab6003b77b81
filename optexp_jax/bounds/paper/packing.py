"""Nodes on their way to the device: one integer matrix, so that a call moves one small array."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Int32

from optexp_jax.bounds.paper.chains import Chains, KnownPairs
from optexp_jax.bounds.paper.exact_prefixes import ExactPrefixes
from optexp_jax.bounds.paper.nodes import PaperNodes

FINAL, PATH = 0, 1
"""Tasks: estimate the label itself, or the path that goes on from it."""

REWRITE = 2
"""Added to a task: use the distributed form as well."""


class PackedRows(eqx.Module):
    """Nodes to estimate or to expand, on the device."""

    chains: Chains
    kind: Int32[Array, " rows"]
    """Index of the next operator; that of a final node stands for none."""
    pairs: KnownPairs
    task: Int32[Array, " rows"]

    @classmethod
    def unpack(cls, packed: Int32[Array, "rows columns"]) -> "PackedRows":
        """From the columns that `pack` makes."""
        depth = (packed.shape[1] - 6) // 2
        rest = packed[:, 2 * depth :].T
        slot, known_length, kind, first, second, task = rest
        chains = Chains(packed[:, :depth], packed[:, depth : 2 * depth], slot, known_length)
        return cls(chains, kind, KnownPairs(first, second), task)


def pack(
    nodes: PaperNodes,
    known: ExactPrefixes,
    pair_slots: Int32[np.ndarray, "2 nodes"],
    task: Int32[np.ndarray, " nodes"],
) -> Int32[np.ndarray, "nodes columns"]:
    """A row for each node; `pair_slots` are those of `KnownPairs`."""
    return np.column_stack(
        [nodes.concepts, nodes.operators, known.slot, known.length, nodes.kind, *pair_slots, task]
    )
