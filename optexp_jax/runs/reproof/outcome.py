"""What is to be proved again, and what comes of it."""

from dataclasses import dataclass

from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula

ALL_TRIED = "every formula was tried"


@dataclass(frozen=True, eq=False)
class StoredClaim:
    """What a result says of all formulas over one unit."""

    neuron: NeuronCounts
    score: Score
    """No formula has a higher IoU."""
    listed: tuple[Score, ...] | None = None
    """The scores of the best sets of locations, best first; None if they are not asked for."""


@dataclass(frozen=True)
class Reproof:
    """What came of proving again that nothing is above a score."""

    how: str
    proved: bool
    better: Score | None = None
    """A higher score of some formula, which disproves it."""
    first: Formula | None = None
    """Of the best formulas, the one that comes first, where all of them were tried."""


@dataclass(frozen=True)
class Reproofs:
    """What came of both parts of a claim."""

    best: Reproof
    listed: Reproof | None = None
    """Whether the list is the right one: `better` is the first score that it should have and does
    not. None if it is not asked for, or if the best is wrong already."""
    seconds: float = 0.0
