"""What a method returns: a formula, its exact score, and what is proved about it."""

import enum
import math
from dataclasses import dataclass, field
from typing import Any

from optexp_jax.formula import Formula
from optexp_jax.scores import Score
from optexp_jax.unverified import UnverifiedStep


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
class Speculative:
    """Work in vain, by counter: what a search one node at a time would not have done.

    It is part of the counters of `SearchStats`, except for beams, whose counters are those of a
    search one by one.
    """

    visited: int = 0
    expanded: int = 0
    """Nodes, for a family of bounds that does not tell the work of each node."""
    estimated: int = 0


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
    speculative: Speculative = field(default_factory=Speculative)
    """What of that was for nodes that a search one node at a time would not have looked at."""
    compilations: int = 0
    """Programs that JAX had to compile on the way."""
    bounds: str | None = None
    """The family of bounds that a best-first search used."""
    bounds_on: str | None = None
    """The kind of device that a search computed bounds on: "cpu", "gpu" or "tpu"."""
    float64_fault: str | None = None
    """Why that was the host, where the device in use was not good enough at float64."""
    stopped_by: str | None = None
    """Which limit ended a search before its proof: "time limit", "gap" or "frontier full"."""
    seconds: Seconds = field(default_factory=Seconds)


@dataclass(frozen=True)
class RunnerUp:
    """A formula after the best one, for another set of locations."""

    formula: Formula
    intersection: int
    union: int
    equivalents: tuple[Formula, ...] = ()
    """Other formulas of the same length for the same locations, 20 at most."""

    @property
    def iou(self) -> float:
        return Score(self.intersection, self.union).iou


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
    equivalents: tuple[Formula, ...] = ()
    """Other formulas of the same length for the same locations, when runners-up were asked for."""
    runners_up: tuple[RunnerUp, ...] = ()
    """The next best formulas, best first, when they were asked for."""
    unverified: tuple[UnverifiedStep, ...] = ()
    """Filters that remove nothing of a part of the formula: data cannot show them wrong."""
    limit_hit: bool = False
    """Whether there are more formulas within the wanted share of the best than could be kept."""
    state: object | None = field(default=None, compare=False, repr=False)
    """A search that was stopped, for `explain(..., resume=...)`. It lives in this process."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": None}

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
