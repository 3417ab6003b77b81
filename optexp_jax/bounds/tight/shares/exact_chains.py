"""Whether some chain of a set reaches the incumbent, in whole numbers.

With the incumbent's IoU as a fraction p / q, let W be q·I − p·E. A chain beats the incumbent if its
W is above p·|N|, and ties with it if W is equal. Sets whose best chain only ties with a shorter
incumbent are many; nothing but whole numbers tells them from those that beat it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bounds.tight.sets.cells import Cells
from optexp_jax.bounds.tight.sets.subcubes import over_subcubes_on_host, subcubes
from optexp_jax.counts.scores import Score
from optexp_jax.internal.transfers import fetch_all

LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class ExactThreshold:
    """The incumbent's IoU, and whether what is level with it is wanted too."""

    score: Score
    neuron_size: int
    n_locations: int
    ties: bool

    @property
    def fits(self) -> bool:
        """Whether all sums fit 64 bits."""
        gained = self.score.union * self.neuron_size
        return max(gained, self.score.intersection * self.n_locations) < LARGEST

    def _weights(self, cells: Cells) -> Int64[np.ndarray, "cells sets"]:
        inside, outside = fetch_all(cells.inside, cells.outside)
        return self.score.union * inside - self.score.intersection * outside

    def _reached(self, w: Int64[np.ndarray, " sets"]) -> Bool[np.ndarray, " sets"]:
        needed = self.score.intersection * self.neuron_size
        return w >= needed if self.ties else w > needed

    def by_functions(self, cells: Cells) -> Bool[np.ndarray, " sets"]:
        """Which sets have a Boolean function that reaches it (Proposition 18)."""
        return self._reached(np.maximum(self._weights(cells), 0).sum(0))

    def by_chains(self, cells: Cells) -> Bool[np.ndarray, " sets"]:
        """Which sets have a chain that reaches it (Proposition 19); the empty one counts 0."""
        n = cells.n_concepts
        w = np.maximum(over_subcubes_on_host(self._weights(cells)), 0)
        best = np.zeros((1 << n, len(cells)), np.int64)
        for layer in subcubes(n).layers:
            before, best = best, np.zeros((layer.holds.shape[1], len(cells)), np.int64)
            for k in range(len(layer.holds)):
                np.maximum(best, w[layer.holds[k]] + before[layer.fails_before[k]], out=best)
                np.maximum(best, before[layer.holds_before[k]], out=best)
        return self._reached(best[0])
