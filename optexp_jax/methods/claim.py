"""What a method's results are about, and what they claim, for those that check them."""

import enum
from dataclasses import dataclass

from optexp_jax.counts.metrics import Objective
from optexp_jax.formulas.operators import Operator


class Proof(enum.Enum):
    """When the results of a method are proved to be the best ones."""

    ALWAYS = "always"
    """The method looks at every formula that it may use."""
    UNLESS_STOPPED = "unless stopped"
    """A result is proved, or its `stats.stopped_by` says which limit came before the proof."""
    NEVER = "never"
    """Only that no concept overlaps the neuron is sure."""
    UNKNOWN = "unknown"
    """The method does not say; each result is taken as it is."""


@dataclass(frozen=True)
class FormulaSpace:
    """The formulas that a method's claim is about, and how many of them it is to list."""

    length: int
    """Most concepts in a formula."""
    operators: tuple[Operator, ...]
    most: int = 1
    """Formulas that a result lists at most, the best one included."""
    within: float | None = None
    """How far, as a share, the last one may be below the best."""
    objective: Objective = Objective.IOU
    """The metric that formulas are compared by."""

    @property
    def lists(self) -> bool:
        """Whether runners-up are asked for."""
        return self.most > 1 or self.within is not None
