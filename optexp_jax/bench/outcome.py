"""What a method found on a unit, what it claims, and whether exact methods agree."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from optexp_jax.counts.scores import Score


class Role(enum.StrEnum):
    """What a contender is held to."""

    EXACT = "exact"
    """Its proved results must be those of every other exact one."""
    CLAIMS = "claims"
    """It says that its results are optimal; we do not vouch for it."""
    HEURISTIC = "heuristic"
    """It may find less than the best."""
    LIMIT = "limit"
    """It finds nothing: it is the least that any method has to do."""


@dataclass(frozen=True)
class Outcome:
    """What was found on one unit, counted exactly; a limit finds nothing."""

    score: Score | None
    proved: bool = False
    formula: str | None = None


def disagreements(
    where: str, outcomes: Mapping[str, Outcome], roles: Mapping[str, Role]
) -> list[str]:
    """What must never be, in exact integers: two proved optima that differ, or a better formula.

    A contender that only claims to be exact may be below the optimum, which is told elsewhere;
    nobody may be above it.
    """
    scores = {name: found.score for name, found in outcomes.items() if found.score is not None}
    proved = {
        name: score
        for name, score in scores.items()
        if roles[name] is Role.EXACT and outcomes[name].proved
    }
    faults: list[str] = []
    if not proved:
        return faults
    first, best = next(iter(proved.items()))
    for name, score in scores.items():
        if name in proved and score.ratio != best.ratio:
            faults.append(
                f"{where}: {name} proved {_text(score)} and {first} proved {_text(best)}; "
                "both cannot be the optimum."
            )
        elif name not in proved and score.ratio > best.ratio:
            faults.append(
                f"{where}: {name} found {_text(score)}, which is above the optimum {_text(best)} "
                f"that {first} proved."
            )
    return faults


def _text(score: Score) -> str:
    return f"IoU {score.intersection}/{score.union}"
