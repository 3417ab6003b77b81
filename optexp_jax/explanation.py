"""What a method returns: a formula, its exact score, and what is proved about it."""

import enum
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from optexp_jax.counts.metrics import Margins, Objective, Overlap
from optexp_jax.counts.neuron_summary import NeuronSummary
from optexp_jax.counts.scores import Score
from optexp_jax.counts.unverified import UnverifiedStep
from optexp_jax.formulas.formula import Formula
from optexp_jax.unit_card import CardAreas, CardFact, UnitCard

MOST_SHOWN = 10
"""Runners-up on a card."""


class Status(enum.StrEnum):
    """Whether the formula is proved to be the best one; compares equal to its string."""

    OPTIMAL = "optimal"
    """No formula that the method may use has a higher value of the objective, the IoU mostly."""
    FEASIBLE = "feasible"
    """A formula with this value exists; a better one may, up to `upper_bound`."""


class StoppedBy(enum.StrEnum):
    """Which limit ended a search before its proof; compares equal to its string.

    The strings are the names of the settings, and what runs store.
    """

    reason: str
    """What happened."""
    advice: str
    """What to do for more."""

    def __new__(cls, value: str, reason: str, advice: str) -> "StoppedBy":
        member = str.__new__(cls, value)
        member._value_ = value
        member.reason, member.advice = reason, advice
        return member

    TIME_LIMIT = (
        "time_limit",
        "time limit reached",
        "raise time_limit, or go on with explain(..., resume=found.state)",
    )
    """`Optimal(time_limit=...)` seconds are over."""
    GAP = (
        "gap",
        "gap reached",
        "this is as near to the optimum as was asked for; for a proof, lower gap or go on with "
        "explain(..., resume=found.state)",
    )
    """A better formula could only be better by the share `Optimal(gap=...)`."""
    MAX_NODES = (
        "max_nodes",
        "too many nodes in wait",
        "if there is memory for more, raise max_nodes and go on with "
        "explain(..., resume=found.state); else use fewer concepts, shorter formulas or a gap",
    )
    """More than `Optimal(max_nodes=...)` nodes wait."""


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
    way: str | None = None
    """Which way the family took, chains or sets, and why."""
    bounds_on: str | None = None
    """The kind of device that a search computed bounds on: "cpu", "gpu" or "tpu"."""
    float64_fault: str | None = None
    """Why that was the host, where the device in use was not good enough at float64."""
    kernels: str | None = None
    """Whose kernels counted: the "host"'s or the "device"'s."""
    stopped_by: StoppedBy | None = None
    """Which limit ended a search before its proof; `Explanation.advice` says what to do."""
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
class LengthOptimum:
    """The best formula of at most `length` concepts, proved."""

    length: int
    formula: Formula
    intersection: int
    union: int

    @property
    def iou(self) -> float:
        return Score(self.intersection, self.union).iou


@dataclass(frozen=True)
class Explanation:
    """A neuron's explanation.

    `formula` is None when no concept overlaps the neuron, so that every formula has IoU 0; and when
    phi was asked for and no formula has one above 0.
    """

    formula: Formula | None
    intersection: int
    union: int
    upper_bound: float
    """No formula that the method may use has a higher value of the objective than this."""
    status: Status
    objective: Objective = field(default=Objective.IOU, kw_only=True)
    """The metric that the formula is best by."""
    stats: SearchStats = field(default_factory=SearchStats)
    equivalents: tuple[Formula, ...] = ()
    """Other formulas of the same length for the same locations, when runners-up were asked for."""
    runners_up: tuple[RunnerUp, ...] = ()
    """The next best formulas, best first, when they were asked for."""
    unverified: tuple[UnverifiedStep, ...] = ()
    """Filters that remove nothing of a part of the formula: data cannot show them wrong."""
    by_length: tuple[LengthOptimum, ...] = ()
    """What one more concept buys: the proved optimum of each length from one on, where known."""
    any_shape: float | None = None
    """No Boolean function of as many concepts has a higher IoU than this, whatever its shape.

    `Optimal(any_shape=True)` asks for it. Functions that hold where no concept does are left out.
    """
    within_truncated: bool = False
    """Whether there are more formulas within the wanted share of the best than could be kept."""
    neuron: NeuronSummary | None = None
    """The neuron's size and its best single concept; `explain` and runs fill it in."""
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
    def mask_size(self) -> int | None:
        """Locations where the formula holds; None where `neuron` is."""
        if self.neuron is None:
            return None
        return self.union - self.neuron.active + self.intersection

    @property
    def overlap(self) -> Overlap | None:
        """The four counts that all metrics are made of; None where `neuron` is."""
        neuron = self.neuron
        if neuron is None:
            return None
        margins = Margins(neuron.active, neuron.n_locations)
        return Overlap(self.intersection, self.union - neuron.active, margins)

    @property
    def value(self) -> float:
        """The metric that the formula is best by: the IoU, unless another was asked for."""
        if self.objective is Objective.IOU or self.overlap is None:
            return self.iou
        return self.overlap.value(self.objective)

    @property
    def precision(self) -> float | None:
        """The share of the formula's locations that is active; 0 if it has none."""
        return None if self.overlap is None else self.overlap.precision

    @property
    def recall(self) -> float | None:
        """The share of the active locations that the formula covers."""
        return None if self.overlap is None else self.overlap.recall

    @property
    def f1(self) -> float | None:
        """The Dice coefficient of the formula's locations and the neuron's."""
        return None if self.overlap is None else self.overlap.f1

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between the formula's mask and the neuron's."""
        return None if self.overlap is None else self.overlap.cosine

    @property
    def phi(self) -> float | None:
        """Matthews' correlation of the two; 0 where one of them is everywhere or nowhere."""
        return None if self.overlap is None else self.overlap.phi

    @property
    def highest_for_sizes(self) -> float | None:
        """The highest IoU that two sets as large as the neuron and the formula can have."""
        if self.neuron is None or self.mask_size is None:
            return None
        sizes = self.neuron.active, self.mask_size
        return min(sizes) / max(sizes)

    @property
    def gap(self) -> float:
        """How far, relatively, a better formula could be above this one: 0 when proved."""
        value = self.value
        if self.upper_bound <= value:
            return 0.0
        return self.upper_bound / value - 1 if value else math.inf

    @property
    def advice(self) -> str | None:
        """Why the search stopped before its proof, how far it was, and what to do; else None."""
        stopped_by = self.stats.stopped_by
        if stopped_by is None:
            return None
        return (
            f"{stopped_by.reason} after {self.stats.seconds.total:.3g} s, at "
            f"{self.objective.label} {self.value:.4f} with upper bound {self.upper_bound:.4f}: "
            f"{stopped_by.advice}"
        )

    def show(self, images: Sequence[Any] = ()) -> None:
        """Show the card in a notebook, with images if there are any; elsewhere print a line.

        Images are arrays `[row, column, colour]` of bytes, such as the `overlay` of
        `optexp_jax.pictures.overlays(...)`.
        """
        # Only where IPython runs: importing it takes longer than most searches.
        shell = sys.modules.get("IPython")
        if shell is None or shell.get_ipython() is None:
            print(self)
            return
        from IPython.display import HTML, display

        display(HTML(self.to_html(images)))

    def to_html(self, images: Sequence[Any] = ()) -> str:
        """The unit card as a piece of HTML."""
        return self._card.to_html(images)

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def _card(self) -> UnitCard:
        facts = [CardFact("IoU", f"{self.iou:.4f}")]
        areas, neuron = None, self.neuron
        if neuron is not None:
            single = neuron.single
            alone = "none" if single.concept is None else str(Formula.concept(single.concept))
            facts += [
                CardFact("one concept", f"{single.iou:.4f} ({alone})"),
                CardFact("active", f"{neuron.active_share:.2%}"),
                CardFact("precision", f"{self.precision:.1%}"),
                CardFact("recall", f"{self.recall:.1%}"),
                CardFact("F1", f"{self.f1:.4f}"),
                CardFact("cosine", f"{self.cosine:.4f}"),
                CardFact("phi", f"{self.phi:.4f}"),
                CardFact("highest IoU for these sizes", f"{self.highest_for_sizes:.4f}"),
            ]
            missed = neuron.active - self.intersection
            extras = self.union - neuron.active
            areas = CardAreas(self.intersection, missed, extras)
        others = tuple(
            CardFact(str(other.formula), f"IoU {other.iou:.4f}") for other in self.runners_up
        )
        notes = [f"{step}: no data can verify that" for step in self.unverified]
        notes += [f"same locations: {formula}" for formula in self.equivalents]
        return UnitCard(
            self._formula_text, self._claim, tuple(facts), areas, others[:MOST_SHOWN], tuple(notes)
        )

    @property
    def _formula_text(self) -> str:
        if self.formula is not None:
            return str(self.formula)
        if self.objective is Objective.PHI:
            return "no formula has a phi above 0"
        return "no concept overlaps the neuron"

    @property
    def _claim(self) -> str:
        if self.status is Status.OPTIMAL:
            return "optimal"
        stopped_by = self.stats.stopped_by
        stopped = "" if stopped_by is None else f", {stopped_by.reason}"
        return f"feasible, upper bound {self.upper_bound:.4f}{stopped}"

    def __str__(self) -> str:
        counts = f"{self.intersection}/{self.union}"
        if self.objective is Objective.IOU:
            return f"{self._formula_text}  IoU {self.iou:.4f} ({counts}, {self._claim})"
        value = f"{self.objective.label} {self.value:.4f} ({self._claim})"
        return f"{self._formula_text}  {value}  IoU {self.iou:.4f} ({counts})"
