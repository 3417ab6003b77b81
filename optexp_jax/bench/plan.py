"""What a run of the suites is to do."""

from dataclasses import dataclass

QUICK_BUDGET, BUDGET = 2.0, 60.0
QUICK_TURNS, TURNS = 3, 7


@dataclass(frozen=True)
class BenchPlan:
    """How large the data is, how often everything is timed, and what it may take."""

    quick: bool = False
    turns: int = TURNS
    budget: float = BUDGET
    """Seconds that one method may take for one unit, and for all turns of it."""
    reference: str = "TightBounds"
    """The method that others' times are told as multiples of."""
    data: str | None = None
    """A stored table or a dataset of real images, instead of stand-ins."""

    @classmethod
    def made_quick(cls) -> "BenchPlan":
        return cls(quick=True, turns=QUICK_TURNS, budget=QUICK_BUDGET)
