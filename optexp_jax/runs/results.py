"""What is kept of a unit: its explanation, or why there is none, as plain JSON."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from optexp_jax.explanation import Explanation, RunnerUp, SearchStats, Seconds, Status
from optexp_jax.formula import Formula
from optexp_jax.runs.null import NullResult


@dataclass(frozen=True)
class UnitResult:
    """One unit of a run that is done: an explanation, or an error."""

    unit: int
    explanation: Explanation | None = None
    null: NullResult | None = None
    error: str | None = None
    """Why there is no explanation."""
    seconds: float = 0.0
    """All the work for the unit: counting, searching and the null model."""

    def row(self) -> dict[str, Any]:
        """The unit as one flat row of a table."""
        found = self.explanation
        if found is None:
            return {"unit": self.unit, "error": self.error, "seconds": self.seconds}
        stats = dataclasses.asdict(found.stats)
        phases = stats.pop("seconds")
        return {
            "unit": self.unit,
            "formula": None if found.formula is None else str(found.formula),
            "iou": found.iou,
            "intersection": found.intersection,
            "union": found.union,
            "upper_bound": found.upper_bound,
            "gap": found.gap,
            "status": str(found.status),
            "p_value": None if self.null is None else self.null.p_value,
            "runners_up": [
                {"formula": str(other.formula), "iou": other.iou} for other in found.runners_up
            ],
            "equivalents": [str(formula) for formula in found.equivalents],
            "limit_hit": found.limit_hit,
            **stats,
            "search_seconds": phases["total"],
            "seconds": self.seconds,
            "error": self.error,
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, exactly; `from_json` reads it back."""
        return {
            "unit": self.unit,
            "explanation": None if self.explanation is None else _explanation(self.explanation),
            "null": None if self.null is None else dataclasses.asdict(self.null),
            "error": self.error,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "UnitResult":
        """Inverse of `to_json`."""
        found, null = data["explanation"], data["null"]
        return cls(
            unit=data["unit"],
            explanation=None if found is None else _read_explanation(found),
            null=None if null is None else NullResult(**null),
            error=data["error"],
            seconds=data["seconds"],
        )

    def same_finding(self, other: "UnitResult") -> bool:
        """Whether both say the same; how long it took does not count."""
        return self._finding() == other._finding()

    def _finding(self) -> tuple[object, ...]:
        found = self.explanation
        if found is not None:
            # Compilation depends on what the process did before.
            stats = dataclasses.replace(found.stats, compilations=0, seconds=Seconds())
            found = dataclasses.replace(found, stats=stats)
        return self.unit, found, self.null, self.error


def _explanation(found: Explanation) -> dict[str, Any]:
    return {
        "formula": None if found.formula is None else found.formula.to_dict(),
        "intersection": found.intersection,
        "union": found.union,
        "upper_bound": found.upper_bound,
        "status": str(found.status),
        "stats": dataclasses.asdict(found.stats),
        "equivalents": [formula.to_dict() for formula in found.equivalents],
        "runners_up": [
            {
                "formula": other.formula.to_dict(),
                "intersection": other.intersection,
                "union": other.union,
                "equivalents": [formula.to_dict() for formula in other.equivalents],
            }
            for other in found.runners_up
        ],
        "limit_hit": found.limit_hit,
    }


def _read_explanation(data: dict[str, Any]) -> Explanation:
    stats: dict[str, Any] = {**data["stats"], "seconds": Seconds(**data["stats"]["seconds"])}
    return Explanation(
        formula=None if data["formula"] is None else Formula.from_dict(data["formula"]),
        intersection=data["intersection"],
        union=data["union"],
        upper_bound=data["upper_bound"],
        status=Status(data["status"]),
        stats=SearchStats(**stats),
        equivalents=_formulas(data["equivalents"]),
        runners_up=tuple(
            RunnerUp(
                Formula.from_dict(other["formula"]),
                other["intersection"],
                other["union"],
                _formulas(other["equivalents"]),
            )
            for other in data["runners_up"]
        ),
        limit_hit=data["limit_hit"],
    )


def _formulas(data: list[Any]) -> tuple[Formula, ...]:
    return tuple(Formula.from_dict(formula) for formula in data)
