"""What `TradeOff` returns: formulas from the most precise to the widest, and what is proved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from optexp_jax.counts.metrics import Objective, Overlap
from optexp_jax.counts.neuron_summary import NeuronSummary
from optexp_jax.explanation import SearchStats, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.hull.plane import Point


@dataclass(frozen=True)
class TradeOffVertex:
    """A formula that has the highest `I − λ·E` for all λ of an interval.

    On a curve that is not proved, the highest of those that are known.
    """

    formula: Formula
    overlap: Overlap
    lowest: Fraction
    """The lowest λ for which it is best. 0 for the widest formula of all."""
    highest: Fraction | None
    """The highest one; None if it is best however much extras cost, because it has none."""
    proved: bool
    """Whether it is on the hull for sure, and first in order of all formulas with these counts."""

    @property
    def intersection(self) -> int:
        return self.overlap.intersection

    @property
    def extras(self) -> int:
        return self.overlap.extras

    @property
    def point(self) -> Point:
        """Where it is."""
        return Point(self.extras, self.intersection)


@dataclass(frozen=True)
class TradeOffSegment:
    """What lies between two neighbouring vertices."""

    slope: Fraction
    """The λ for which both are level."""
    weight: Fraction
    """Their `I − λ·E`."""
    upper: Fraction
    """No formula has a higher one. If it is the same, the segment is proved."""

    @property
    def proved(self) -> bool:
        """Whether no formula is above the segment."""
        return self.upper == self.weight


@dataclass(frozen=True)
class TradeOffCurve:
    """The upper hull of extras and intersections of all formulas, as far as it was asked for."""

    vertices: tuple[TradeOffVertex, ...]
    """From the most precise to the widest."""
    segments: tuple[TradeOffSegment, ...]
    """Between each vertex and the next."""
    fence: tuple[Point, ...]
    """Corners of a line that no formula is above, from left to right."""
    status: Status
    """'optimal' if all is proved: the ends, and that nothing is above a segment."""
    neuron: NeuronSummary
    n_searches: int
    stats: SearchStats = field(default_factory=SearchStats)
    state: object | None = field(default=None, compare=False, repr=False)
    """Searches that were stopped, for `trade_off(..., resume=...)`."""

    def best(self, objective: Objective | str) -> TradeOffVertex | None:
        """The vertex with the highest metric; of equals the most precise.

        It is the best formula of all if the curve is proved and was asked for in full. None where
        there is no vertex, and for phi where none has one above 0.
        """
        objective = Objective(objective)
        best = max(self.vertices, key=lambda each: each.overlap.key(objective), default=None)
        if best is None or best.overlap.key(objective) <= 0:
            return None
        return best

    def __str__(self) -> str:
        if not self.vertices:
            return f"no formula with a positive I − λ·E ({self.status})"
        rows = [_TITLES, *(_row(each) for each in self.vertices)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                text.ljust(width) if k == len(row) - 1 else text.rjust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, self._claim])

    @property
    def _claim(self) -> str:
        n, done = len(self.segments), sum(each.proved for each in self.segments)
        counted = f"{len(self.vertices)} formulas, {self.n_searches} searches"
        if self.status is Status.OPTIMAL:
            return f"{counted}: optimal, no formula is above this hull"
        return f"{counted}: feasible, {done} of {n} segments proved"


_TITLES = (
    *("λ from", "to", "I", "E", "IoU", "F1", "cosine", "phi", "precision", "recall"),
    "formula",
)


def _row(vertex: TradeOffVertex) -> Sequence[str]:
    has = vertex.overlap
    values = has.iou, has.f1, has.cosine, has.phi, has.precision, has.recall
    return (
        f"{float(vertex.lowest):.4g}",
        f"{math.inf if vertex.highest is None else float(vertex.highest):.4g}",
        str(vertex.intersection),
        str(vertex.extras),
        *(f"{value:.4f}" for value in values),
        f"{vertex.formula}{'' if vertex.proved else ' (not proved)'}",
    )
