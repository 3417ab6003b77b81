"""The memory of recent nodes: equal nodes that come up with the same estimate."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from optexp_jax.bounds.paper.nodes import PaperNodes
from optexp_jax.formulas.formula import Formula
from optexp_jax.search.frontier import Queued


class DuplicateFilter:
    """Nodes that came up with the estimate that came up last.

    The same formula can be grown in more than one order; the first is enough.
    """

    def __init__(self, name: Callable[[PaperNodes, int], Formula]):
        """`name` makes the formula of a row."""
        self._name = name
        self._estimate = np.inf
        self._seen: dict[bytes, list[tuple[PaperNodes, int]]] = {}

    def fresh(self, batch: Queued[PaperNodes]) -> Bool[np.ndarray, " nodes"]:
        """Which nodes of a batch are not here already; they are now."""
        fresh = np.ones(len(batch), bool)
        nodes = batch.nodes
        keys = nodes.unordered_keys()
        for row, estimate in enumerate(batch.upper.tolist()):
            if estimate != self._estimate:
                self._estimate = estimate
                self._seen = {}
            # Equal formulas have the same concepts: only where those come again names are made.
            alike = self._seen.setdefault(keys[row], [])
            if alike:
                formula = self._name(nodes, row)
                fresh[row] = all(formula != self._name(*other) for other in alike)
            if fresh[row]:
                alike.append((nodes, row))
        return fresh
