"""When a search stops before its proof is complete, and what it tells on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optexp_jax.search.incumbent import Candidate


@dataclass(frozen=True)
class Progress:
    """Where a search stands, for callbacks."""

    incumbent: Candidate | None
    upper_bound: float
    """No formula has a higher IoU than this, or a higher value of another objective."""
    nodes: int
    """Nodes that wait in the frontier."""
    seconds: float
    metric: float | None = None
    """The incumbent's value of the objective; None where that is its IoU."""

    @property
    def value(self) -> float:
        """What the incumbent reaches, of what `upper_bound` bounds."""
        if self.metric is not None:
            return self.metric
        return 0.0 if self.incumbent is None else self.incumbent.score.value

    @property
    def gap(self) -> float:
        return self.upper_bound / self.value - 1 if self.value else np.inf


@dataclass(frozen=True)
class StoppingCriteria:
    """When to stop before the proof is complete, and whom to tell."""

    gap: float = 0.0
    time_limit: float | None = None
    callback: Callable[[Progress], None] | None = None
    frontier_reduction: bool = True
    """Drop queued nodes as soon as MinIoU passes them; else when they come up."""
    max_nodes: int = 10_000_000
    """Nodes that may wait in the frontier before the search gives up its proof."""
