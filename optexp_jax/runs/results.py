"""What is kept of a unit: its explanation, or why there is none, as plain JSON."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from optexp_jax.counts.metrics import Objective
from optexp_jax.counts.neuron_summary import NeuronSummary, SingleConcept
from optexp_jax.counts.scores import Score
from optexp_jax.counts.unverified import UnverifiedStep
from optexp_jax.explanation import (
    Explanation,
    LengthOptimum,
    RunnerUp,
    SearchStats,
    Seconds,
    Speculative,
    Status,
    StoppedBy,
)
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import operator_from_json, operator_to_json
from optexp_jax.runs.null import NullResult
from optexp_jax.runs.other_images import OtherImagesResult
from optexp_jax.runs.other_images_json import other_images_from_json, other_images_to_json
from optexp_jax.runs.typed import make
from optexp_jax.validation.families import sequential_p_value


@dataclass(frozen=True)
class UnitResult:
    """One unit of a run that is done: an explanation, or an error."""

    unit: int
    explanation: Explanation | None = None
    null: NullResult | None = None
    error: str | None = None
    """Why there is no explanation."""
    seconds: float = 0.0
    """All the work for the unit: counting, searching, other images and the null model."""
    other_images: OtherImagesResult | None = None

    def row(self) -> dict[str, Any]:
        """The unit as one flat row of a table."""
        found = self.explanation
        if found is None:
            return {"unit": self.unit, "error": self.error, "seconds": self.seconds}
        stats = dataclasses.asdict(found.stats)
        phases = stats.pop("seconds")
        in_vain = stats.pop("speculative")
        return {
            "unit": self.unit,
            "formula": None if found.formula is None else str(found.formula),
            "iou": found.iou,
            "intersection": found.intersection,
            "union": found.union,
            "upper_bound": found.upper_bound,
            "gap": found.gap,
            "status": str(found.status),
            "objective": found.objective.value,
            "p_value": None if self.null is None else self.null.p_value,
            "null_mean": None if self.null is None else self.null.mean,
            "null_highest": None if self.null is None else self.null.highest,
            **dict.fromkeys(("p_family", "q_value")),  # of all units of a run, if it is known
            **(OtherImagesResult() if self.other_images is None else self.other_images).row(),
            **_neuron_row(found),
            "runners_up": [
                {"formula": str(other.formula), "iou": other.iou} for other in found.runners_up
            ],
            "equivalents": [str(formula) for formula in found.equivalents],
            "unverified": [str(step) for step in found.unverified],
            "by_length": [
                {"length": best.length, "formula": str(best.formula), "iou": best.iou}
                for best in found.by_length
            ],
            "any_shape": found.any_shape,
            "within_truncated": found.within_truncated,
            **stats,
            "stopped_by": _plain(found.stats.stopped_by),
            **{f"speculative_{counter}": count for counter, count in in_vain.items()},
            "search_seconds": phases["total"],
            "seconds": self.seconds,
            "error": self.error,
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, exactly; `from_json` reads it back."""
        return {
            "unit": self.unit,
            "explanation": None if self.explanation is None else _explanation(self.explanation),
            "null": None if self.null is None else _null(self.null),
            "other_images": other_images_to_json(self.other_images),
            "error": self.error,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Any) -> "UnitResult":
        """Inverse of `to_json`; ValueError for anything that it could not have written."""
        try:
            found = None if data["explanation"] is None else _read_explanation(data["explanation"])
            null = None
            if data["null"] is not None:
                if found is None:
                    raise ValueError("a unit without an explanation has nothing to compare")
                null = _read_null(data["null"], found.score)
            other = other_images_from_json(data["other_images"])
            if other is not None and found is None:
                raise ValueError("a unit without an explanation has nothing to hold on others")
            fields = {**data, "explanation": found, "null": null, "other_images": other}
            result = make(cls, fields)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        _check_float(result.seconds)
        if (result.error is None) != (found is not None):
            raise ValueError("a unit has an explanation or an error")
        return result

    def same_finding(self, other: "UnitResult") -> bool:
        """Whether both say the same; how long it took, and where, does not count."""
        return self._finding() == other._finding()

    def _finding(self) -> tuple[object, ...]:
        found = self.explanation
        if found is not None:
            # Compilation depends on what the process did before, the rest on where it runs.
            stats = dataclasses.replace(
                found.stats,
                compilations=0,
                kernels=None,
                bounds_on=None,
                float64_fault=None,
                seconds=Seconds(),
            )
            found = dataclasses.replace(found, stats=stats)
        return self.unit, found, self.null, self.other_images, self.error


def _null(null: NullResult) -> dict[str, Any]:
    draws = [
        [score.intersection, score.union, *([] if bound is None else [bound])]
        for score, bound in zip(null.scores, null.upper_bounds, strict=True)
    ]
    return {"stop": null.stop, "draws": draws}


def _read_null(data: Any, found: Score) -> NullResult:
    if set(data) != {"stop", "draws"} or not isinstance(data["draws"], list):
        raise ValueError(f"{data!r} is no comparison with chance")
    scores: list[Score] = []
    bounds: list[float | None] = []
    for intersection, union, *bound in data["draws"]:
        scores.append(Score(*_counts(intersection, union)))
        for value in bound:
            _check_float(value)
        if len(bound) > 1:
            raise ValueError(f"{bound!r} are more than one upper bound")
        bounds.append(float(bound[0]) if bound else None)
    stop = data["stop"]
    if stop is not None and (type(stop) is not int or stop < 1):
        raise ValueError(f"{stop!r} is no number of draws")
    null = NullResult.of(scores, found, bounds, stop)
    if stop is not None:
        sequential_p_value(null.at_least, null.n, stop)
    return null


def _explanation(found: Explanation) -> dict[str, Any]:
    return {
        "formula": None if found.formula is None else found.formula.to_dict(),
        "intersection": found.intersection,
        "union": found.union,
        "upper_bound": found.upper_bound,
        "status": str(found.status),
        "objective": found.objective.value,
        "stats": {
            **dataclasses.asdict(found.stats),
            "stopped_by": _plain(found.stats.stopped_by),
        },
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
        "unverified": [
            {
                "operator": operator_to_json(step.operator),
                "concept": step.concept,
                "part": list(step.part),
            }
            for step in found.unverified
        ],
        "by_length": [
            {
                "length": optimum.length,
                "formula": optimum.formula.to_dict(),
                "intersection": optimum.intersection,
                "union": optimum.union,
            }
            for optimum in found.by_length
        ],
        "any_shape": found.any_shape,
        "within_truncated": found.within_truncated,
        "neuron": None if found.neuron is None else dataclasses.asdict(found.neuron),
    }


def _neuron_row(found: Explanation) -> dict[str, Any]:
    neuron = found.neuron
    if neuron is None:
        return {}
    return {
        "active": neuron.active,
        "active_share": neuron.active_share,
        "precision": found.precision,
        "recall": found.recall,
        "f1": found.f1,
        "cosine": found.cosine,
        "phi": found.phi,
        "single_concept": neuron.single.concept,
        "single_iou": neuron.single.iou,
    }


def _plain(stopped_by: StoppedBy | None) -> str | None:
    """Without the class, which data frames and JSON do not know."""
    return None if stopped_by is None else stopped_by.value


def _read_explanation(data: Any) -> Explanation:
    # Results from before these were told have none of them.
    data = {"by_length": [], "any_shape": None, **data, "stats": {"way": None, **data["stats"]}}
    seconds = make(Seconds, data["stats"]["seconds"])
    in_vain = make(Speculative, data["stats"]["speculative"])
    stopped_by = data["stats"]["stopped_by"]
    stats = make(
        SearchStats,
        {
            **data["stats"],
            "speculative": in_vain,
            "stopped_by": None if stopped_by is None else StoppedBy(stopped_by),
            "seconds": seconds,
        },
    )
    for value in (data["upper_bound"], *dataclasses.astuple(seconds)):
        _check_float(value)
    intersection, union = _counts(data["intersection"], data["union"])
    found = {
        **data,
        "formula": None if data["formula"] is None else Formula.from_dict(data["formula"]),
        "intersection": intersection,
        "union": union,
        "status": Status(data["status"]),
        "objective": Objective(data["objective"]),
        "stats": stats,
        "equivalents": _formulas(data["equivalents"]),
        "runners_up": tuple(_read_runner_up(other) for other in data["runners_up"]),
        "by_length": tuple(_read_optimum(optimum) for optimum in data["by_length"]),
        "unverified": tuple(_read_unverified(step) for step in data["unverified"]),
        "neuron": _read_neuron(data["neuron"], intersection, union),
        "state": None,
    }
    return make(Explanation, found)


def _read_runner_up(data: Any) -> RunnerUp:
    _counts(data["intersection"], data["union"])
    formula, equivalents = Formula.from_dict(data["formula"]), _formulas(data["equivalents"])
    return make(RunnerUp, {**data, "formula": formula, "equivalents": equivalents})


def _read_optimum(data: Any) -> LengthOptimum:
    _counts(data["intersection"], data["union"])
    return make(LengthOptimum, {**data, "formula": Formula.from_dict(data["formula"])})


def _read_unverified(data: Any) -> UnverifiedStep:
    operator, part = operator_from_json(data["operator"]), tuple(data["part"])
    return make(UnverifiedStep, {**data, "operator": operator, "part": part})


def _read_neuron(data: Any, intersection: int, union: int) -> NeuronSummary | None:
    """The summary, if a formula with such a score can be one of that neuron."""
    if data is None:
        return None
    single = make(SingleConcept, data["single"])
    neuron = make(NeuronSummary, {**data, "single": single})
    for inside, both in ((intersection, union), (single.intersection, single.union)):
        if not 0 <= inside <= neuron.active <= both <= neuron.n_locations:
            raise ValueError(f"{inside}/{both} is no IoU of {neuron.active} active locations")
    if not neuron.active or (single.concept is None) != (single.intersection == 0):
        raise ValueError(f"{data!r} is no summary of a neuron")
    return neuron


def _formulas(data: list[Any]) -> tuple[Formula, ...]:
    return tuple(Formula.from_dict(formula) for formula in data)


def _counts(intersection: object, union: object) -> tuple[int, int]:
    """An intersection and a union, if they can be those of two sets."""
    if type(intersection) is int and type(union) is int and 0 <= intersection <= union:
        return intersection, union
    raise ValueError(f"{intersection!r}/{union!r} is no IoU")


def _check_float(value: object) -> None:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
