"""What a method returns: a formula, its exact score, and what is proved about it."""

import enum
import math
from dataclasses import dataclass, field

from optexp_jax.formula import Formula
from optexp_jax.scores import Score


class Status(enum.StrEnum):
    """Whether the formula is proved to be the best one; compares equal to its string."""

    OPTIMAL = "optimal"
    """No formula that the method may use has a higher IoU."""
    FEASIBLE = "feasible"
    """A formula with this IoU exists; a better one may, up to `upper_bound`."""


@dataclass(frozen=True)
class Seconds:
    """Where the time of a search went."""

    total: float = 0.0
    device: float = 0.0
    """Bounds and estimates on the device."""
    heap: float = 0.0
    """The frontier on the host."""
    exact: float = 0.0
    """Exact scores of formulas."""


@dataclass(frozen=True)
class SearchStats:
    """How much work a search took, in the paper's counters."""

    visited: int = 0
    """Formulas whose exact IoU was computed."""
    expanded: int = 0
    """Nodes whose children were made."""
    estimated: int = 0
    """Formulas whose IoU was estimated."""
    updated: int = 0
    """Queued nodes estimated again because a part of their label became known exactly."""
    speculative: int = 0
    """Nodes taken in a batch that a search one node at a time would not have looked at."""
    compilations: int = 0
    """Programs that JAX had to compile on the way."""
    seconds: Seconds = field(default_factory=Seconds)


@dataclass(frozen=True)
class Explanation:
    """A neuron's explanation.

    `formula` is None when no concept overlaps the neuron, so that every formula has IoU 0.
    """

    formula: Formula | None
    intersection: int
    union: int
    upper_bound: float
    """No formula that the method may use has a higher IoU than this."""
    status: Status
    stats: SearchStats = field(default_factory=SearchStats)

    @property
    def score(self) -> Score:
        return Score(self.intersection, self.union)

    @property
    def iou(self) -> float:
        return self.score.iou

    @property
    def gap(self) -> float:
        """How far, relatively, a better formula could be above this one: 0 when proved."""
        if self.upper_bound <= self.iou:
            return 0.0
        return self.upper_bound / self.iou - 1 if self.iou else math.inf

    def __str__(self) -> str:
        formula = "no concept overlaps the neuron" if self.formula is None else str(self.formula)
        claim = (
            "optimal"
            if self.status is Status.OPTIMAL
            else f"feasible, upper bound {self.upper_bound:.4f}"
        )
        return f"{formula}  IoU {self.iou:.4f} ({self.intersection}/{self.union}, {claim})"
