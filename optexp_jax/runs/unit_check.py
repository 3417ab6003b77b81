"""What was checked of one unit, and what is wrong with it."""

import enum
from dataclasses import dataclass


class ClaimOutcome(enum.StrEnum):
    """What became of a result's claim about all other formulas."""

    REPROVED = "optimality re-proved"
    NOT_REPROVED = "optimality not re-proved"
    BOUND_HOLDS = "upper bound holds"
    NOT_CLAIMED = "optimality not claimed"
    DISPROVED = "optimality disproved"


@dataclass(frozen=True)
class UnitCheck:
    """What was checked of one unit, and what is wrong with it."""

    unit: int
    claim: ClaimOutcome
    how: str
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    on_data: bool = False
    """Whether scores were counted on the dataset's label maps too."""
    others_proved: bool | None = None
    """Whether it was proved again that no other runners-up belong there; None if none are asked."""
    draws: int | None = None
    """Draws of the null model, if there is one."""
    draws_again: int = 0
    """How many of them were done again."""
    resamples: int | None = None
    """Searches on folds and resamples of the images, if there are any."""
    resamples_again: int = 0
    """How many of them were done again."""

    @property
    def good(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        if self.faults:
            return "WRONG: " + "; ".join(self.faults)
        parts = ["IoU checked on the dataset" if self.on_data else "IoU checked"]
        parts.append(str(self.claim) + (f" ({self.how})" if self.how else ""))
        if self.others_proved is not None:
            parts.append(f"runners-up {'' if self.others_proved else 'not '}re-proved")
        if self.draws is not None:
            parts.append(f"{self.draws_again} of {self.draws} draws done again")
        if self.resamples is not None:
            again = f"{self.resamples_again} of {self.resamples}"
            parts.append(f"{again} searches on folds and resamples done again")
        return ", ".join(parts)
